//! Bad arguments of the cache: refused, and not a byte of it changed.

use super::{compare, place, poisoned, spec};
use crate::{
    case::{Shown, Verdict},
    judge::refused,
    poison::{Guarded, Layout},
};
use halite_kernels::{
    Backend, DType,
    cache::{BlockCopies, BlockExport, BlockImport, CacheWriteArgs, KvSpec, SlotMapping},
};

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("specs that make no sense", specs),
        ("slots and tensors that do not fit", writes),
        ("blocks that do not exist or come twice", blocks),
        ("latents where they do not fit", super::latent::errors),
    ]
}

fn specs<B: Backend>(device: &B) -> Verdict {
    let base = || spec(2, 4, 3, DType::F32);
    let with = |change: fn(&mut KvSpec)| {
        let mut spec = base();
        change(&mut spec);
        spec
    };
    for (argument, spec) in [
        ("layers", with(|s| s.layers = 0)),
        ("kv_heads", with(|s| s.kv_heads = 0)),
        ("head_dim", with(|s| s.head_dim = 0)),
        ("value_head_dim", with(|s| s.value_head_dim = 0)),
        ("block_size", with(|s| s.block_size = 0)),
        ("bytes", with(|s| s.head_dim = usize::MAX)),
        ("bytes", with(|s| (s.head_dim, s.kv_heads) = (1 << 40, 1 << 30))),
    ] {
        refused("cache", argument, spec.block_bytes())?;
        refused("cache", argument, device.kv_cache(&spec, 1))?;
    }
    refused("cache", "blocks", device.kv_cache(&base(), 1 << 31))?;
    let large = KvSpec::new(1 << 20, 1 << 10, 1 << 10);
    refused("cache", "bytes", device.kv_cache(&large, i32::MAX as usize))
}

fn writes<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let (cache, expected) = poisoned(device, stream, &spec(2, 4, 3, DType::F32), 2)?;
    let (other, _) = poisoned(device, stream, &spec(2, 4, 3, DType::F32), 3)?;
    let mut plan = device.slots_plan(&cache, 2)?;
    for (argument, slots) in [
        ("tokens", &[0, 1, 2][..]),
        ("slot_mapping", &[0, 6]),
        ("slot_mapping", &[i64::MAX]),
        ("slot_mapping", &[1 << 32]),
        ("slot_mapping", &[4, 4]),
    ] {
        refused("cache", argument, SlotMapping { slots }.check(&plan))?;
    }
    // A step belongs to plans of the limits that it was checked against.
    let mapping = SlotMapping { slots: &[5, 0] }.check(&plan)?;
    for mut other in [device.slots_plan(&other, 2)?, device.slots_plan(&cache, 1)?] {
        refused("cache", "step", device.slots_update(stream, &mut other, &mapping))?;
    }
    // Skipped tokens share no slot.
    place(device, stream, &mut plan, &[-1, -1])?;
    place(device, stream, &mut plan, &[5, 0])?;
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let (k, v) = (tensor(DType::F32, &[2, 2, 4])?, tensor(DType::F32, &[2, 2, 4])?);
    let (half, long, flat) =
        (tensor(DType::F16, &[2, 2, 4])?, tensor(DType::F32, &[3, 2, 4])?, tensor(DType::F32, &[2, 8])?);
    let args = |cache, layer, k, v| CacheWriteArgs::<B> { slots: &plan, cache, layer, k, v };
    for (argument, args) in [
        ("layer", args(&cache, 2, &k.view, &v.view)),
        ("slots", args(&other, 0, &k.view, &v.view)),
        ("k", args(&cache, 0, &half.view, &v.view)),
        ("k", args(&cache, 0, &long.view, &v.view)),
        ("k", args(&cache, 0, &flat.view, &v.view)),
        ("v", args(&cache, 0, &k.view, &long.view)),
        ("v", args(&cache, 0, &k.view, &half.view)),
    ] {
        refused("cache", argument, args.check())?;
    }
    compare(device, stream, &cache, &expected)
}

fn blocks<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let (cache, expected) = poisoned(device, stream, &spec(2, 4, 3, DType::F32), 2)?;
    let size = expected.block_bytes();
    for (argument, pairs) in [
        ("pairs", &[(0, 2)][..]),
        ("pairs", &[(2, 0)]),
        ("pairs", &[(u32::MAX, 0)]),
        ("pairs", &[(0, 1), (1, 1)]),
    ] {
        refused("cache", argument, BlockCopies { cache: &cache, pairs }.check())?;
    }
    refused("cache", "blocks", BlockExport { cache: &cache, blocks: &[0, 2] }.check())?;
    for (argument, blocks, bytes) in [
        ("blocks", &[2][..], size),
        ("bytes", &[0], size - 1),
        ("bytes", &[0], size + 1),
        ("bytes", &[0, 1], size),
        ("bytes", &[], 1),
        ("blocks", &[1, 1], 2 * size),
    ] {
        let bytes = vec![0; bytes];
        refused("cache", argument, BlockImport { cache: &cache, blocks, bytes: &bytes }.check())?;
    }
    compare(device, stream, &cache, &expected)
}
