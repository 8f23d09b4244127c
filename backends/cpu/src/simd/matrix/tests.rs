//! Products by the model of a matrix unit against plain loops, on every machine.

use super::{
    detect::{Leaf, processor_has},
    model::{FAULTS, LOST_ROW, ModelTiles, RIGHT},
    product::shapes,
    *,
};
use crate::simd::random::Random;

/// Rows of bytes and a panel, and the sums that they are added to.
struct Case {
    m: usize,
    k: usize,
    stride: usize,
    rows: Vec<i8>,
    panel: Vec<u8>,
}

impl Case {
    fn new(m: usize, k: usize, stride: usize, mut fill: impl FnMut() -> (i8, u8)) -> Self {
        // Not a byte more than there is to read.
        let len = m.checked_sub(1).map_or(0, |last| last * stride + k);
        let rows = (0..len).map(|_| fill().0).collect();
        let panel = (0..k.div_ceil(4) * 8 * LANES).map(|_| fill().1).collect();
        Self { m, k, stride, rows, panel }
    }

    fn sums(&self) -> Vec<[[i32; LANES]; 2]> {
        (0..self.m as i32).map(|row| [[row * 1000 - 7; LANES], [i32::MAX - row; LANES]]).collect()
    }

    fn check(&self) {
        let (m, k, stride) = (self.m, self.k, self.stride);
        let mut got = self.sums();
        Matrix::MODEL.add(&self.rows, stride, Panel { bytes: &self.panel, k }, &mut got);
        for (row, (got, start)) in got.iter().zip(self.sums()).enumerate() {
            for (column, (&got, &start)) in got.as_flattened().iter().zip(start.as_flattened()).enumerate() {
                let exact = (0..k).fold(i64::from(start), |sum, at| {
                    let w = self.panel[at / 4 * 8 * LANES + 4 * column + at % 4];
                    sum + i64::from(self.rows[row * stride + at]) * i64::from(w)
                });
                assert_eq!(got, exact as i32, "m {m} k {k} stride {stride} row {row} column {column}");
            }
        }
    }
}

#[test]
fn exact_for_every_k() {
    let mut random = Random::new(1);
    for k in 0..=200 {
        for m in [1, 13, 17] {
            Case::new(m, k, k + 5, || (random.i8(), random.i8() as u8)).check();
        }
    }
}

#[test]
fn exact_for_every_number_of_rows() {
    let mut random = Random::new(2);
    for m in 0..=70 {
        for k in [3, 64, 101, 256] {
            Case::new(m, k, k, || (random.i8(), random.i8() as u8)).check();
        }
    }
}

#[test]
fn exact_at_any_stride() {
    let mut random = Random::new(3);
    for stride in [0, 1, 63, 64, 65, 130, 131, 1000] {
        for m in [2, 16, 18, 33] {
            Case::new(m, 130, stride, || (random.i8(), random.i8() as u8)).check();
        }
    }
}

#[test]
fn extremes_do_not_saturate() {
    for pair in [(-128, 255), (127, 255), (-128, 0), (127, 0), (-128, 128), (-1, 255)] {
        for k in [1, 4, 64, 130, 4097] {
            Case::new(19, k, k, || pair).check();
        }
    }
    // Beyond the ends of `i32`, from where they start.
    Case::new(1, 131_072, 0, || (-128, 255)).check();
}

#[test]
fn absent_rows_are_not_configured() {
    for rows in 1..=32 {
        let config = shapes(rows);
        let (upper, lower) = (rows.min(16), rows.saturating_sub(16));
        assert_eq!(
            std::array::from_fn(|tile| config.rows(tile)),
            [upper, upper, lower, lower, upper, lower, 16, 16]
        );
        for tile in 0..8 {
            assert_eq!(config.row_bytes(tile), if config.rows(tile) > 0 { 64 } else { 0 });
        }
    }
}

