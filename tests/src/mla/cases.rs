//! The shapes that latent attention is tried with.

use super::Case;
use crate::{attention::Fill, poison::Layout, random::Rng};
use halite_kernels::{
    DType,
    attention::{Mask, Sinks, alibi_slopes},
    cache::KvSpec,
    linear::WeightFormat,
    mla::{MlaForm, MlaSpec},
};

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];
const WEIGHTS: [WeightFormat; 3] = [WeightFormat::F32, WeightFormat::F16, WeightFormat::Bf16];
const FORMS: [MlaForm; 2] = [MlaForm::Absorbed, MlaForm::Expanded];
const LAYOUTS: [Layout; 3] =
    [Layout::Dense, Layout::Rows { before: 3, after: 5 }, Layout::Heads { after: 3 }];
/// Of kv_split in these cases, so that parts are many and short.
const SPLIT: usize = 64;

/// `kv_lora_rank`, `rope_dim`, `nope_dim`, `value_head_dim`.
type Dims = [usize; 4];
const DEEPSEEK: Dims = [512, 64, 128, 128];
const ODD: Dims = [40, 6, 10, 12];

fn case(form: MlaForm, heads: usize, dims: Dims, block_size: usize, sequences: &[(usize, usize)]) -> Case {
    let [rank, rope_dim, nope_dim, value_head_dim] = dims;
    let number = heads + rank + block_size + sequences.len();
    let kv = KvSpec::latent(2, rank, rope_dim).with_block_size(block_size).with_dtype(FLOATS[number % 3]);
    let spec = MlaSpec::new(heads, kv, nope_dim, value_head_dim, form)
        .with_weights(WEIGHTS[(number + 1) % 3])
        .with_attention(|attention| attention.with_kv_split(SPLIT));
    Case {
        spec,
        sequences: sequences.to_vec(),
        tree_parents: Vec::new(),
        layer: number % 2,
        fill: Fill::Away,
        layout: LAYOUTS[number % 3],
        log_sum_exp: !number.is_multiple_of(4),
        seed: number as u64,
    }
}

/// What both forms must do.
pub(super) fn both(form: MlaForm) -> Vec<Case> {
    let mut cases = Vec::new();
    let small = [(1, 70), (3, 5)];
    // DeepSeek-V2 and V3's sizes; heads of 1 to 128, each alone and many.
    cases.push(case(form, 2, DEEPSEEK, 16, &[(1, 33), (2, 18)]));
    for heads in [1, 2, 5, 7, 16, 128] {
        cases.push(case(form, heads, ODD, 16, &small));
    }
    // At, below and above the edges of vectors and panels.
    for dims in [
        [1, 1, 1, 1],
        [15, 17, 16, 31],
        [16, 16, 15, 32],
        [17, 2, 33, 33],
        [32, 15, 1, 64],
        [33, 1, 65, 1],
        [64, 8, 17, 15],
    ] {
        cases.push(case(form, 3, dims, 7, &[(2, 40), (1, 17)]));
    }
    for block_size in [1, 2, 3, 8, 17, 64, 100, 256] {
        let edges = [(1, block_size - 1), (1, block_size), (2, block_size + 1), (1, 2 * block_size)];
        cases.push(case(form, 3, ODD, block_size, if block_size > 64 { &edges[1..3] } else { &edges }));
    }
    // Nothing at all; more queries than keys; decode, chunks and prefill in one call; round the splits' edges.
    for sequences in [
        &[][..],
        &[(0, 0)],
        &[(0, 30), (1, 0), (0, 0), (2, 40)],
        &[(8, 5), (3, 0), (33, 1), (17, 16)],
        &[(30, 30), (1, 75), (16, 90), (1, 1), (1, 16)],
        &[(1, 63), (1, 64), (1, 65), (2, 128), (5, 129)],
        &[(1, 129); 7],
        &[(70, 70)],
    ] {
        cases.push(case(form, 3, ODD, 16, sequences));
    }
    // More rows than a task has.
    cases.push(case(form, 1, [4, 2, 3, 5], 16, &[(600, 610), (1, 300)]));
    for (number, split) in [16, 32, 256, 512].into_iter().enumerate() {
        let mut case = case(form, 2, ODD, 16, &[(2, split - 1), (1, split), (3, split + 1)]);
        case.spec = case.spec.with_attention(|attention| attention.with_kv_split(split));
        cases.push(Case { layer: number % 2, ..case });
    }
    cases.extend(options(form));
    cases
}

