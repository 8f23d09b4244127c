//! INT8 keys and values: what scales stand beside them, whatever stood there before.

use super::{Written, compare, place, poisoned};
use crate::{
    case::{Fault, Shown, Verdict, ensure},
    ledger::denied,
    oracle::cache::{Blocks, Kind},
    poison::{Guarded, Layout},
    quantize::{Row, row},
    random::Rng,
    tolerance::{Bound, U, quantised},
};
use halite_kernels::{
    Backend, DType,
    cache::{BlockCopies, CacheWriteArgs, KvCacheInfo, KvFormat, KvSpec},
};

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("rows of zeros, tiny, huge, ties, NaN", ranges),
        ("a reused slot has its new scale", reused),
        ("each head, keys and values apart", heads),
        ("a copied block takes its scales with it", copied),
    ]
}

fn spec(kv_heads: usize, head_dim: usize, value_head_dim: usize) -> KvSpec {
    let spec = KvSpec::new(2, kv_heads, head_dim).with_value_head_dim(value_head_dim);
    spec.with_block_size(3).with_format(KvFormat::Int8PerTokenHead)
}

/// Writes to layer 1 and judges every byte of the cache.
fn write<B: Backend>(
    device: &B,
    stream: &mut B::Stream,
    cache: &B::KvCache,
    expected: &mut Blocks,
    (slots, k, v): (&[i64], &[f32], &[f32]),
) -> Verdict {
    let spec = cache.spec().clone();
    let mut plan = device.slots_plan(cache, slots.len())?;
    place(device, stream, &mut plan, slots)?;
    let dims = |dim| [slots.len(), spec.kv_heads, dim];
    let (keys, _) = Guarded::<B>::input(stream, DType::F32, k, &dims(spec.head_dim), Layout::Dense)?;
    let (values, _) = Guarded::<B>::input(stream, DType::F32, v, &dims(spec.value_head_dim), Layout::Dense)?;
    let args = CacheWriteArgs { slots: &plan, cache, layer: 1, k: &keys.view, v: &values.view };
    device.cache_write(stream, args.check()?)?;
    Written { layer: 1, slots, k, v }.judge(device, stream, cache, expected)
}

fn supported<B: Backend>(device: &B, spec: &KvSpec) -> bool {
    !denied(device.cache_supports(spec))
}

/// A backend with IEEE division writes the documented F32 formula to the bit.
pub(crate) fn letter<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let spec = spec(KINDS.len(), 33, 70);
    if !supported(device, &spec) {
        return Ok(());
    }
    let (cache, mut expected) = poisoned(device, stream, &spec, 1)?;
    let mut rng = Rng::new(9);
    let mut rows = |dim| KINDS.map(|kind| row(&mut rng, kind, DType::F32, dim)).concat();
    let (k, v) = (rows(33), rows(70));
    let mut judged = expected.clone();
    write(device, stream, &cache, &mut judged, (&[2], &k, &v))?;
    expected.write(1, 2, &k, &v);
    // The payload of a NaN is nobody's business.
    for kind in Kind::ALL {
        let (got, want) = (judged.scales(kind, 1, 2), expected.scales(kind, 1, 2));
        let same = got.iter().zip(&want).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()));
        ensure(same, || format!("{kind:?}: scales {got:?} where {want:?} were expected"))?;
        let (got, want) = (judged.elements(kind, 1, 2), expected.elements(kind, 1, 2));
        ensure(got == want, || format!("{kind:?}: {got:?} where {want:?} were expected"))?;
    }
    Ok(())
}

const KINDS: [Row; 9] = [
    Row::Spread,
    Row::Zeros,
    Row::Tiny,
    Row::Subnormal,
    Row::Huge,
    Row::Constant,
    Row::Ties,
    Row::Nan,
    Row::Infinite,
];

fn ranges<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    for (head_dim, value_head_dim) in [(1, 1), (16, 16), (17, 33), (64, 80)] {
        let spec = spec(2, head_dim, value_head_dim);
        if !supported(device, &spec) {
            return Ok(());
        }
        let (cache, mut expected) = poisoned(device, stream, &spec, 3)?;
        let mut rng = Rng::new(5);
        let mut rows = |dim: usize, turn: usize| -> Vec<f32> {
            (0..2 * KINDS.len()).flat_map(|i| row(&mut rng, KINDS[(i + turn) % 9], DType::F32, dim)).collect()
        };
        // A token has two heads of different kinds, and values of others than its keys.
        let (k, v) = (rows(head_dim, 0), rows(value_head_dim, 4));
        let slots = [0, 8, 3, 1, 7, 4, 2, 6, 5];
        write(device, stream, &cache, &mut expected, (&slots, &k, &v))?;
        // What comes back is within half a step of what went in.
        let at = |token: usize, head: usize| (token * 2 + head) * head_dim;
        for (token, &slot) in slots.iter().enumerate() {
            let (back, scales) = (
                expected.values(Kind::Keys, 1, slot as usize),
                expected.scales(Kind::Keys, 1, slot as usize),
            );
            for (head, &scale) in scales.iter().enumerate().filter(|(_, scale)| scale.is_finite()) {
                let sent = &k[at(token, head)..][..head_dim];
                for (&sent, back) in sent.iter().zip(&back[head * head_dim..]) {
                    let sent = Bound::exact(f64::from(sent));
                    let step = (sent.value - back).abs() / scale;
                    // The product with the scale is rounded too.
                    let allowed = quantised(sent, Bound::exact(scale)) + 127.0 * U;
                    ensure(step <= allowed, || format!("{sent:?} came back as {back}, {step} steps off"))?;
                }
            }
        }
    }
    Ok(())
}

fn reused<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let spec = spec(2, 16, 5);
    if !supported(device, &spec) {
        return Ok(());
    }
    let (cache, mut expected) = poisoned(device, stream, &spec, 2)?;
    let mut rng = Rng::new(6);
    // Large, NaN, small, zeros: each scale must replace the one before.
    for size in [1e6, f32::NAN, 1e-6, 0.0, 1.0] {
        let mut sized = |count: usize| rng.aways(count).into_iter().map(|x| x * size).collect::<Vec<f32>>();
        let (k, v) = (sized(2 * 2 * 16), sized(2 * 2 * 5));
        write(device, stream, &cache, &mut expected, (&[4, 0], &k, &v))?;
    }
    Ok(())
}

fn heads<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let spec = spec(3, 8, 8);
    if !supported(device, &spec) {
        return Ok(());
    }
    let (cache, mut expected) = poisoned(device, stream, &spec, 2)?;
    let mut rng = Rng::new(7);
    let mut sized =
        |first: i32| -> Vec<f32> { (0..2 * 3 * 8).map(|i| rng.away() * 4f32.powi(first + i / 8)).collect() };
    let (k, v) = (sized(0), sized(-9));
    write(device, stream, &cache, &mut expected, (&[5, 1], &k, &v))
}

fn copied<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let spec = spec(2, 4, 6);
    if !supported(device, &spec) {
        return Ok(());
    }
    let (cache, mut expected) = poisoned(device, stream, &spec, 2)?;
    let mut rng = Rng::new(8);
    let (k, v) = (rng.spreads(3 * 2 * 4), rng.spreads(3 * 2 * 6));
    write(device, stream, &cache, &mut expected, (&[0, 1, 2], &k, &v))?;
    device.cache_copy(stream, BlockCopies { cache: &cache, pairs: &[(0, 1)] }.check()?)?;
    expected.copy(&[(0, 1)]);
    compare(device, stream, &cache, &expected).map_err(|Fault(fault)| Fault(format!("after a copy: {fault}")))
}
