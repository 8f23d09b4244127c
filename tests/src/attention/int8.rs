//! INT8 keys and values, and arithmetic in INT8.

use super::{
    Case, Fill,
    cases::{COMPUTES, MASKS, case, kv},
    masks::with_trees,
};
use halite_kernels::{
    DType,
    attention::{AttentionCompute, Mask, Sinks, alibi_slopes},
    cache::{KvFormat, KvSpec},
};

fn int8(kv_heads: usize, head_dim: usize, block_size: usize) -> KvSpec {
    kv(kv_heads, head_dim, block_size, DType::F32).with_format(KvFormat::Int8PerTokenHead)
}

/// Every slot its own scale, whatever the block size, in F32.
pub(super) fn stored() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, head_dim) in [1, 2, 15, 16, 17, 33, 64, 80, 128, 192].into_iter().enumerate() {
        for (group, block_size) in [(1, 16), (3, 7), (5, 1), (2, 64), (4, 33)] {
            let value_head_dim = if number % 2 == 0 { head_dim } else { head_dim / 2 + 9 };
            let kv = int8(1 + number % 3, head_dim, block_size).with_value_head_dim(value_head_dim);
            let case = case(group, kv, &[(5, 131), (1, 70), (9, 9), (1, 0), (3, 1)]);
            cases.push(Case { fill: Fill::Uneven, ..case.clone() });
            if number % 2 == 1 {
                let spec = case.spec.clone().with_mask(Mask::Sliding { window: 20 }).with_soft_cap(0.5);
                cases.push(Case { fill: Fill::UnseenNan, spec, ..case });
            }
        }
    }
    cases
}

/// Both ways to weigh values in every shape that matters to them.
pub(super) fn computed() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |case: Case| {
        for compute in COMPUTES.into_iter().filter(|compute| *compute != AttentionCompute::Float) {
            cases.push(Case { spec: case.spec.clone().with_compute(compute), ..case.clone() });
        }
    };
    // Dims round the edges of quads, vectors and chunks.
    for (number, head_dim) in [1, 2, 3, 4, 5, 15, 16, 17, 31, 33, 64, 80, 128, 576].into_iter().enumerate() {
        let value_head_dim = [head_dim, 7, 40][number % 3].min(512);
        let kv = int8(1 + number % 2, head_dim, [16, 7, 64, 1][number % 4]);
        let kv = kv.with_value_head_dim(value_head_dim);
        let case = case(1 + number % 5, kv, &[(5, 131), (1, 70), (9, 9), (1, 0), (3, 1)]);
        add(Case { fill: [Fill::Away, Fill::Uneven][number % 2], ..case });
    }
    // Tiles of every height; lengths round the edges of quads, vectors and parts; rows that see nothing.
    for rows in 1..=13 {
        add(case(1, int8(1, 20, 16), &[(rows, 70)]));
    }
    for kv_len in [1, 2, 3, 4, 5, 15, 16, 17, 33, 63, 64, 65, 127, 128, 129] {
        add(case(2, int8(1, 32, 16), &[(1, kv_len), (kv_len, kv_len), (8, 5)]));
    }
    // One long row, in parts of another size.
    let mut long = case(3, int8(1, 64, 32), &[(1, 1100), (2, 513)]);
    long.spec = long.spec.with_kv_split(512);
    add(long);
    // Windows whose keys and values outside are NaN, in quads with such as are seen; scores about the cap.
    for window in [1, 3, 17, 64, 100] {
        let mut case = case(3, int8(2, 32, 7), &[(9, 131), (1, 130), (17, 17)]);
        case.spec = case.spec.with_mask(Mask::Sliding { window });
        add(Case { fill: Fill::UnseenNan, ..case.clone() });
        case.spec = case.spec.with_soft_cap(0.5);
        add(case);
    }
    // Every other mask, the gaps of trees among them, with sinks and linear biases.
    for mask in MASKS {
        for fill in [Fill::Uneven, Fill::UnseenNan] {
            let mut case = case(3, int8(2, 32, 16), &[(5, 70), (1, 65), (20, 20), (9, 131)]);
            case.spec = case.spec.with_mask(mask).with_sinks(Sinks::PerHead);
            if mask != Mask::Tree {
                case.spec = case.spec.with_alibi_slopes(alibi_slopes(6));
            }
            add(with_trees(Case { fill, ..case }));
        }
    }
    // Sums that instructions which saturate, or 16 bits, do not hold.
    for head_dim in [4, 64, 576] {
        add(Case { fill: Fill::Constant, ..case(2, int8(1, head_dim, 16), &[(3, 130), (64, 64)]) });
    }
    // Scores far from zero, where one key takes all; a scale of the caller's, of either sign.
    for fill in [Fill::FarBelow, Fill::Steep] {
        add(Case { fill, ..case(3, int8(1, 64, 16), &[(1, 70), (20, 129)]) });
    }
    for scale in [0.0, -0.3, 1.0] {
        let mut case = case(2, int8(2, 32, 16), &[(5, 70)]);
        case.spec = case.spec.with_scale(scale);
        add(Case { fill: Fill::Uneven, ..case });
    }
    cases
}
