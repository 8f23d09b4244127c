//! Blocks that go to another cache and come back.

use super::{FORMATS, compare, poisoned, spec};
use crate::{
    case::{Fault, Shown, Verdict},
    judge::refused,
    ledger::denied,
    oracle::cache::Blocks,
    random::Rng,
};
use halite_kernels::{
    Backend, DType,
    cache::{BlockImport, BlockTransfer, KvFormat, KvSpec},
};

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("out of the way and back", there_and_back),
        ("within one cache: a swap, a cycle, a fan-out", within_one),
        ("caches that do not fit, blocks that do not exist or come twice", errors),
    ]
}

/// A cache whose every slot is written, as an import.
fn filled<B: Backend>(
    device: &B,
    stream: &mut B::Stream,
    spec: &KvSpec,
    blocks: usize,
    seed: u64,
) -> Result<(B::KvCache, Blocks), Fault> {
    let (cache, mut expected) = poisoned(device, stream, spec, blocks)?;
    let mut rng = Rng::new(seed);
    let (kd, vd) = (spec.kv_heads * spec.head_dim, spec.kv_heads * spec.value_head_dim);
    for slot in 0..blocks * spec.block_size {
        for layer in 0..spec.layers {
            expected.write(layer, slot, &rng.aways(kd), &rng.aways(vd));
        }
    }
    let all: Vec<u32> = (0..blocks as u32).collect();
    let import = BlockImport { cache: &cache, blocks: &all, bytes: &expected.bytes }.check()?;
    device.cache_import(stream, import)?;
    Ok((cache, expected))
}

fn there_and_back<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    for format in FORMATS {
        let spec = spec(2, 5, 3, DType::F32).with_value_head_dim(7).with_format(format);
        if denied(device.cache_supports(&spec)) {
            continue;
        }
        // The other cache has another number of blocks.
        let (near, mut near_expected) = filled(device, stream, &spec, 5, 1)?;
        let (far, mut far_expected) = filled(device, stream, &spec, 3, 2)?;
        for (out, pairs) in [
            (true, &[(4, 0), (1, 2)][..]),
            (false, &[(0, 4), (2, 0)]),
            (true, &[(3, 1), (3, 0)]),
            (true, &[]),
        ] {
            let (from, to) = if out { (&near, &far) } else { (&far, &near) };
            device.cache_swap(stream, BlockTransfer { from, to, pairs }.check()?)?;
            if out {
                far_expected.copy_from(&near_expected, pairs);
            } else {
                near_expected.copy_from(&far_expected, pairs);
            }
            compare(device, stream, &near, &near_expected)?;
            compare(device, stream, &far, &far_expected)?;
        }
    }
    Ok(())
}

fn within_one<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let spec = spec(1, 3, 2, DType::F32);
    for pairs in [&[(0, 1), (1, 0)][..], &[(0, 1), (1, 2), (2, 3), (3, 0)], &[(2, 0), (2, 1)], &[(1, 1)]] {
        let (cache, mut expected) = filled(device, stream, &spec, 4, 3)?;
        device.cache_swap(stream, BlockTransfer { from: &cache, to: &cache, pairs }.check()?)?;
        expected.copy(pairs);
        compare(device, stream, &cache, &expected)?;
    }
    Ok(())
}

fn errors<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let base = || spec(2, 4, 3, DType::F32);
    let (from, from_expected) = filled(device, stream, &base(), 2, 4)?;
    let (to, to_expected) = filled(device, stream, &base(), 3, 5)?;
    let transfer = |pairs| BlockTransfer { from: &from, to: &to, pairs };
    for pairs in [&[(2, 0)][..], &[(0, 3)], &[(u32::MAX, 0)], &[(0, 1), (1, 1)]] {
        refused("cache", "pairs", transfer(pairs).check())?;
    }
    for other in [
        base().with_value_head_dim(5),
        base().with_block_size(4),
        base().with_dtype(DType::F16),
        base().with_format(KvFormat::Int8PerTokenHead),
    ] {
        if denied(device.cache_supports(&other)) {
            continue;
        }
        let other = device.kv_cache(&other, 3)?;
        refused("cache", "to", BlockTransfer { from: &from, to: &other, pairs: &[] }.check())?;
    }
    compare(device, stream, &from, &from_expected)?;
    compare(device, stream, &to, &to_expected)
}
