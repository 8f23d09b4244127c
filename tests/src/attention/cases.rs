//! The shapes that attention is tried with.

use super::{Case, Fill, Views, masks::with_trees};
use crate::{poison::Layout, random::Rng};
use halite_kernels::{
    DType,
    attention::{AttentionCompute, AttentionSpec, Mask, Sinks, ValueProducts, alibi_slopes},
    cache::{KvFormat, KvSpec},
};

pub(super) const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];
pub(super) const FORMATS: [KvFormat; 4] = [
    KvFormat::Float(DType::F32),
    KvFormat::Float(DType::F16),
    KvFormat::Float(DType::Bf16),
    KvFormat::Int8PerTokenHead,
];
const VIEWS: [Views; 4] = [
    Views::Apart(Layout::Dense),
    Views::Apart(Layout::Rows { before: 3, after: 5 }),
    Views::Apart(Layout::Heads { after: 3 }),
    Views::Fused,
];
/// One mask of each kind.
pub(super) const MASKS: [Mask; 5] = [
    Mask::Causal,
    Mask::Bidirectional,
    Mask::Sliding { window: 20 },
    Mask::Chunked { chunk: 24 },
    Mask::Tree,
];
/// Every arithmetic; those in INT8 need an INT8 cache.
pub(crate) const COMPUTES: [AttentionCompute; 3] = [
    AttentionCompute::Float,
    AttentionCompute::Int8 { values: ValueProducts::Float },
    AttentionCompute::Int8 { values: ValueProducts::Int8 },
];
/// Of kv_split in these cases, so that parts are many and short.
const SPLIT: usize = 64;

pub(super) fn kv(kv_heads: usize, head_dim: usize, block_size: usize, dtype: DType) -> KvSpec {
    KvSpec::new(2, kv_heads, head_dim).with_block_size(block_size).with_dtype(dtype)
}

pub(super) fn case(group: usize, kv: KvSpec, sequences: &[(usize, usize)]) -> Case {
    let number = group + kv.head_dim + kv.block_size + sequences.len();
    Case {
        spec: AttentionSpec::causal(group * kv.kv_heads, kv).with_kv_split(SPLIT),
        sequences: sequences.to_vec(),
        tree_parents: Vec::new(),
        sinks: 0.0,
        layer: number % 2,
        fill: Fill::Away,
        views: VIEWS[number % 4],
        log_sum_exp: !number.is_multiple_of(3),
        seed: number as u64,
    }
}

/// Head dims, value head dims and groups, prefill and decode.
pub(super) fn heads() -> Vec<Case> {
    let steps: [&[(usize, usize)]; 2] = [&[(1, 70), (1, 3)], &[(19, 83)]];
    let mut cases = Vec::new();
    for (number, head_dim) in [1, 2, 8, 15, 16, 17, 32, 33, 48, 56, 64, 80, 96, 112, 128, 192, 224, 256, 576]
        .into_iter()
        .enumerate()
    {
        for steps in steps {
            cases.push(case(1 + number % 3, kv(2, head_dim, 16, FLOATS[number % 3]), steps));
            let other = kv(1, head_dim, 16, FLOATS[(number + 1) % 3]).with_value_head_dim(head_dim / 2 + 9);
            cases.push(case(2, other, steps));
        }
    }
    for group in [1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17] {
        for kv_heads in [1, 3] {
            for steps in steps {
                cases.push(case(group, kv(kv_heads, 64, 16, DType::F32), steps));
            }
        }
    }
    // Queries and keys wider than values, as in latent attention.
    cases.push(case(4, kv(1, 192, 16, DType::Bf16).with_value_head_dim(128), steps[1]));
    cases.push(case(16, kv(1, 576, 16, DType::Bf16).with_value_head_dim(512), steps[0]));
    cases
}

