//! The KV cache, judged: every slot, written or not, is compared to the last bit.

mod errors;
pub(crate) mod int8;
pub(crate) mod latent;
mod swap;

use crate::{
    case::{Fault, Group, Verdict, ensure},
    judge::{judge_quantised, same_bits, unsupported},
    ledger::denied,
    oracle::cache::{Blocks, Kind},
    poison::{Guarded, Layout, Region},
    random::Rng,
    tolerance::Bound,
};
use halite_hal::Pending;
use halite_kernels::{
    Backend, DType,
    cache::{
        BlockCopies, BlockExport, BlockImport, CacheWriteArgs, KvCacheInfo, KvFormat, KvSpec, KvValues,
        LatentWriteArgs, SlotMapping, SlotPlan,
    },
};

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];
const FORMATS: [KvFormat; 4] = [
    KvFormat::Float(DType::F32),
    KvFormat::Float(DType::F16),
    KvFormat::Float(DType::Bf16),
    KvFormat::Int8PerTokenHead,
];
const LAYOUTS: [Layout; 3] =
    [Layout::Dense, Layout::Rows { before: 3, after: 5 }, Layout::Heads { after: 3 }];

/// Some tokens written into a poisoned cache, layer by layer, then blocks copied.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct Case {
    /// The cache.
    pub spec: KvSpec,
    /// Its blocks.
    pub blocks: usize,
    /// A slot a token; -1 is skipped.
    pub slots: Vec<i64>,
    /// Copies after the write.
    pub copies: Vec<(u32, u32)>,
    /// How keys and values lie in memory.
    pub layout: Layout,
    /// Of the data.
    pub seed: u64,
}

/// All groups of this family.
pub(crate) fn groups<B: Backend>() -> Vec<Group<B>> {
    vec![
        Group::listed("cache", "edges", edges(), body),
        Group::listed("cache", "supports", supports(), body),
        Group::seeded("cache", "random", 40, random, body),
        Group::bodies(
            "cache",
            "blocks",
            vec![
                ("keys and values of one fused buffer", fused),
                ("a block moves to another cache", moved),
                ("ranges: beyond F16, subnormal, NaN", ranges),
                ("a swap, a cycle, a fan-out", copies),
            ],
        ),
        Group::bodies("cache", "int8", int8::bodies()),
        Group::listed("cache", "latent", latent::cases(), body),
        Group::bodies("cache", "swap", swap::bodies()),
        Group::bodies("cache", "errors", errors::bodies()),
    ]
}

fn spec(kv_heads: usize, head_dim: usize, block_size: usize, dtype: DType) -> KvSpec {
    KvSpec::new(2, kv_heads, head_dim).with_block_size(block_size).with_dtype(dtype)
}

fn edges() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, block_size) in [1, 2, 7, 8, 16, 32, 64, 128, 256].into_iter().enumerate() {
        for head_dim in [1, 2, 15, 16, 17, 56, 64, 80] {
            let value_head_dim = if number % 2 == 0 { head_dim } else { head_dim + 3 };
            let kv = KvSpec::new(2, 1 + number % 3, head_dim)
                .with_block_size(block_size)
                .with_format(FORMATS[(number + cases.len()) % 4])
                .with_value_head_dim(value_head_dim);
            let last = (3 * block_size) as i64 - 1;
            let slots = vec![last, -1, 0, block_size as i64, i64::MIN, block_size as i64 - 1];
            let mut slots: Vec<i64> = if block_size == 1 { vec![last, -1, 0] } else { slots };
            slots.truncate(head_dim);
            cases.push(Case {
                spec: kv,
                blocks: 3,
                slots,
                copies: vec![(0, 1)],
                layout: LAYOUTS[number % 3],
                seed: number as u64,
            });
        }
    }
    let nothing = Case {
        spec: spec(2, 8, 4, DType::F32),
        blocks: 3,
        slots: vec![],
        copies: vec![],
        layout: LAYOUTS[0],
        seed: 0,
    };
    cases.push(Case { blocks: 0, ..nothing.clone() });
    cases.push(nothing);
    cases
}

