//! Caches that keep values as the first elements of keys, written as latents and rotated keys.

use super::{Case, FLOATS, LAYOUTS, compare, place, poisoned};
use crate::{
    case::{Fault, Verdict},
    judge::refused,
    poison::{Guarded, Layout},
    random::Rng,
};
use halite_kernels::{
    Backend, DType, Tensor,
    cache::{CacheWriteArgs, KvFormat, KvSpec, KvValues, LatentWriteArgs},
};

/// DeepSeek's sizes and odd ones, blocks of every size, several heads too.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, block_size) in [1, 2, 7, 16, 33, 64, 256].into_iter().enumerate() {
        for (rank, rope_dim) in [(512, 64), (40, 6), (1, 1), (17, 16), (9, 0)] {
            let mut spec = KvSpec::latent(2, rank, rope_dim)
                .with_block_size(block_size)
                .with_dtype(FLOATS[cases.len() % 3]);
            spec.kv_heads = 1 + number % 2;
            let last = (3 * block_size) as i64 - 1;
            let slots =
                if block_size == 1 { vec![last, -1, 0] } else { vec![last, -1, 0, block_size as i64] };
            let (copies, layout) = (vec![(0, 1), (2, 0)], LAYOUTS[cases.len() % 3]);
            cases.push(Case { spec, blocks: 3, slots, copies, layout, seed: number as u64 });
        }
    }
    cases
}

/// `[tokens, kv_heads, head_dim]` as what a write takes: latents, and rotated keys.
pub(crate) fn split<B: Backend>(
    stream: &mut B::Stream,
    spec: &KvSpec,
    rows: &[f32],
    layout: Layout,
) -> Result<[Tensor<B>; 2], Fault> {
    let (rank, tokens) = (spec.value_head_dim, rows.len() / (spec.kv_heads * spec.head_dim));
    let rows = || rows.chunks_exact(spec.head_dim);
    let latent: Vec<f32> = rows().flat_map(|row| row[..rank].to_vec()).collect();
    let rope_key: Vec<f32> = rows().flat_map(|row| row[rank..].to_vec()).collect();
    let dims = |dim| [tokens, spec.kv_heads, dim];
    let (latent, _) = Guarded::<B>::input(stream, DType::F32, &latent, &dims(rank), layout)?;
    let (rope_key, _) =
        Guarded::<B>::input(stream, DType::F32, &rope_key, &dims(spec.head_dim - rank), layout)?;
    Ok([latent.view, rope_key.view])
}

pub(super) fn errors<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let spec = KvSpec::latent(2, 8, 4).with_block_size(3).with_dtype(DType::F32);
    for (argument, bad) in [
        ("value_head_dim", KvSpec::latent(2, 0, 4)),
        ("value_head_dim", KvSpec::new(2, 1, 8).with_value_head_dim(9)),
        ("format", spec.clone().with_format(KvFormat::Int8PerTokenHead)),
        ("bytes", KvSpec::latent(2, usize::MAX, 1)),
    ] {
        let mut bad = bad;
        bad.values = KvValues::KeyPrefix;
        refused("cache", argument, bad.block_bytes())?;
        refused("cache", argument, device.kv_cache(&bad, 1))?;
    }
    let (cache, expected) = poisoned(device, stream, &spec, 2)?;
    let (ordinary, _) = poisoned(device, stream, &KvSpec::new(2, 1, 12).with_block_size(3), 2)?;
    let (other, _) = poisoned(device, stream, &spec, 3)?;
    let mut slots = device.slots_plan(&cache, 2)?;
    place(device, stream, &mut slots, &[5, 0])?;
    let rows = Rng::new(1).aways(2 * 12);
    let [latent, rope_key] = split::<B>(stream, &spec, &rows, Layout::Dense)?;
    let whole = Tensor::<B>::from_slice(stream, &rows, &[2, 1, 12])?;
    let short = latent.narrow(0, 0..1)?;
    let args = |cache, layer, latent, rope_key| LatentWriteArgs::<B> {
        slots: &slots,
        cache,
        layer,
        latent,
        rope_key,
    };
    for (argument, args) in [
        ("cache", args(&ordinary, 0, &latent, &rope_key)),
        ("layer", args(&cache, 2, &latent, &rope_key)),
        ("slots", args(&other, 0, &latent, &rope_key)),
        ("latent", args(&cache, 0, &whole, &rope_key)),
        ("latent", args(&cache, 0, &short, &rope_key)),
        ("rope_key", args(&cache, 0, &latent, &whole)),
        ("rope_key", args(&cache, 0, &latent, &latent)),
    ] {
        refused("cache", argument, args.check())?;
    }
    let write = CacheWriteArgs::<B> { slots: &slots, cache: &cache, layer: 0, k: &whole, v: &latent };
    refused("cache", "cache", write.check())?;
    compare(device, stream, &cache, &expected)
}