/// The same lengths with blocks of every size.
pub(super) fn blocks() -> Vec<Case> {
    let mut cases = Vec::new();
    for block_size in [1, 2, 3, 7, 8, 15, 16, 17, 32, 33, 64, 100, 128, 256] {
        for dtype in FLOATS {
            cases.push(Case {
                seed: 1,
                ..case(3, kv(2, 32, block_size, dtype), &[(5, 131), (1, 130), (9, 9)])
            });
        }
        let edges: Vec<(usize, usize)> = [block_size - 1, block_size, block_size + 1, 2 * block_size]
            .into_iter()
            .map(|kv_len| (1, kv_len))
            .collect();
        cases.push(case(2, kv(1, 32, block_size, DType::F32), &edges));
    }
    cases
}

/// KV lengths round the edges of splits and tiles; query lengths round tile edges; more queries than keys.
pub(super) fn lengths() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, kv_len) in
        [1, 2, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 80, 127, 128, 129, 192, 193].into_iter().enumerate()
    {
        let spec = kv(1, 32, 16, FLOATS[number % 3]);
        cases.push(case(2, spec.clone(), &[(1, kv_len)]));
        cases.push(case(2, spec.clone(), &[(kv_len, kv_len)]));
        cases.push(case(3, spec, &[(4, kv_len)]));
    }
    for q_len in [0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 15, 16, 17, 25, 31, 32, 33, 65] {
        cases.push(case(3, kv(2, 64, 16, DType::F32), &[(q_len, 70)]));
    }
    // The first rows see nothing.
    for (q_len, kv_len) in [(8, 5), (3, 0), (1, 0), (70, 65), (33, 1), (17, 16)] {
        cases.push(case(2, kv(1, 32, 16, DType::F32), &[(q_len, kv_len)]));
    }
    // kv 9 in a block of 16, 8 queries, 14 heads on 2.
    cases.push(case(7, kv(2, 64, 16, DType::Bf16), &[(8, 9)]));
    // Other splits: one position beside the edge of each.
    for split in [16, 32, 256] {
        for kv_len in [split - 1, split, split + 1, 2 * split + 1] {
            let mut case = case(2, kv(1, 16, 16, DType::F32), &[(2, kv_len), (1, kv_len)]);
            case.spec = case.spec.with_kv_split(split);
            cases.push(case);
        }
    }
    // 3,072 + 64 positions.
    let mut long = case(1, kv(1, 32, 16, DType::Bf16), &[(1, 3136)]);
    long.spec = long.spec.with_kv_split(256);
    cases.push(long);
    cases
}

/// Prefill, chunk and decode in one call; nothing at all.
pub(super) fn mixed() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in FLOATS {
        for sequences in [
            &[][..],
            &[(0, 0)],
            &[(0, 30), (1, 0), (0, 0), (2, 40)],
            &[(30, 30), (1, 75), (16, 90), (1, 1), (1, 16)],
            &[(1, 15), (1, 16), (1, 17), (1, 32)],
            &[(5, 3), (1, 64), (2, 65), (64, 64), (1, 0)],
            &[(1, 129); 7],
        ] {
            cases.push(case(3, kv(3, 64, 16, dtype), sequences));
            cases.push(case(5, kv(1, 80, 7, dtype), sequences));
        }
    }
    // Each mask with prefill, a chunk, decodes and nothing in one call.
    let sequences = [(30, 30), (1, 75), (16, 90), (0, 0), (1, 1), (70, 130), (0, 20), (1, 64)];
    for (number, mask) in MASKS.into_iter().enumerate() {
        let kv = kv(2, 48, 16, FLOATS[number % 3]).with_value_head_dim(40);
        let mut case = case(3, kv, &sequences);
        case.spec = case.spec.with_mask(mask);
        let case = with_trees(Case { log_sum_exp: true, ..case });
        let mut biased = case.clone();
        biased.spec = biased.spec.with_soft_cap(2.0).with_sinks(Sinks::PerHead);
        if mask != Mask::Tree {
            biased.spec = biased.spec.with_alibi_slopes(alibi_slopes(6));
        }
        cases.extend([case, biased]);
    }
    cases
}

