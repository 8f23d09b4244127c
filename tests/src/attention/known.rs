//! Inputs of attention that broke other projects, each a case by its name.

use super::{
    Case, Fill, body, cascade,
    cases::{case, kv},
    merge,
};
use crate::case::{Shown, Verdict};
use halite_kernels::{
    Backend, DType,
    attention::{AttentionMergeSpec, Mask, Sinks},
};

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("8 queries over 5 keys: the first rows see nothing", more_queries_than_keys),
        ("all scores below -5e4", far_below_zero),
        ("merging two empty states", two_empty_states),
        ("3,136 keys read whole, and as 3,072 and 64 merged", three_thousand_and_sixty_four),
        ("9 keys in a block of 16, 8 queries, 14 heads on 2, head dim 64", less_than_a_block),
        ("one sequence in blocks of 1, 2, 8, 16, 32, 64, 128 and 256", every_block_size),
        ("a soft-cap over 65 keys where a tile has 64", beside_a_tile),
        ("NaN in unused slots and in what no row sees", nan_unseen),
        ("a sequence of length 0 in a batch of decodes", length_zero),
        ("a sink far above every score", large_sink),
        ("5, 6, 7 and 16 query heads a KV head", odd_groups),
        ("head dims of 56, 80, 96, 112, 192, 224 and 576", odd_head_dims),
        ("lengths of a block less one, a block, one more and two in one batch", round_a_block),
    ]
}

fn all<B: Backend>(device: &B, cases: impl IntoIterator<Item = Case>) -> Verdict {
    cases.into_iter().try_for_each(|case| body(device, &Case { log_sum_exp: true, ..case }))
}

fn more_queries_than_keys<B: Backend>(device: &B) -> Verdict {
    all(device, [case(2, kv(2, 64, 16, DType::F32), &[(8, 5)])])
}

fn far_below_zero<B: Backend>(device: &B) -> Verdict {
    all(device, [Case { fill: Fill::FarBelow, ..case(1, kv(2, 64, 16, DType::F32), &[(1, 70), (9, 33)]) }])
}

fn two_empty_states<B: Backend>(device: &B) -> Verdict {
    merge::body(device, &merge::of(AttentionMergeSpec::new(), &[f32::NEG_INFINITY; 2]))
}

fn three_thousand_and_sixty_four<B: Backend>(device: &B) -> Verdict {
    let mut whole = case(3, kv(2, 32, 16, DType::Bf16), &[(1, 3136)]);
    whole.spec = whole.spec.with_kv_split(256);
    all(device, [whole])?;
    cascade::body(device, &cascade::of(DType::Bf16, 256, 3072, &[(1, 64)]))
}

fn less_than_a_block<B: Backend>(device: &B) -> Verdict {
    let cases = [DType::F32, DType::F16, DType::Bf16].map(|dtype| case(7, kv(2, 64, 16, dtype), &[(8, 9)]));
    all(device, cases)
}

fn every_block_size<B: Backend>(device: &B) -> Verdict {
    let sizes = [1, 2, 8, 16, 32, 64, 128, 256];
    all(device, sizes.map(|size| Case { seed: 1, ..case(3, kv(2, 32, size, DType::F16), &[(3, 131)]) }))
}

fn beside_a_tile<B: Backend>(device: &B) -> Verdict {
    let mut capped = case(2, kv(1, 32, 64, DType::F32), &[(1, 65), (65, 65)]);
    capped.spec = capped.spec.with_soft_cap(0.5);
    all(device, [capped])
}

fn nan_unseen<B: Backend>(device: &B) -> Verdict {
    // Unused slots are poison in every case; here it is also what lies before a window.
    let mut windowed = case(2, kv(2, 32, 16, DType::F32), &[(1, 37), (4, 100)]);
    windowed.spec = windowed.spec.with_mask(Mask::Sliding { window: 20 });
    all(device, [Case { fill: Fill::UnseenNan, ..windowed }])
}

fn length_zero<B: Backend>(device: &B) -> Verdict {
    all(device, [case(2, kv(2, 64, 16, DType::F16), &[(1, 40), (1, 0), (1, 3)])])
}

fn large_sink<B: Backend>(device: &B) -> Verdict {
    all(
        device,
        [10.0, 40.0, 80.0, 100.0, 1e4, 1e30].map(|sinks| {
            let mut case = case(2, kv(2, 64, 16, DType::F32), &[(1, 40), (5, 70)]);
            case.spec = case.spec.with_sinks(Sinks::PerHead);
            Case { sinks, ..case }
        }),
    )
}

fn odd_groups<B: Backend>(device: &B) -> Verdict {
    all(device, [5, 6, 7, 16].map(|group| case(group, kv(2, 64, 16, DType::Bf16), &[(1, 70), (9, 33)])))
}

fn odd_head_dims<B: Backend>(device: &B) -> Verdict {
    let dims = [56, 80, 96, 112, 192, 224, 576];
    all(device, dims.map(|head_dim| case(2, kv(1, head_dim, 16, DType::F16), &[(1, 70), (5, 21)])))
}

fn round_a_block<B: Backend>(device: &B) -> Verdict {
    all(device, [case(2, kv(2, 64, 16, DType::F32), &[(1, 15), (1, 16), (1, 17), (1, 32)])])
}
