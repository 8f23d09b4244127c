//! A plan: a step's tables, in one tensor.

use halite_hal::{DType, Error, Result, Tensor};
use halite_kernels::attention::{
    AttentionCapacity, AttentionPlan, AttentionSpec, AttentionStep,
    cut::{Cut, Most, Parted, RowTile, Tables, slot_words},
};

use super::shape::fitting;
use crate::{device::Cuda, room, stream::CudaStream, support::unsupported, table::Table};

/// A step's tables, and its work.
#[derive(Debug)]
pub struct CudaAttentionPlan {
    pub(super) spec: AttentionSpec,
    capacity: AttentionCapacity,
    tokens: usize,
    most: Most,
    pub(super) tile: RowTile,
    pub(super) cut: Cut,
    /// Slopes, block table, chains of trees, tiles, items.
    table: Table,
    pub(super) places: Tables,
}

impl AttentionPlan for CudaAttentionPlan {
    fn spec(&self) -> &AttentionSpec {
        &self.spec
    }

    fn capacity(&self) -> &AttentionCapacity {
        &self.capacity
    }

    fn tokens(&self) -> usize {
        self.tokens
    }
}

impl CudaAttentionPlan {
    /// A plan without a step. The spec is one that the backend supports.
    pub(crate) fn new(
        device: &Cuda,
        operator: &'static str,
        spec: &AttentionSpec,
        capacity: &AttentionCapacity,
        parted: Parted,
    ) -> Result<Self> {
        let Some(tile) = fitting(spec, capacity.max_tokens) else {
            return Err(unsupported(operator, "this head_dim", spec));
        };
        let most = Most::new(spec, capacity, tile, parted, u64::MAX);
        Ok(CudaAttentionPlan {
            spec: spec.clone(),
            capacity: *capacity,
            tokens: 0,
            most,
            tile,
            cut: Cut::default(),
            table: Table::new(device, Tables::room(spec, capacity, most))?,
            places: Tables::default(),
        })
    }

    /// Slots of scratch memory: each has a state of every head of a token.
    pub(crate) fn slots(&self) -> usize {
        self.most.slots
    }

    /// The step's work.
    pub(crate) fn cut(&self) -> &Cut {
        &self.cut
    }

    /// F32 elements of scratch memory.
    pub(super) fn scratch(&self) -> usize {
        self.most.slots.saturating_mul(slot_words(&self.spec))
    }

    pub(super) fn workspace(&self) -> u64 {
        room::bytes(DType::F32, self.scratch())
    }

    /// Where kernels read the tables.
    pub(super) fn table(&self) -> &Tensor<Cuda> {
        self.table.tensor()
    }

    /// Cuts a step and uploads its tables. Where that fails, the plan has no step.
    pub(crate) fn update(
        &mut self,
        stream: &mut CudaStream,
        operator: &'static str,
        step: &AttentionStep<'_>,
    ) -> Result<()> {
        self.tokens = 0;
        self.cut.clear();
        if let Some(&len) = step.kv_lens.iter().find(|&&len| len > i32::MAX as u32) {
            let (got, limit) = (len.into(), i32::MAX as u64);
            return Err(Error::Limit { operator, argument: "kv_lens", got, limit });
        }
        let longest = step.cu_seqlens.windows(2).map(|ends| (ends[1] - ends[0]) as usize).max().unwrap_or(0);
        // There is one for all steps, as there was one when this was planned.
        self.tile = fitting(&self.spec, longest).unwrap_or(self.tile);
        self.cut.update(&self.spec, step, self.tile, self.most);
        self.places = Tables::append(self.table.begin(), &self.spec, step, &self.cut);
        let uploaded = self.table.upload(stream);
        match uploaded {
            Ok(()) => self.tokens = step.tokens(),
            Err(_) => self.cut.clear(),
        }
        uploaded
    }
}