/// Masks, soft-caps, scales and biases.
fn options(form: MlaForm) -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, window) in [1, 16, 17, 63, 64, 100, 1000].into_iter().enumerate() {
        let mut case = case(form, 3, ODD, [16, 7, 64][number % 3], &[(9, 131), (1, 130), (17, 17), (5, 200)]);
        case.spec = case.spec.with_attention(|a| a.with_mask(Mask::Sliding { window }));
        cases.push(Case { fill: Fill::UnseenNan, ..case });
    }
    for (cap, fill) in [(0.25, Fill::Away), (1.0, Fill::Steep), (50.0, Fill::Away)] {
        let mut case = case(form, 3, ODD, 16, &[(1, 65), (3, 129), (9, 5)]);
        case.spec = case.spec.with_attention(|a| a.with_soft_cap(cap).with_scale(0.7));
        cases.push(Case { fill, ..case });
    }
    for scale in [0.0, -0.3, 1.0] {
        let mut case = case(form, 2, ODD, 16, &[(5, 70)]);
        case.spec = case.spec.with_attention(|a| a.with_scale(scale));
        cases.push(case);
    }
    let mut biased = case(form, 5, ODD, 16, &[(9, 70), (1, 33), (4, 2)]);
    biased.spec =
        biased.spec.with_attention(|a| a.with_alibi_slopes(alibi_slopes(5)).with_sinks(Sinks::PerHead));
    cases.push(biased);
    for mask in [Mask::Bidirectional, Mask::Chunked { chunk: 24 }] {
        let mut case = case(form, 2, ODD, 16, &[(9, 70), (1, 33), (4, 4)]);
        case.spec = case.spec.with_attention(|a| a.with_mask(mask));
        cases.push(case);
    }
    let mut tree = case(form, 3, ODD, 16, &[(5, 30), (1, 1), (4, 70)]);
    tree.spec = tree.spec.with_attention(|a| a.with_mask(Mask::Tree));
    cases.push(Case { tree_parents: vec![-1, 0, 0, 1, -1, -1, -1, 0, 1, 1], ..tree });
    cases.push(Case { fill: Fill::Steep, ..case(form, 3, ODD, 16, &[(1, 65), (3, 129)]) });
    cases
}

/// Every type of queries, latents and weights, in both forms.
pub(super) fn supports() -> Vec<Case> {
    let mut cases = Vec::new();
    for form in FORMS {
        for dtype in FLOATS {
            for latents in FLOATS {
                for weights in WEIGHTS {
                    let mut case = case(form, 2, [24, 8, 9, 5], 4, &[(3, 20), (1, 9)]);
                    case.spec.attention = case.spec.attention.with_dtype(dtype);
                    case.spec.attention.kv = case.spec.attention.kv.with_dtype(latents);
                    case.spec = case.spec.with_weights(weights);
                    cases.push(case);
                }
            }
        }
    }
    cases
}

pub(super) fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let dims = [1 + rng.below(70), 1 + rng.below(20), 1 + rng.below(40), 1 + rng.below(40)];
    let count = rng.below(4);
    let sequences: Vec<(usize, usize)> = (0..count)
        .map(|_| {
            let kv_len = rng.below(140);
            (*[kv_len.min(40), rng.below(20), 1].get(rng.below(3)).unwrap_or(&1), kv_len)
        })
        .collect();
    let case = case(rng.pick(&FORMS), 1 + rng.below(6), dims, 1 + rng.below(40), &sequences);
    let split = 16 * (1 + rng.below(8));
    let mut spec = case.spec.with_weights(rng.pick(&WEIGHTS)).with_attention(|a| a.with_kv_split(split));
    spec.attention.kv = spec.attention.kv.with_dtype(rng.pick(&FLOATS));
    spec.attention.dtype = rng.pick(&FLOATS);
    if rng.coin() {
        let window = 1 + rng.below(150);
        spec = spec.with_attention(|a| a.with_mask(Mask::Sliding { window }));
    }
    if rng.coin() {
        let cap = 0.1 + 4.0 * rng.unit();
        spec = spec.with_attention(|a| a.with_soft_cap(cap));
    }
    Case { spec, layout: rng.pick(&LAYOUTS), log_sum_exp: rng.coin(), seed, ..case }
}