fn supports() -> Vec<Case> {
    let case = |format| Case {
        spec: KvSpec::new(2, 3, 32).with_value_head_dim(48).with_format(format),
        blocks: 4,
        slots: vec![63, 17, 2],
        copies: vec![(3, 0), (0, 3)],
        layout: LAYOUTS[1],
        seed: 2,
    };
    let none = [DType::I8, DType::U8, DType::I32].map(KvFormat::Float);
    FORMATS.into_iter().chain(none).map(case).collect()
}

fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let (block_size, blocks) = (1 + rng.below(20), 1 + rng.below(6));
    let spec = KvSpec::new(2, 1 + rng.below(4), 1 + rng.below(70))
        .with_block_size(block_size)
        .with_format(rng.pick(&FORMATS))
        .with_value_head_dim(1 + rng.below(70));
    let mut slots: Vec<i64> = rng.permutation(blocks * block_size).into_iter().map(|s| s as i64).collect();
    slots.truncate(rng.below(12));
    slots.iter_mut().skip(1).step_by(4).for_each(|slot| *slot = -1);
    let order = rng.permutation(blocks);
    let copies = order.iter().take(2).map(|&to| (rng.below(blocks) as u32, to as u32)).collect();
    Case { spec, blocks, slots, copies, layout: rng.pick(&LAYOUTS), seed }
}

/// A cache whose every slot is poison.
pub(crate) fn poisoned<B: Backend>(
    device: &B,
    stream: &mut B::Stream,
    spec: &KvSpec,
    blocks: usize,
) -> Result<(B::KvCache, Blocks), Fault> {
    let cache = device.kv_cache(spec, blocks)?;
    let expected = Blocks::poisoned(spec, blocks);
    let all: Vec<u32> = (0..blocks as u32).collect();
    let import = BlockImport { cache: &cache, blocks: &all, bytes: &expected.bytes }.check()?;
    device.cache_import(stream, import)?;
    Ok((cache, expected))
}

/// Updates the slots of a step.
pub(crate) fn place<B: Backend>(
    device: &B,
    stream: &mut B::Stream,
    plan: &mut B::Slots,
    slots: &[i64],
) -> Verdict {
    let mapping = SlotMapping { slots }.check(plan)?;
    Ok(device.slots_update(stream, plan, &mapping)?)
}

/// The whole cache in the canonical layout.
pub(crate) fn contents<B: Backend>(
    device: &B,
    stream: &mut B::Stream,
    cache: &B::KvCache,
) -> Result<Vec<u8>, Fault> {
    let all: Vec<u32> = (0..cache.blocks() as u32).collect();
    Ok(device.cache_export(stream, BlockExport { cache, blocks: &all }.check()?)?.wait()?)
}

/// Every byte of the cache is what it should be.
fn compare<B: Backend>(device: &B, stream: &mut B::Stream, cache: &B::KvCache, expected: &Blocks) -> Verdict {
    same_bits("the exported cache", &contents(device, stream, cache)?, &expected.bytes)
}

/// One layer's tokens: their slots, keys and values.
#[derive(Clone, Copy)]
struct Written<'a> {
    layer: usize,
    slots: &'a [i64],
    k: &'a [f32],
    v: &'a [f32],
}

impl Written<'_> {
    /// Every byte of the cache is what it should be after this was written to what was expected before it. INT8 rows
    /// are judged, and expected from then on as they came.
    fn judge<B: Backend>(
        self,
        device: &B,
        stream: &mut B::Stream,
        cache: &B::KvCache,
        expected: &mut Blocks,
    ) -> Verdict {
        let spec = cache.spec();
        let got = Blocks::of(spec, contents(device, stream, cache)?);
        ensure(got.bytes.len() == expected.bytes.len(), || format!("{} bytes", got.bytes.len()))?;
        let (kd, vd) = (spec.kv_heads * spec.head_dim, spec.kv_heads * Kind::Values.dim(spec));
        for (token, &slot) in self.slots.iter().enumerate().filter(|(_, slot)| **slot >= 0) {
            let (slot, layer) = (slot as usize, self.layer);
            let (k, v) = (&self.k[token * kd..][..kd], &self.v[token * vd..][..vd]);
            if spec.format != KvFormat::Int8PerTokenHead {
                expected.write(layer, slot, k, v);
                continue;
            }
            for (kind, row) in Kind::ALL.into_iter().zip([k, v]) {
                let exact: Vec<Bound> = row.iter().map(|&x| Bound::exact(f64::from(x))).collect();
                let (q, scales) = (got.elements(kind, layer, slot), got.scales(kind, layer, slot));
                judge_quantised(kind.dim(spec), &exact, &q, &scales)
                    .map_err(|Fault(fault)| Fault(format!("{kind:?} of token {token}: {fault}")))?;
            }
            expected.take(layer, slot, &got);
        }
        same_bits("the exported cache", &got.bytes, &expected.bytes)
    }
}

fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { spec, blocks, slots, copies, layout, seed } = case;
    let stream = &mut device.stream()?;
    if denied(device.cache_supports(spec)) {
        return unsupported("cache", device.kv_cache(spec, *blocks));
    }
    let (cache, mut expected) = poisoned(device, stream, spec, *blocks)?;
    ensure(*cache.spec() == *spec && cache.blocks() == *blocks, || "the cache forgot its shape".into())?;
    ensure(cache.slots() == blocks * spec.block_size, || format!("{} slots", cache.slots()))?;
    compare(device, stream, &cache, &expected)?;

    let mut plan = device.slots_plan(&cache, slots.len() + 3)?;
    // A longer step before it: what it leaves in the table must not be used.
    let earlier = vec![-1; slots.len() + 3];
    place(device, stream, &mut plan, &earlier)?;
    place(device, stream, &mut plan, slots)?;
    ensure(plan.tokens() == slots.len(), || format!("the plan counts {} tokens", plan.tokens()))?;
    let mut rng = Rng::new(*seed);
    for layer in 0..spec.layers {
        let (kd, vd) = (spec.kv_heads * spec.head_dim, spec.kv_heads * Kind::Values.dim(spec));
        let (k_values, v_values) = (rng.spreads(slots.len() * kd), rng.spreads(slots.len() * vd));
        let written = Written { layer, slots, k: &k_values, v: &v_values };
        if spec.values == KvValues::KeyPrefix {
            let [latent, rope_key] = &latent::split::<B>(stream, spec, &k_values, *layout)?;
            let args = LatentWriteArgs { slots: &plan, cache: &cache, layer, latent, rope_key };
            device.cache_write_latent(stream, args.check()?)?;
            written.judge(device, stream, &cache, &mut expected)?;
            continue;
        }
        let dims = |dim| [slots.len(), spec.kv_heads, dim];
        let (k, _) = Guarded::<B>::input(stream, DType::F32, &k_values, &dims(spec.head_dim), *layout)?;
        let (v, _) = Guarded::<B>::input(stream, DType::F32, &v_values, &dims(spec.value_head_dim), *layout)?;
        let args = CacheWriteArgs { slots: &plan, cache: &cache, layer, k: &k.view, v: &v.view };
        device.cache_write(stream, args.check()?)?;
        written.judge(device, stream, &cache, &mut expected)?;
    }
    device.cache_copy(stream, BlockCopies { cache: &cache, pairs: copies }.check()?)?;
    expected.copy(copies);
    compare(device, stream, &cache, &expected)?;
    // In another order, and the same block twice.
    let order: Vec<u32> = (0..*blocks as u32).rev().chain(0..(*blocks).min(1) as u32).collect();
    let bytes =
        device.cache_export(stream, BlockExport { cache: &cache, blocks: &order }.check()?)?.wait()?;
    let wanted: Vec<u8> = order.iter().flat_map(|&block| expected.block(block as usize).to_vec()).collect();
    same_bits("blocks exported in reverse", &bytes, &wanted)
}

/// Keys and values beside queries in one `[tokens, width]` buffer.
fn fused<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let spec = spec(2, 16, 4, DType::F32);
    let (tokens, q, kv) = (5, 6 * 16, 2 * 16);
    let region = Region::<B>::new(stream, DType::F32, &[tokens, q + 2 * kv])?;
    let k = region.parent().narrow(1, q..q + kv)?.split_last(16)?;
    let v = region.parent().narrow(1, q + kv..q + 2 * kv)?.split_last(16)?;
    let mut rng = Rng::new(4);
    let (k_values, v_values) = (rng.aways(tokens * kv), rng.aways(tokens * kv));
    region.put(stream, &k, &k_values)?;
    region.put(stream, &v, &v_values)?;
    let (cache, mut expected) = poisoned(device, stream, &spec, 3)?;
    let mut plan = device.slots_plan(&cache, tokens)?;
    let slots = [3, 11, -1, 0, 4];
    place(device, stream, &mut plan, &slots)?;
    let args = CacheWriteArgs { slots: &plan, cache: &cache, layer: 1, k: &k, v: &v };
    device.cache_write(stream, args.check()?)?;
    for (token, &slot) in slots.iter().enumerate().filter(|(_, slot)| **slot >= 0) {
        expected.write(1, slot as usize, &k_values[token * kv..][..kv], &v_values[token * kv..][..kv]);
    }
    compare(device, stream, &cache, &expected)
}

