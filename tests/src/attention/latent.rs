//! Attention over caches that keep values as the first elements of keys: the absorbed form of latent attention.

use super::{Case, Fill, cases::case};
use halite_kernels::{DType, attention::Mask, cache::KvSpec};

/// DeepSeek's sizes and odd ones; groups, blocks, lengths, windows.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let latent = |rank, rope, block_size, dtype| {
        KvSpec::latent(2, rank, rope).with_block_size(block_size).with_dtype(dtype)
    };
    let mixed = [(1, 70), (5, 3), (19, 83), (1, 0), (2, 64), (1, 65)];
    for (number, group) in [1, 5, 7, 16, 128].into_iter().enumerate() {
        let dtype = [DType::Bf16, DType::F32, DType::F16][number % 3];
        cases.push(case(group, latent(40, 6, 16, dtype), &mixed));
    }
    cases.push(case(16, latent(512, 64, 16, DType::Bf16), &[(1, 70), (2, 33)]));
    for (number, block_size) in [1, 2, 7, 16, 33, 128, 256].into_iter().enumerate() {
        let (rank, rope) = [(33, 15), (16, 16), (1, 1), (31, 2), (64, 3)][number % 5];
        cases.push(case(
            3,
            latent(rank, rope, block_size, DType::F32),
            &[(5, 131), (1, 130), (9, 9), (131, 131)],
        ));
    }
    for (kv_len, window) in [(131, 1), (131, 17), (200, 64), (65, 100)] {
        let mut case = case(3, latent(24, 8, 7, DType::F32), &[(9, kv_len), (1, kv_len)]);
        case.spec = case.spec.with_mask(Mask::Sliding { window }).with_soft_cap(2.0);
        cases.push(Case { fill: Fill::UnseenNan, ..case });
    }
    for fill in [Fill::FarBelow, Fill::Steep] {
        cases.push(Case { fill, ..case(5, latent(48, 16, 16, DType::F32), &[(1, 65), (3, 129)]) });
    }
    // Several heads of keys.
    let mut two = latent(20, 12, 16, DType::Bf16);
    two.kv_heads = 2;
    cases.push(case(4, two, &mixed));
    cases
}
