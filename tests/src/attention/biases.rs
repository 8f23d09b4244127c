//! What is done to scores and sums beside the mask.

use super::{
    Case, Fill,
    cases::{FLOATS, MASKS, case, kv},
    masks::with_trees,
};
use halite_kernels::{
    DType,
    attention::{Mask, Sinks, alibi_slopes},
};

/// Caps far below, about and far above the scores.
pub(super) fn soft_caps() -> Vec<Case> {
    let mut cases = Vec::new();
    for cap in [0.25, 1.0, 50.0, 1e4] {
        for fill in [Fill::Away, Fill::Steep, Fill::FarBelow] {
            for (number, sequences) in
                [&[(1, 70)][..], &[(70, 70)], &[(1, 65), (3, 129), (20, 64), (9, 5)]].into_iter().enumerate()
            {
                let mut case = case(3, kv(2, 64, 16, FLOATS[number]), sequences);
                case.spec = case.spec.with_soft_cap(cap);
                cases.push(Case { fill, ..case.clone() });
                // A scale of its own, so that a cap on the other side of it shows; few positions of many.
                case.spec = case.spec.with_scale(0.7).with_mask(Mask::Sliding { window: 19 });
                cases.push(Case { fill, ..case });
            }
        }
    }
    // 65 positions where a tile or block has 64.
    for kv_len in [63, 64, 65, 128, 129] {
        let mut case = case(2, kv(1, 32, 64, DType::F32), &[(1, kv_len), (2, kv_len)]);
        case.spec = case.spec.with_soft_cap(0.5);
        cases.push(case);
    }
    cases
}

/// Slopes of the paper and others, near and far.
pub(super) fn alibi() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, mask) in MASKS.into_iter().filter(|mask| *mask != Mask::Tree).enumerate() {
        for (group, sequences) in [(4, &[(1, 70), (70, 70)][..]), (3, &[(5, 131), (1, 64), (1, 65), (8, 5)])]
        {
            let mut case = case(group, kv(2, 32, 16, FLOATS[number % 3]).with_value_head_dim(24), sequences);
            case.spec = case.spec.with_mask(mask).with_alibi_slopes(alibi_slopes(2 * group));
            cases.push(Case { log_sum_exp: true, ..case.clone() });
            // After the cap: a bias before it could lower no score below -cap.
            case.spec = case.spec.with_soft_cap(0.5);
            cases.push(case.clone());
            // Slopes that favour what is far, and one of zero.
            case.spec.alibi_slopes = Some((0..2 * group).map(|head| 0.1 - 0.1 * head as f32).collect());
            cases.push(case);
        }
    }
    // Positions of which the far ones no longer count.
    let mut long = case(2, kv(1, 32, 16, DType::F32), &[(1, 3000), (3, 2900)]);
    long.spec = long.spec.with_kv_split(256).with_alibi_slopes(vec![1.0, 2f32.powi(-8)]);
    cases.push(long);
    cases
}

/// Sinks far below, about and far above the scores, with every mask; rows that see nothing else.
pub(super) fn sinks() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, sinks) in [f32::NEG_INFINITY, -1e4, -3.0, 0.0, 3.0, 20.0, 90.0, 1e4].into_iter().enumerate()
    {
        for mask in MASKS {
            let sequences = match mask {
                Mask::Tree => &[(5, 70), (1, 65), (0, 3), (20, 20)][..],
                _ => &[(5, 70), (1, 65), (0, 3), (3, 1), (1, 0), (20, 20)],
            };
            let mut case = case(3, kv(2, 32, 16, FLOATS[number % 3]).with_value_head_dim(40), sequences);
            case.spec = case.spec.with_mask(mask).with_sinks(Sinks::PerHead);
            cases.push(with_trees(Case { sinks, log_sum_exp: true, ..case }));
        }
        // Scores of either size against them.
        for fill in [Fill::FarBelow, Fill::Steep] {
            let mut case = case(3, kv(1, 64, 16, DType::F32), &[(3, 70), (1, 129)]);
            case.spec = case.spec.with_sinks(Sinks::PerHead);
            cases.push(Case { sinks, fill, ..case });
        }
    }
    cases
}
