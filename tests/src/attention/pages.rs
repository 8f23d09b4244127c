//! Blocks of 128, the size that vendors' operators are made for: heads and types that they take, prefill after a prefix, decodes
//! beside it, rows that see nothing.

use super::{
    Case,
    cases::{case, kv},
};
use halite_kernels::{DType, attention::Mask};

pub(super) fn cases() -> Vec<Case> {
    let steps: [&[(usize, usize)]; 4] = [
        &[(1, 129), (1, 1), (1, 128), (1, 260)],
        // Query lengths for KV lengths, sums for lengths, a prefix that is left out: each shows.
        &[(5, 260), (1, 33), (5, 131)],
        &[(40, 40), (40, 150), (7, 7)],
        &[(8, 5), (3, 0), (1, 40), (0, 7), (2, 129)],
    ];
    let shapes = [(1, 1, 64), (2, 4, 128), (1, 8, 192), (2, 2, 256), (3, 1, 96), (1, 64, 64)];
    let mut cases = Vec::new();
    for (number, (kv_heads, group, head_dim)) in shapes.into_iter().enumerate() {
        for (place, sequences) in steps.into_iter().enumerate() {
            let dtype = [DType::Bf16, DType::F16][(number + place) % 2];
            let mut case = case(group, kv(kv_heads, head_dim, 128, dtype), sequences);
            case.spec.dtype = dtype;
            case.log_sum_exp = place != 2 || number % 2 == 0;
            if place > 1 && number < 3 {
                let spec = case.spec.clone().with_mask(Mask::Bidirectional);
                cases.push(Case { spec, ..case.clone() });
            }
            cases.push(case);
        }
    }
    cases
}
