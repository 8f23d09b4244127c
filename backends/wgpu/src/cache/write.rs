//! Writing keys and values by slot.

use super::{WgpuKvCache, WgpuSlots};
use crate::{
    device::Wgpu,
    launch::{Access, Launch, Shader, spread},
    rows::Rows,
    stream::WgpuStream,
};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::cache::{KvCacheInfo, KvFormat, KvValues, SlotPlan};

static WRITE: Shader = Shader { name: "cache", source: &[ROW, include_str!("write.wgsl")] };

/// How a row gets to its slot, for every shader that has rows: `write_row`.
pub(crate) const ROW: &str = include_str!("row.wgsl");

/// The number that shaders know a format by; none of one that there is no kernel for.
pub(super) fn code(format: KvFormat) -> Option<u32> {
    match format {
        KvFormat::Float(DType::F32) => Some(0),
        KvFormat::Float(DType::F16) => Some(1),
        KvFormat::Float(DType::Bf16) => Some(2),
        KvFormat::Int8PerTokenHead => Some(3),
        _ => None,
    }
}

/// Rows `k` and `v`, F32 `[tokens, kv_heads, dim]`, that go to their slots of a layer.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) slots: &'a WgpuSlots,
    pub(crate) cache: &'a WgpuKvCache,
    pub(crate) layer: usize,
    pub(crate) k: &'a Tensor<Wgpu>,
    pub(crate) v: &'a Tensor<Wgpu>,
}

impl Place<'_> {
    /// What [`ROW`] needs, and the rows.
    pub(crate) fn describe(self, launch: Launch) -> Launch {
        let Place { slots, cache, layer, k: k_tensor, v: v_tensor } = self;
        let (spec, k, v) = (&cache.spec, Rows::of(k_tensor), Rows::of(v_tensor));
        launch
            .input("slots", &slots.table)
            .input("k", k_tensor)
            .input("v", v_tensor)
            .operand("keys", Access::Atomic, cache.keys(layer))
            .operand("values", Access::Atomic, cache.values(layer))
            .optional("scales", Access::Out, DType::F32, cache.all_scales(layer))
            .constant("FORMAT", cache.format)
            .constant("BYTES", spec.format.element().size() as u32)
            .size("tokens", slots.tokens())
            .size("kv_heads", spec.kv_heads)
            .size("cache_slots", cache.slots())
            .size("key_dim", spec.head_dim)
            .size("value_dim", spec.value_head_dim)
            .size("value_scales", cache.value_scales_at())
            .size("k_token", k.outer_stride)
            .size("k_head", k.inner_stride)
            .size("v_token", v.outer_stride)
            .size("v_head", v.inner_stride)
    }
}

/// One layer's rows to their slots.
pub(super) fn write(stream: &mut WgpuStream, place: Place<'_>) -> Result<()> {
    let (spec, tokens) = (&place.cache.spec, place.slots.tokens());
    let latent = spec.values == KvValues::KeyPrefix;
    let launch =
        place.describe(Launch::new(&WRITE)).flag("LATENT", latent).size("split", spec.value_head_dim);
    let rows = spec.kv_heads * if latent { 1 } else { 2 };
    stream.launch(launch, spread(tokens * rows))
}
