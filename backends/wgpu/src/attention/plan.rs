//! A plan: a step's tables, in one tensor.

use super::{call::value_stride, rounds::parts_at_most, shape::fitting};
use crate::{device::Wgpu, room, stream::WgpuStream, support::unsupported};
use halite_hal::{DType, Error, Result, Tensor};
use halite_kernels::attention::{
    AttentionCapacity, AttentionPlan, AttentionSpec, AttentionStep,
    cut::{Cut, Most, Parted, Round, RowTile, Tables, slot_words},
    visible,
};
use std::ops::Range;

/// Words of the head of the tables: `plan.wgsl` reads them.
const HEAD: usize = 21;

/// A step's tables, and its work.
#[derive(Debug)]
pub struct WgpuAttentionPlan {
    pub(super) spec: AttentionSpec,
    capacity: AttentionCapacity,
    tokens: usize,
    most: Most,
    pub(super) tile: RowTile,
    pub(super) cut: Cut,
    /// I32: the head, slopes `[query_heads]` as bits of F32, block tables, chains of trees, tiles, items.
    pub(super) table: Tensor<Wgpu>,
    pub(super) places: Tables,
    words: Vec<u32>,
}

impl AttentionPlan for WgpuAttentionPlan {
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

impl WgpuAttentionPlan {
    /// A plan without a step. The spec is one that the backend supports.
    pub(crate) fn new(
        device: &Wgpu,
        operator: &'static str,
        spec: &AttentionSpec,
        capacity: &AttentionCapacity,
        parted: Parted,
    ) -> Result<Self> {
        let Some(tile) = fitting(spec, capacity.max_tokens) else {
            return Err(unsupported(operator, "this head_dim", spec));
        };
        let most = Most::new(spec, capacity, tile, parted, device.largest_binding());
        let together = tile.tokens.saturating_mul(most.parts);
        if parted == Parted::All && most.slots < together.min(capacity.max_tokens.saturating_mul(most.parts))
        {
            // All parts of a tile are joined at once.
            let (got, limit) = (together as u64, most.slots as u64);
            return Err(Error::Limit { operator, argument: "states of a row's parts", got, limit });
        }
        let words = HEAD.saturating_add(Tables::room(spec, capacity, most));
        let limit = device.largest_binding() / 4;
        if words as u64 > limit {
            return Err(Error::Limit { operator, argument: "words of tables", got: words as u64, limit });
        }
        Ok(WgpuAttentionPlan {
            spec: spec.clone(),
            capacity: *capacity,
            tokens: 0,
            most,
            tile,
            cut: Cut::default(),
            table: Tensor::new(device, DType::I32, &[words])?,
            places: Tables::default(),
            words: Vec::new(),
        })
    }

    /// Slots of scratch memory: each has a state of every head of a token.
    pub(crate) fn slots(&self) -> usize {
        self.most.slots
    }

    /// What scratch memory holds at once, of a step.
    pub(crate) fn rounds(&self) -> &[Round] {
        &self.cut.rounds
    }

    /// The tokens of a round, where tiles are in the order of tokens.
    pub(crate) fn tokens_of(&self, round: &Round) -> Range<usize> {
        self.cut.tokens_of(round)
    }

    /// F32 elements of scratch memory.
    pub(crate) fn scratch(&self) -> usize {
        self.most.slots.saturating_mul(slot_words(&self.spec))
    }

    pub(super) fn workspace(&self) -> u64 {
        room::bytes(DType::F32, self.scratch())
    }

    /// Cuts a step and uploads its tables. Where that fails, the plan has no step.
    pub(crate) fn update(
        &mut self,
        stream: &mut WgpuStream,
        operator: &'static str,
        step: &AttentionStep<'_>,
    ) -> Result<()> {
        self.tokens = 0;
        let uploaded = self.upload(stream, operator, step);
        match uploaded {
            Ok(()) => self.tokens = step.tokens(),
            Err(_) => self.cut.clear(),
        }
        uploaded
    }

    fn upload(
        &mut self,
        stream: &mut WgpuStream,
        operator: &'static str,
        step: &AttentionStep<'_>,
    ) -> Result<()> {
        if let Some(&len) = step.kv_lens.iter().find(|&&len| len > i32::MAX as u32) {
            let (got, limit) = (len.into(), i32::MAX as u64);
            return Err(Error::Limit { operator, argument: "kv_lens", got, limit });
        }
        let longest = step.cu_seqlens.windows(2).map(|ends| (ends[1] - ends[0]) as usize).max().unwrap_or(0);
        // There is one for all steps, as there was one when this was planned.
        self.tile = fitting(&self.spec, longest).unwrap_or(self.tile);
        self.cut.update(&self.spec, step, self.tile, self.most);
        let most = parts_at_most(&self.spec, self.tile);
        if stream.device.is_software() && self.cut.longest > most {
            let positions = |parts: usize| (parts * self.spec.kv_split) as u64;
            let (got, limit) = (positions(self.cut.longest), positions(most));
            let argument = "positions that a workgroup reads (a software adapter's loops end early)";
            return Err(Error::Limit { operator, argument, got, limit });
        }
        let words = &mut self.words;
        words.clear();
        words.resize(HEAD, 0);
        let places = Tables::append(words, &self.spec, step, &self.cut);
        self.places = places;
        let (spec, tile) = (&self.spec, self.tile);
        let sizes = [
            spec.kv.head_dim,
            spec.kv.value_head_dim,
            value_stride(&spec.kv),
            spec.kv.block_size,
            self.capacity.cache_blocks,
            spec.kv.kv_heads,
            spec.group(),
            tile.heads,
            tile.rows(),
            spec.kv_split,
        ];
        let row = self.capacity.max_blocks_per_sequence;
        let places = [places.slopes, places.blocks, row, places.tree, places.tiles];
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).min(i32::MAX as u32);
        words[..10].copy_from_slice(&sizes.map(number));
        words[10..16].copy_from_slice(&[
            visible::code(spec.mask).cast_unsigned(),
            visible::span(spec.mask).cast_unsigned(),
            spec.soft_cap.is_some().into(),
            spec.alibi_slopes.is_some().into(),
            spec.scale.to_bits(),
            spec.soft_cap.unwrap_or(1.0).to_bits(),
        ]);
        words[16..HEAD].copy_from_slice(&places.map(number));
        let limit = self.table.shape().elements();
        if words.len() > limit {
            let (got, limit) = (words.len() as u64, limit as u64);
            return Err(Error::Limit { operator, argument: "words of tables", got, limit });
        }
        stream.stage(self.table.buffer(), self.table.offset(), bytemuck::cast_slice(&self.words))
    }
}
