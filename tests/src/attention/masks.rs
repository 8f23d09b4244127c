//! Which positions a row sees, tried.

use super::{
    Case, Fill,
    cases::{FLOATS, case, kv},
};
use crate::random::Rng;
use halite_kernels::{DType, attention::Mask};

/// The case with parents, where its mask is a tree: every third sequence a chain, the others at random.
pub(super) fn with_trees(mut case: Case) -> Case {
    case.tree_parents.clear();
    if case.spec.mask != Mask::Tree {
        return case;
    }
    let mut rng = Rng::new(case.seed);
    for (number, &(q_len, _)) in case.sequences.iter().enumerate() {
        let chain = |row: usize| row as i32 - 1;
        let mut any = |row: usize| rng.below(row + 1) as i32 - 1;
        case.tree_parents.extend((0..q_len).map(|row| if number % 3 == 2 { chain(row) } else { any(row) }));
    }
    case
}

/// Rows that see what comes after them: prefill, chunks, single rows, more rows than keys.
pub(super) fn bidirectional() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, kv_len) in [1, 15, 16, 17, 63, 64, 65, 128, 129, 200].into_iter().enumerate() {
        for (group, sequences) in [
            (1, &[(kv_len, kv_len)][..]),
            (3, &[(1, kv_len), (5, kv_len), (kv_len + 3, kv_len)]),
            (2, &[(9, 131), (0, kv_len), (3, 0), (kv_len, kv_len), (1, kv_len)]),
        ] {
            let block_size = [16, 7, 64][number % 3];
            let mut case = case(group, kv(2, 32, block_size, FLOATS[number % 3]), sequences);
            case.spec = case.spec.with_mask(Mask::Bidirectional);
            cases.push(case);
        }
    }
    // More rows than a task has, over more than one part.
    let mut long = case(4, kv(1, 32, 16, DType::Bf16), &[(200, 300)]);
    long.spec = long.spec.with_mask(Mask::Bidirectional).with_kv_split(256);
    cases.push(long);
    cases
}

/// Chunks round the edges of vectors, splits and lengths.
pub(super) fn chunked() -> Vec<Case> {
    let mut cases = Vec::new();
    let chunks = [1, 2, 15, 16, 17, 33, 63, 64, 65, 100, 128, 129, 131, 1000, usize::MAX];
    for (number, chunk) in chunks.into_iter().enumerate() {
        for (group, sequences) in [
            (1, &[(1, 131), (1, 128), (1, 129), (1, 64), (1, 65)][..]),
            (3, &[(131, 131)]),
            (2, &[(9, 131), (1, 130), (17, 17), (1, 1), (5, 200), (8, 5), (2, 0)]),
        ] {
            let block_size = [16, 7, 64][number % 3];
            let mut case = case(group, kv(2, 32, block_size, FLOATS[number % 3]), sequences);
            case.spec = case.spec.with_mask(Mask::Chunked { chunk }).with_kv_split([64, 16, 256][number % 3]);
            cases.push(Case { fill: Fill::UnseenNan, ..case });
        }
    }
    // More rows than a task has, over many parts that most of them do not see.
    for (q_len, chunk) in [(1, 600), (300, 40), (7, 1024)] {
        let mut case = case(4, kv(1, 32, 16, DType::Bf16), &[(q_len, 2100)]);
        case.spec = case.spec.with_mask(Mask::Chunked { chunk }).with_kv_split(256);
        cases.push(Case { fill: Fill::UnseenNan, ..case });
    }
    cases
}

/// Trees beside chains; over the edges of vectors and parts; a leaf of NaN that only itself may see.
pub(super) fn trees() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, before) in [0, 1, 14, 15, 16, 50, 63, 64, 100].into_iter().enumerate() {
        for (group, sequences) in [
            (1, &[(6, before + 6)][..]),
            (3, &[(15, before + 15), (64, before + 64), (1, before + 1)]),
            (2, &[(9, before + 9), (0, before), (5, before + 5), (90, before + 90), (1, 130)]),
        ] {
            let block_size = [16, 7, 64][number % 3];
            let mut case = case(group, kv(2, 32, block_size, FLOATS[number % 3]), sequences);
            case.spec = case.spec.with_mask(Mask::Tree).with_kv_split([64, 16][number % 2]);
            let case = with_trees(case);
            cases.push(Case { fill: Fill::UnseenNan, ..case.clone() });
            cases.push(case);
        }
    }
    // A star, a chain, a comb and a forest of single rows.
    for parent in [|_| 0, |row| row - 1, |row| row - 1 - row % 2, |_| -1] {
        let mut case = case(2, kv(1, 32, 16, DType::F32), &[(20, 40)]);
        case.spec = case.spec.with_mask(Mask::Tree);
        let parents: [i32; 20] = std::array::from_fn(|row| row as i32);
        case.tree_parents = parents.map(|row: i32| if row == 0 { -1 } else { parent(row) }).to_vec();
        cases.push(case);
    }
    // More rows than a task has.
    let mut long = case(4, kv(1, 32, 16, DType::Bf16), &[(150, 700)]);
    long.spec = long.spec.with_mask(Mask::Tree).with_kv_split(256);
    cases.push(with_trees(long));
    cases
}

/// Windows round the edges of vectors, splits and lengths, in decode, chunk and prefill.
pub(super) fn windows() -> Vec<Case> {
    let mut cases = Vec::new();
    let windows = [1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 100, 128, 129, 130, 131, 1000, usize::MAX];
    for (number, window) in windows.into_iter().enumerate() {
        for (group, sequences) in [
            (1, &[(1, 131), (1, 64), (1, 65)][..]),
            (3, &[(131, 131)]),
            (2, &[(9, 131), (1, 130), (17, 17), (1, 1), (5, 200)]),
        ] {
            let block_size = [16, 7, 64][number % 3];
            let mut case = case(group, kv(2, 32, block_size, FLOATS[number % 3]), sequences);
            case.spec = case.spec.with_mask(Mask::Sliding { window });
            cases.push(Case { fill: [Fill::UnseenNan, Fill::Away][number % 2], ..case.clone() });
            case.spec = case.spec.with_kv_split([16, 256][number % 2]);
            cases.push(Case { fill: Fill::UnseenNan, ..case });
        }
    }
    // The first rows see nothing, the next less than a window.
    for (q_len, kv_len) in [(8, 5), (3, 0), (70, 65), (33, 1), (0, 40)] {
        let mut case = case(2, kv(1, 32, 16, DType::F32), &[(q_len, kv_len), (1, 40)]);
        case.spec = case.spec.with_mask(Mask::Sliding { window: 3 });
        cases.push(case);
    }
    // More rows than a task has, over many parts that most of them do not see.
    for (q_len, window) in [(1, 600), (1, 1), (300, 40), (7, 1024)] {
        let mut case = case(4, kv(1, 32, 16, DType::Bf16), &[(q_len, 2100)]);
        case.spec = case.spec.with_mask(Mask::Sliding { window }).with_kv_split(256);
        cases.push(Case { fill: Fill::UnseenNan, ..case });
    }
    cases
}
