//! Writing keys and values by slot.

use halite_hal::{DType, Result, Tensor};
use halite_kernels::cache::{CacheWriteArgs, KvCacheInfo, SlotPlan};

use crate::{
    copy,
    device::Ascend,
    memory::AscendBuffer,
    room::{Room, bytes},
    stream::AscendStream,
};

/// One layer's rows to their slots.
pub(super) fn write(stream: &mut AscendStream, args: &CacheWriteArgs<'_, Ascend>) -> Result<()> {
    let room = Room::new(stream.aside(aside(args.k, args.v))?);
    write_in(stream, args, room)
}

/// The most memory for what lies between a write's operators.
pub(crate) fn aside(k: &Tensor<Ascend>, v: &Tensor<Ascend>) -> u64 {
    bytes(DType::F32, k.dims()) + bytes(DType::F32, v.dims())
}

/// The same, with room for [`aside`].
pub(crate) fn write_in(
    stream: &mut AscendStream,
    args: &CacheWriteArgs<'_, Ascend>,
    mut room: Room,
) -> Result<()> {
    if args.slots.tokens() == 0 {
        return Ok(());
    }
    let spec = args.cache.spec();
    let layer = args.cache.layer(args.layer);
    let dtype = spec.format.element();
    let cache = |buffer: &AscendBuffer, dim: usize| {
        let dims = [args.cache.blocks(), spec.block_size, spec.kv_heads, dim];
        Tensor::from_buffer(buffer.clone(), 0, dtype, &dims)
    };
    let caches = [cache(&layer.keys, spec.head_dim)?, cache(&layer.values, spec.value_head_dim)?];
    let [k, v] = if dtype == DType::F32 && args.k.is_dense() && args.v.is_dense() {
        [args.k.clone(), args.v.clone()]
    } else {
        [stored(stream, &mut room, args.k, dtype)?, stored(stream, &mut room, args.v, dtype)?]
    };
    for run in args.slots.runs() {
        let (tokens, slots) = run?;
        let (k, v) = (k.narrow(0, tokens.clone())?, v.narrow(0, tokens)?);
        let tensors = [("k", &k), ("v", &v), ("slots", &slots), ("cache", &caches[0]), ("cache", &caches[1])];
        stream.run("cache", &tensors, |cann| {
            cann.scatter_pa_kv_cache([&k, &v], [&caches[0], &caches[1]], &slots)
        })?;
    }
    Ok(())
}

/// Rows in the cache's type and without gaps: CANN's document does not say that they may have some.
fn stored(
    stream: &mut AscendStream,
    room: &mut Room,
    rows: &Tensor<Ascend>,
    dtype: DType,
) -> Result<Tensor<Ascend>> {
    let stored = room.tensor("cache", dtype, rows.dims())?;
    if dtype == rows.dtype() {
        copy::elements(stream, rows, &stored)?;
    } else {
        stream.run("cache", &[("rows", rows)], |cann| cann.cast(rows, &stored))?;
    }
    Ok(stored)
}
