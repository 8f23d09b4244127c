//! Rotation and cache write in one call, against the two calls: the same bits.

use super::{Case as Rotation, STYLES, every_scaling, update};
use crate::{
    case::Verdict,
    judge::{same_bits, unsupported},
    ledger::denied,
    poison::{Guarded, Region},
    random::Rng,
};
use halite_hal::Pending;
use halite_kernels::{
    Backend, DType, Tensor,
    cache::{BlockExport, BlockImport, CacheWriteArgs, KvFormat, KvSpec, SlotMapping},
    rope::{Direction, RopeArgs, RopeSpec, RopeWriteArgs},
};

const FORMATS: [KvFormat; 4] = [
    KvFormat::Float(DType::F32),
    KvFormat::Float(DType::F16),
    KvFormat::Float(DType::Bf16),
    KvFormat::Int8PerTokenHead,
];
const BLOCKS: usize = 3;

/// One call.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// The rotation, its query heads and positions; its layout is that of queries, keys and values.
    rotation: Rotation,
    /// The cache.
    kv: KvSpec,
    /// A slot a token, negative ones skipped.
    slots: Vec<i64>,
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, (head_dim, rotary_dim, value_head_dim)) in
        [(2, 2, 1), (16, 16, 16), (34, 34, 34), (64, 48, 64), (80, 30, 17), (128, 128, 128)]
            .into_iter()
            .enumerate()
    {
        for format in FORMATS {
            for style in STYLES {
                let scaling = every_scaling(rotary_dim / 2).swap_remove(number);
                let spec =
                    RopeSpec::new(head_dim, style, 5000).with_rotary_dim(rotary_dim).with_scaling(scaling);
                for slots in [vec![], vec![4], vec![7, -1, 0, 11, 3]] {
                    let positions = (0..slots.len() as u32).map(|token| token * 1001).collect();
                    let mut rotation = Rotation::new(spec.clone(), 1 + number, positions);
                    rotation.layout = super::LAYOUTS[number % 3];
                    let kv = KvSpec::new(2, 1 + number % 2, head_dim)
                        .with_value_head_dim(value_head_dim)
                        .with_block_size(4)
                        .with_format(format);
                    cases.push(Case { rotation, kv, slots });
                }
            }
        }
    }
    cases
}

pub(super) fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed ^ 0x3217E);
    let mut rotation = super::random(seed);
    rotation.spec.dtype = DType::F32;
    rotation.direction = Direction::Forward;
    let kv = KvSpec::new(1 + rng.below(2), 1 + rng.below(3), rotation.spec.head_dim)
        .with_value_head_dim(1 + rng.below(70))
        .with_block_size(3 + rng.below(6))
        .with_format(rng.pick(&FORMATS));
    let slots = rng.permutation(BLOCKS * kv.block_size).into_iter();
    let slots = slots.take(rotation.tokens()).map(|slot| if rng.below(5) == 0 { -1 } else { slot as i64 });
    Case { kv, slots: slots.collect(), rotation }
}

/// A cache whose blocks hold known bytes, so that a write elsewhere shows.
fn filled<B: Backend>(device: &B, stream: &mut B::Stream, kv: &KvSpec) -> Result<B::KvCache, crate::Fault> {
    let cache = device.kv_cache(kv, BLOCKS)?;
    let bytes = vec![0x11; kv.cache_bytes(BLOCKS)? as usize];
    let blocks: Vec<u32> = (0..BLOCKS as u32).collect();
    device.cache_import(stream, BlockImport { cache: &cache, blocks: &blocks, bytes: &bytes }.check()?)?;
    Ok(cache)
}

fn contents<B: Backend>(
    device: &B,
    stream: &mut B::Stream,
    cache: &B::KvCache,
) -> Result<Vec<u8>, crate::Fault> {
    let blocks: Vec<u32> = (0..BLOCKS as u32).collect();
    Ok(device.cache_export(stream, BlockExport { cache, blocks: &blocks }.check()?)?.wait()?)
}