fn moved<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    for format in FORMATS {
        let spec = spec(2, 5, 3, DType::F32).with_value_head_dim(7).with_format(format);
        if denied(device.cache_supports(&spec)) {
            continue;
        }
        let (from, mut source) = poisoned(device, stream, &spec, 2)?;
        let (to, mut target) = poisoned(device, stream, &spec, 4)?;
        let mut rng = Rng::new(8);
        for slot in 0..6 {
            source.write(slot % 2, slot, &rng.spreads(10), &rng.spreads(14));
        }
        let import = BlockImport { cache: &from, blocks: &[0, 1], bytes: &source.bytes }.check()?;
        device.cache_import(stream, import)?;
        let export = BlockExport { cache: &from, blocks: &[1, 0] }.check()?;
        let bytes = device.cache_export(stream, export)?.wait()?;
        let import = BlockImport { cache: &to, blocks: &[3, 1], bytes: &bytes }.check()?;
        device.cache_import(stream, import)?;
        let size = source.block_bytes();
        target.bytes[3 * size..].copy_from_slice(source.block(1));
        target.bytes[size..2 * size].copy_from_slice(source.block(0));
        compare(device, stream, &to, &target)?;
    }
    Ok(())
}

/// Rounded to nearest even; beyond F16's range infinite, as documented; NaN stays NaN.
fn ranges<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let values = [
        65_504.0,
        65_519.0,
        65_520.0,
        -1e6,
        3.4e38,
        5.9e-8,
        2.9e-8,
        1e-40,
        -0.0,
        1.000_488_3,
        1.003_906_3,
        1.011_718_8,
        f32::INFINITY,
        f32::NEG_INFINITY,
        0.333_333_34,
        2049.0,
    ];
    for dtype in FLOATS {
        let spec = spec(1, 16, 2, dtype);
        if denied(device.cache_supports(&spec)) {
            continue;
        }
        let (cache, mut expected) = poisoned(device, stream, &spec, 1)?;
        let mut plan = device.slots_plan(&cache, 1)?;
        place(device, stream, &mut plan, &[1])?;
        let (k, _) = Guarded::<B>::input(stream, DType::F32, &values, &[1, 1, 16], Layout::Dense)?;
        let args = CacheWriteArgs { slots: &plan, cache: &cache, layer: 0, k: &k.view, v: &k.view };
        device.cache_write(stream, args.check()?)?;
        expected.write(0, 1, &values, &values);
        compare(device, stream, &cache, &expected)?;
    }
    Ok(())
}

fn copies<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let spec = spec(1, 3, 2, DType::F32);
    for pairs in [
        &[(0, 1), (1, 0)][..],
        &[(0, 1), (1, 2), (2, 3), (3, 0)],
        &[(2, 0), (2, 1), (2, 3)],
        &[(1, 1)],
        &[(0, 1), (1, 2)],
        &[],
    ] {
        let (cache, mut expected) = poisoned(device, stream, &spec, 4)?;
        let mut rng = Rng::new(6);
        for slot in 0..8 {
            expected.write(0, slot, &rng.aways(3), &rng.aways(3));
            expected.write(1, slot, &rng.aways(3), &rng.aways(3));
        }
        let import = BlockImport { cache: &cache, blocks: &[0, 1, 2, 3], bytes: &expected.bytes }.check()?;
        device.cache_import(stream, import)?;
        device.cache_copy(stream, BlockCopies { cache: &cache, pairs }.check()?)?;
        expected.copy(pairs);
        compare(device, stream, &cache, &expected)?;
    }
    Ok(())
}
