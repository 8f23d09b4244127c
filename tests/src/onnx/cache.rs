//! `TensorScatter`.

use super::fixture::Fixture;
use crate::{Verdict, judge::same_bits, oracle};
use halite_hal::{Pending, Tensor};
use halite_kernels::{
    Backend, DType,
    cache::{BlockExport, BlockImport, CacheWriteArgs, KvSpec, SlotMapping},
};

/// A cache of one block a batch entry; keys are the fixture's, values stay zero. The oracle's cache is asked too.
pub(super) fn scatter<B: Backend>(device: &B, fixture: &Fixture) -> Verdict {
    let stream = &mut device.stream()?;
    let [past, update] = [fixture.array("input.0")?, fixture.array("input.1")?];
    let (indices, present) = (fixture.array("input.2")?, fixture.array("output.0")?);
    let rank = past.dims.len();
    let (batch, block_size, dim, count) =
        (past.dims[0], past.dims[rank - 2], past.dims[rank - 1], update.dims[rank - 2]);
    let spec = KvSpec::new(1, 1, dim).with_block_size(block_size).with_dtype(DType::F32);
    let canonical = |values: &[f32]| -> Vec<u8> {
        let block = |keys: &[f32]| {
            let values = vec![0f32; keys.len()];
            keys.iter().chain(&values).flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()
        };
        values.chunks_exact(block_size * dim).flat_map(block).collect()
    };
    let slots: Vec<i64> = (0..batch * count)
        .map(|token| {
            let at = indices.values[token / count] as usize + token % count;
            // A ring where `mode` is circular; otherwise nothing lies beyond the end.
            (token / count * block_size + at % block_size) as i64
        })
        .collect();
    let expected = canonical(&present.floats());

    let mut plain = oracle::cache::Blocks::poisoned(&spec, batch);
    plain.bytes = canonical(&past.floats());
    for (&slot, keys) in slots.iter().zip(update.floats().chunks_exact(dim)) {
        plain.write(0, slot as usize, keys, &vec![0.0; dim]);
    }
    same_bits(&format!("{}, by the oracle", fixture.name), &plain.bytes, &expected)?;

    let cache = device.kv_cache(&spec, batch)?;
    let blocks: Vec<u32> = (0..batch as u32).collect();
    let bytes = canonical(&past.floats());
    device.cache_import(stream, BlockImport { cache: &cache, blocks: &blocks, bytes: &bytes }.check()?)?;
    let mut plan = device.slots_plan(&cache, slots.len())?;
    let mapping = SlotMapping { slots: &slots }.check(&plan)?;
    device.slots_update(stream, &mut plan, &mapping)?;
    let k = Tensor::<B>::from_slice(stream, &update.floats(), &[slots.len(), 1, dim])?;
    let v = Tensor::<B>::from_slice(stream, &vec![0f32; slots.len() * dim], &[slots.len(), 1, dim])?;
    let args = CacheWriteArgs { slots: &plan, cache: &cache, layer: 0, k: &k, v: &v };
    device.cache_write(stream, args.check()?)?;
    let export = BlockExport { cache: &cache, blocks: &blocks }.check()?;
    let got = device.cache_export(stream, export)?.wait()?;
    same_bits(&fixture.name, &got, &expected)
}