pub(super) fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { rotation, kv, slots: mapping } = case;
    let (spec, tokens) = (&rotation.spec, rotation.tokens());
    let stream = &mut device.stream()?;
    let planned = device.rope_plan(spec, tokens + 2);
    if denied(device.rope_supports(spec)) {
        return unsupported("rope", planned);
    }
    let (mut plan, made) = (planned?, device.kv_cache(kv, BLOCKS).map(drop));
    if denied(device.cache_supports(kv)) {
        return unsupported("cache", made);
    }
    update(device, stream, &mut plan, rotation)?;
    let (fused, apart) = (filled(device, stream, kv)?, filled(device, stream, kv)?);
    let mut slots = device.slots_plan(&fused, tokens)?;
    let step = SlotMapping { slots: mapping }.check(&slots)?;
    device.slots_update(stream, &mut slots, &step)?;
    let layer = kv.layers - 1;

    let mut rng = Rng::new(rotation.seed);
    let dims = [rotation.heads, kv.kv_heads].map(|heads| [tokens, heads, spec.head_dim]);
    let v_dims = [tokens, kv.kv_heads, kv.value_head_dim];
    let [q_values, k_values, v_values] =
        [dims[0], dims[1], v_dims].map(|dims| rng.spreads(dims.iter().product()));
    let mut input = |values: &[f32], dims: &[usize; 3]| {
        Guarded::<B>::input(stream, DType::F32, values, dims, rotation.layout).map(|(guarded, _)| guarded)
    };
    let (q, turned_q) = (input(&q_values, &dims[0])?, input(&q_values, &dims[0])?);
    let (k, turned_k) = (input(&k_values, &dims[1])?, input(&k_values, &dims[1])?);
    let v = input(&v_values, &v_dims)?;

    for x in [&turned_q.view, &turned_k.view] {
        device.rope(stream, RopeArgs { plan: &plan, direction: Direction::Forward, x }.check()?)?;
    }
    let args = CacheWriteArgs::<B> { slots: &slots, cache: &apart, layer, k: &turned_k.view, v: &v.view };
    device.cache_write(stream, args.check()?)?;
    let (k_before, v_before) = (k.read_bytes(stream)?, v.read_bytes(stream)?);
    let args = RopeWriteArgs::<B> {
        plan: &plan,
        q: &q.view,
        slots: &slots,
        cache: &fused,
        layer,
        k: &k.view,
        v: &v.view,
    };
    device.rope_cache_write(stream, args.check()?)?;
    same_bits("q", &q.read_bytes(stream)?, &turned_q.read_bytes(stream)?)?;
    same_bits("k, which stays as it is", &k.read_bytes(stream)?, &k_before)?;
    same_bits("v, which stays as it is", &v.read_bytes(stream)?, &v_before)?;
    let (fused, apart) = (contents(device, stream, &fused)?, contents(device, stream, &apart)?);
    same_bits("the cache", &fused, &apart)?;
    packed(device, stream, case, &plan, &slots, &[q_values, k_values, v_values], &fused)
}

/// Queries, keys and values as columns of one matrix, which does not begin at a multiple of its rows.
fn packed<B: Backend>(
    device: &B,
    stream: &mut B::Stream,
    case: &Case,
    plan: &B::RopePlan,
    slots: &B::Slots,
    values: &[Vec<f32>; 3],
    expected: &[u8],
) -> Verdict {
    let Case { rotation, kv, .. } = case;
    let (tokens, head_dim) = (rotation.tokens(), rotation.spec.head_dim);
    let widths = [rotation.heads * head_dim, kv.kv_heads * head_dim, kv.kv_heads * kv.value_head_dim];
    let (dims, before) = ([tokens + 2, widths.iter().sum::<usize>() + 3], tokens + 3);
    let region = Region::<B>::new(stream, DType::F32, &[before + dims[0] * dims[1]])?;
    let matrix = region.parent().narrow(0, before..before + dims[0] * dims[1])?.reshape(&dims)?;
    let rows = matrix.narrow(0, 1..tokens + 1)?;
    let mut start = 2;
    let mut views: Vec<Tensor<B>> = Vec::new();
    for ((width, dim), values) in widths.into_iter().zip([head_dim, head_dim, kv.value_head_dim]).zip(values)
    {
        let view = rows.narrow(1, start..start + width)?.split_last(dim)?;
        region.put(stream, &view, values)?;
        views.push(view);
        start += width;
    }
    let cache = filled(device, stream, kv)?;
    let (q, k, v) = (&views[0], &views[1], &views[2]);
    let args = RopeWriteArgs::<B> { plan, q, slots, cache: &cache, layer: kv.layers - 1, k, v };
    device.rope_cache_write(stream, args.check()?)?;
    let after = region.get(stream, &[q, k, v])?;
    let as_put = |values: &[f32]| values.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    crate::case::ensure(after[1] == as_put(&values[1]) && after[2] == as_put(&values[2]), || {
        "keys or values beside the queries changed".into()
    })?;
    same_bits("the cache, from columns of one matrix", &contents(device, stream, &cache)?, expected)
}