#[test]
fn operands_are_as_long_as_they_are_read() {
    let config = Config::new().with(2, 3);
    for (len, stride, fits) in [
        (64 + 2 * 70, 70, true),
        (63 + 2 * 70, 70, false),
        (64, 0, true),
        (63, 0, false),
        (usize::MAX, usize::MAX, true),
        (usize::MAX - 1, usize::MAX, false),
    ] {
        assert_eq!(config.fits(2, len, stride), fits, "{len} bytes, {stride} apart");
    }
}

#[test]
#[should_panic(expected = "a panel of K = 5")]
fn short_panels_are_refused() {
    Matrix::MODEL.add(&[0; 5], 5, Panel { bytes: &[0; 255], k: 5 }, &mut [[[0; LANES]; 2]]);
}

#[test]
fn the_self_test_notices_a_unit_that_multiplies_otherwise() {
    assert!(self_test::passes::<ModelTiles<RIGHT>>(()));
    assert!(!self_test::passes::<ModelTiles<{ FAULTS[0] }>>(()), "rows as unsigned bytes");
    assert!(!self_test::passes::<ModelTiles<{ FAULTS[1] }>>(()), "weights as signed bytes");
    assert!(!self_test::passes::<ModelTiles<LOST_ROW>>(()), "the last four values of K lost");
    assert!(!self_test::passes::<ModelTiles<{ FAULTS[3] }>>(()), "sums begun anew");
    assert!(!self_test::passes::<ModelTiles<{ FAULTS[4] }>>(()), "sums that saturate");
}

/// What Sapphire Rapids answers.
fn sapphire_rapids(leaf: u32, subleaf: u32) -> Leaf {
    match (leaf, subleaf) {
        (0, _) => Leaf { eax: 0x20, ..Leaf::default() },
        (1, _) => Leaf { ecx: 1 << 27, ..Leaf::default() },
        (7, 0) => Leaf { edx: 1 << 24 | 1 << 25, ..Leaf::default() },
        (0x1D, 1) => Leaf { eax: 1024 << 16 | 8192, ebx: 8 << 16 | 64, ecx: 16, edx: 0 },
        (0x1E, 0) => Leaf { ebx: 64 << 8 | 16, ..Leaf::default() },
        _ => Leaf::default(),
    }
}

#[test]
fn a_processor_has_all_of_it_or_none() {
    const KEPT: u64 = 1 << 17 | 1 << 18 | 0xE7;
    assert!(processor_has(sapphire_rapids, || KEPT));
    for missing in [1 << 17, 1 << 18, 1 << 17 | 1 << 18] {
        assert!(!processor_has(sapphire_rapids, || KEPT & !missing), "without the states {missing:#x}");
    }
    let never = || unreachable!("a register that is not there");
    type Change = fn(&mut Leaf);
    let changes: [(&str, u32, Change); 8] = [
        ("no leaf for the product", 0, |leaf| leaf.eax = 0x1D),
        ("no tiles", 7, |leaf| leaf.edx &= !(1 << 24)),
        ("no bytes", 7, |leaf| leaf.edx &= !(1 << 25)),
        ("the system keeps no extended state", 1, |leaf| leaf.ecx = 0),
        ("small tiles", 0x1D, |leaf| leaf.eax = 512 << 16 | 8192),
        ("few tiles", 0x1D, |leaf| leaf.ebx = 4 << 16 | 64),
        ("few rows", 0x1D, |leaf| leaf.ecx = 8),
        ("narrow products", 0x1E, |leaf| leaf.ebx = 32 << 8 | 16),
    ];
    for (what, changed, change) in changes {
        let leaves = |leaf, subleaf| {
            let mut answer = sapphire_rapids(leaf, subleaf);
            if leaf == changed {
                change(&mut answer);
            }
            answer
        };
        let has = if changed < 0x1D { processor_has(leaves, never) } else { processor_has(leaves, || KEPT) };
        assert!(!has, "{what}");
    }
}

/// Where the processor and the system have AMX, it must have passed its test.
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64", target_os = "linux"))]
#[test]
fn amx_is_there_where_it_is_found() {
    assert_eq!(Matrix::detect().is_some(), detect::found());
    assert_eq!(Matrix::detect(), Matrix::detect());
}
