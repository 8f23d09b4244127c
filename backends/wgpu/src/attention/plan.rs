//! A plan: a step's tables, in one tensor.

use super::{
    call::value_stride,
    cut::{Cut, ITEM, Most, Parted, Round, TILE, slot_words},
    rounds::parts_at_most,
    shape::Shape,
    visible::{self, chains},
};
use crate::{device::Wgpu, room, stream::WgpuStream, support::unsupported};
use halite_hal::{DType, Error, Result, Tensor};
use halite_kernels::attention::{AttentionCapacity, AttentionPlan, AttentionSpec, AttentionStep, Mask};
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
    pub(super) shape: Shape,
    pub(super) cut: Cut,
    /// I32: the head, slopes `[query_heads]` as bits of F32, block tables, chains of trees, tiles, items.
    pub(super) table: Tensor<Wgpu>,
    pub(super) places: Places,
    words: Vec<i32>,
}

/// Where the tables begin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Places {
    /// `[tiles, 12]`
    pub(super) tiles: usize,
    /// `[items, 4]`
    pub(super) items: usize,
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
        let Some(shape) = Shape::new(spec, capacity.max_tokens) else {
            return Err(unsupported(operator, "this head_dim", spec));
        };
        let most = Most::new(spec, capacity, shape, parted, device.largest_binding());
        let tile = shape.tokens.saturating_mul(most.parts);
        if parted == Parted::All && most.slots < tile.min(capacity.max_tokens.saturating_mul(most.parts)) {
            // All parts of a tile are joined at once.
            let (got, limit) = (tile as u64, most.slots as u64);
            return Err(Error::Limit { operator, argument: "states of a row's parts", got, limit });
        }
        let slopes = spec.alibi_slopes.as_ref().map_or(0, Vec::len);
        let blocks = capacity.max_sequences.saturating_mul(capacity.max_blocks_per_sequence);
        let tree = if spec.mask == Mask::Tree { capacity.max_tokens.saturating_mul(2) } else { 0 };
        let words =
            [HEAD, slopes, blocks, tree, most.tiles.saturating_mul(TILE), most.items.saturating_mul(ITEM)]
                .into_iter()
                .fold(0, usize::saturating_add);
        let limit = device.largest_binding() / 4;
        if words as u64 > limit {
            return Err(Error::Limit { operator, argument: "words of tables", got: words as u64, limit });
        }
        Ok(WgpuAttentionPlan {
            spec: spec.clone(),
            capacity: *capacity,
            tokens: 0,
            most,
            shape,
            cut: Cut::default(),
            table: Tensor::new(device, DType::I32, &[words])?,
            places: Places::default(),
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
        let tiles = self.cut.tiles.get(round.tiles.clone()).unwrap_or_default();
        let start = tiles.first().map_or(0, |tile| tile[0] as usize);
        start..tiles.last().map_or(start, |tile| (tile[0] + tile[1]) as usize)
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
        self.shape = Shape::new(&self.spec, longest).unwrap_or(self.shape);
        self.cut.update(&self.spec, step, self.shape, self.most);
        let most = parts_at_most(&self.spec, self.shape);
        if stream.device.is_software() && self.cut.longest > most {
            let positions = |parts: usize| (parts * self.spec.kv_split) as u64;
            let (got, limit) = (positions(self.cut.longest), positions(most));
            let argument = "positions that a workgroup reads (a software adapter's loops end early)";
            return Err(Error::Limit { operator, argument, got, limit });
        }
        let words = &mut self.words;
        words.clear();
        words.resize(HEAD, 0);
        words.extend(self.spec.alibi_slopes.iter().flatten().map(|slope| slope.to_bits().cast_signed()));
        let blocks = words.len();
        words.extend_from_slice(step.block_table);
        let tree = words.len();
        if self.spec.mask == Mask::Tree {
            for ends in step.cu_seqlens.windows(2) {
                words.extend(chains(&step.tree_parents[ends[0] as usize..ends[1] as usize]).flatten());
            }
        }
        let tiles = words.len();
        words.extend(self.cut.tiles.iter().flatten());
        let items = words.len();
        words.extend(self.cut.items.iter().flatten());
        self.places = Places { tiles, items };
        let (spec, shape) = (&self.spec, self.shape);
        let sizes = [
            spec.kv.head_dim,
            spec.kv.value_head_dim,
            value_stride(&spec.kv),
            spec.kv.block_size,
            self.capacity.cache_blocks,
            spec.kv.kv_heads,
            spec.group(),
            shape.heads,
            shape.rows(),
            spec.kv_split,
        ];
        let places = [HEAD, blocks, self.capacity.max_blocks_per_sequence, tree, tiles];
        let number = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
        words[..10].copy_from_slice(&sizes.map(number));
        words[10..16].copy_from_slice(&[
            visible::code(spec.mask).unwrap_or_default().cast_signed(),
            visible::span(spec.mask),
            spec.soft_cap.is_some().into(),
            spec.alibi_slopes.is_some().into(),
            spec.scale.to_bits().cast_signed(),
            spec.soft_cap.unwrap_or(1.0).to_bits().cast_signed(),
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