/// Scores far from zero.
pub(super) fn extremes() -> Vec<Case> {
    let mut cases = Vec::new();
    for fill in [Fill::FarBelow, Fill::Steep] {
        for sequences in [&[(1, 70)][..], &[(70, 70)], &[(1, 65), (3, 129)]] {
            cases.push(Case { fill, ..case(3, kv(1, 64, 16, DType::F32), sequences) });
        }
    }
    // A scale of its own: zero makes the mean, a negative one the reverse order.
    for scale in [0.0, -0.3, 1.0] {
        let mut case = case(2, kv(2, 32, 16, DType::F32), &[(5, 70)]);
        case.spec = case.spec.with_scale(scale);
        cases.push(case);
    }
    cases
}

/// Every type of queries with every type of cache, and caches that no backend has.
pub(super) fn supports() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in FLOATS {
        for stored in FORMATS.into_iter().chain([KvFormat::Float(DType::I8)]) {
            for head_dim in [32, 64, 576] {
                let kv = kv(2, head_dim, 16, DType::F32).with_format(stored);
                let mut case = case(2, kv, &[(3, 20), (1, 33)]);
                case.spec.dtype = dtype;
                cases.push(case.clone());
                for compute in COMPUTES.into_iter().filter(|_| stored == KvFormat::Int8PerTokenHead) {
                    cases.push(Case { spec: case.spec.clone().with_compute(compute), ..case.clone() });
                }
                for mask in MASKS.into_iter().filter(|_| head_dim == 32) {
                    let mut case = case.clone();
                    case.spec = case.spec.with_mask(mask).with_soft_cap(2.0).with_sinks(Sinks::PerHead);
                    cases.push(with_trees(case.clone()));
                    if mask != Mask::Tree {
                        case.spec = case.spec.with_alibi_slopes(vec![0.5; 4]);
                        cases.push(case);
                    }
                }
            }
        }
    }
    cases
}

pub(super) fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let (head_dim, block_size) = (1 + rng.below(140), 1 + rng.below(40));
    let kv = kv(1 + rng.below(3), head_dim, block_size, DType::F32).with_format(rng.pick(&FORMATS));
    let kv = if rng.coin() { kv } else { kv.with_value_head_dim(1 + rng.below(140)) };
    let count = rng.below(5);
    let sequences: Vec<(usize, usize)> = (0..count)
        .map(|_| {
            let kv_len = rng.below(160);
            let q_len = match rng.below(4) {
                0 => kv_len,
                1 => rng.below(40),
                _ => 1,
            };
            (q_len, kv_len)
        })
        .collect();
    let mut case = case(1 + rng.below(8), kv, &sequences);
    case.spec = case.spec.with_kv_split(16 * (1 + rng.below(8)));
    let case = Case { layer: rng.below(2), views: rng.pick(&VIEWS), log_sum_exp: rng.coin(), seed, ..case };
    let mut spec = case.spec.clone();
    let own_rows_fit = sequences.iter().all(|(q_len, kv_len)| q_len <= kv_len);
    spec = spec.with_mask(match rng.below(6) {
        0 | 1 => Mask::Sliding { window: 1 + rng.below(170) },
        2 => Mask::Chunked { chunk: 1 + rng.below(170) },
        3 => Mask::Bidirectional,
        4 if own_rows_fit => Mask::Tree,
        _ => Mask::Causal,
    });
    if rng.coin() {
        spec = spec.with_soft_cap(0.1 + 4.0 * rng.unit());
    }
    if spec.kv.format == KvFormat::Int8PerTokenHead {
        spec = spec.with_compute(rng.pick(&COMPUTES));
    }
    if rng.below(3) == 0 && spec.mask != Mask::Tree {
        let slopes = (0..spec.query_heads).map(|_| rng.unit() - 0.2).collect();
        spec = spec.with_alibi_slopes(slopes);
    }
    if rng.below(3) == 0 {
        spec = spec.with_sinks(Sinks::PerHead);
    }
    spec = spec.with_dtype(rng.pick(&FLOATS));
    with_trees(Case { spec, sinks: 8.0 * rng.unit() - 4.0, ..case })
}
