//! Writing keys and values by slot.

use halite_hal::{DType, Result, Tensor};
use halite_kernels::cache::{KvCacheInfo, KvFormat, KvValues, SlotPlan};

use super::{CudaKvCache, CudaSlots};
use crate::{
    compile::{Program, Source},
    device::Cuda,
    launch::Launch,
    rows::Rows,
    stream::CudaStream,
};

static WRITE: Source = Source::new("cache/write.cu", include_str!("write.cu"));

/// Rows that a block writes: a warp each.
pub(crate) const ROWS: usize = 8;

/// The number that kernels know a format by; none of one that there is no kernel for.
pub(crate) fn format_code(format: KvFormat) -> Option<i32> {
    match format {
        KvFormat::Float(DType::F32) => Some(0),
        KvFormat::Float(DType::F16) => Some(1),
        KvFormat::Float(DType::Bf16) => Some(2),
        KvFormat::Int8PerTokenHead => Some(3),
        _ => None,
    }
}

fn base() -> Launch {
    Launch::new("cache", &WRITE, "cache_write")
}

/// Every program that writes rows as they are.
pub(crate) fn programs() -> Vec<Program> {
    vec![base().program()]
}

/// Rows `k` and `v`, F32 `[tokens, kv_heads, dim]`, that go to their slots of a layer.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) slots: &'a CudaSlots,
    pub(crate) cache: &'a CudaKvCache,
    pub(crate) layer: usize,
    pub(crate) k: &'a Tensor<Cuda>,
    pub(crate) v: &'a Tensor<Cuda>,
}

impl Place<'_> {
    /// `CACHE_PARAMETERS`, and then the rows and their strides.
    pub(crate) fn describe(self, launch: Launch) -> Launch {
        let Place { slots, cache, layer, k, v } = self;
        let (spec, layer) = (cache.spec(), cache.layer(layer));
        let (k_rows, v_rows) = (Rows::of(k), Rows::of(v));
        launch
            .tensor("slots", slots.table())
            .bytes("keys", &layer.keys, 0)
            .bytes("values", &layer.values, 0)
            .bytes("scales of keys", &layer.key_scales, 0)
            .bytes("scales of values", &layer.value_scales, 0)
            .size("tokens", slots.tokens())
            .size("kv_heads", spec.kv_heads)
            .size("slots of the cache", cache.slots())
            .size("head_dim", spec.head_dim)
            .size("value_head_dim", spec.value_head_dim)
            .int(cache.format())
            .tensor("k", k)
            .tensor("v", v)
            .size("k's stride", k_rows.outer_stride)
            .size("k's stride", k_rows.inner_stride)
            .size("v's stride", v_rows.outer_stride)
            .size("v's stride", v_rows.inner_stride)
    }
}

/// One layer's rows to their slots.
pub(super) fn write(stream: &mut CudaStream, place: Place<'_>) -> Result<()> {
    let spec = place.cache.spec();
    let latent = spec.values == KvValues::KeyPrefix;
    let (split, kinds) = if latent { (spec.value_head_dim, 1) } else { (spec.head_dim, 2) };
    let rows = place.slots.tokens() * spec.kv_heads * kinds;
    let launch = place.describe(base()).size("split", split).size("kinds", kinds);
    stream.launch(launch.grid([rows.div_ceil(ROWS), 1, 1]))
}
