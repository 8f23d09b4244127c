//! Exact sums against `i64`, in every tier.

use super::*;
use crate::{
    linear::{
        epilogue::{Epilogue, Int8ToI32},
        output::OutputRows,
        pack::pack_int8_panel,
        product::Multiply,
    },
    simd::{Tier, random::Random},
};

/// One product: `[m][k]` times `[n][k]`, rows of the activations `stride` apart.
struct Case {
    m: usize,
    n: usize,
    k: usize,
    stride: usize,
    columns: Columns,
    a: Vec<i8>,
    w: Vec<i8>,
}

impl Case {
    /// `fill` makes activations and weights; between the rows lies a byte that must not count.
    fn new(m: usize, n: usize, k: usize, gap: usize, mut fill: impl FnMut() -> (i8, i8)) -> Self {
        let stride = k + gap;
        let mut a = vec![77; (m * stride).saturating_sub(gap)];
        for row in 0..m {
            for x in &mut a[row * stride..][..k] {
                *x = fill().0;
            }
        }
        let w = (0..n * k).map(|_| fill().1).collect();
        Self { m, n, k, stride, columns: Columns::Plain, a, w }
    }

    fn packed(&self) -> Vec<u8> {
        let len = int8_panel_len(self.k);
        let mut bytes = vec![0; self.columns.panels(self.n) * len];
        for panel in 0..self.columns.panels(self.n) {
            let channel =
                |lane| self.columns.channel(self.n, panel, lane).map(|c| &self.w[c * self.k..][..self.k]);
            pack_int8_panel(self.k, channel, &mut bytes[panel * len..][..len]);
        }
        bytes
    }

    fn sums(&self, tier: Tier) -> Vec<i32> {
        let mut sums = vec![i32::MAX; self.m];
        let (stride, rows, k) = (self.stride, self.m, self.k);
        tier.run(SumRows { values: &self.a, stride, rows, k, group: k, times: 1, first: 0, sums: &mut sums });
        sums
    }

    fn product(&self, tier: Tier) -> Vec<i32> {
        let (bytes, sums) = (self.packed(), self.sums(tier));
        let mut out = vec![i32::MIN; self.m * self.n];
        let weights = Int8Weights::new(&bytes, self.n, self.k, self.columns);
        tier.run(Multiply {
            product: Int8Product::new(Int8Rows::new(&self.a, self.m, self.stride, self.k, &sums), weights)
                .with_matrix(tier.matrix()),
            panels: 0..self.columns.panels(self.n),
            epilogue: Int8ToI32 { out: OutputRows::new(&mut out, self.m, self.n, self.n) },
        });
        out
    }

    fn exact(&self, row: usize, channel: usize) -> i64 {
        let (a, w) = (&self.a[row * self.stride..][..self.k], &self.w[channel * self.k..][..self.k]);
        a.iter().zip(w).map(|(&a, &w)| i64::from(a) * i64::from(w)).sum()
    }

    fn check(&self, what: &str) {
        for tier in Tier::available() {
            let got = self.product(tier);
            for row in 0..self.m {
                for channel in 0..self.n {
                    let (got, want) = (i64::from(got[row * self.n + channel]), self.exact(row, channel));
                    assert_eq!(
                        got, want,
                        "{tier} {what} m {} n {} k {} row {row} channel {channel}",
                        self.m, self.n, self.k
                    );
                }
            }
        }
    }
}

#[test]
fn exact_for_every_k() {
    let mut random = Random::new(1);
    for k in 0..=130 {
        for m in [1, 2, 3, 5, 12] {
            Case::new(m, 33, k, 3, || (random.i8(), random.i8())).check("random");
        }
    }
}

#[test]
fn exact_for_every_row_count() {
    let mut random = Random::new(2);
    for m in 0..=27 {
        for k in [7, 64, 101] {
            Case::new(m, 40, k, 0, || (random.i8(), random.i8())).check("random");
        }
    }
}

#[test]
fn exact_for_every_channel_count() {
    let mut random = Random::new(3);
    for n in 0..=70 {
        for m in [1, 4, 13] {
            Case::new(m, n, 21, 1, || (random.i8(), random.i8())).check("random");
        }
    }
}

#[test]
fn extremes_do_not_saturate() {
    for pair in [(-128, -128), (127, -128), (-128, 127), (127, 127), (0, -128), (-128, 0), (-1, -128)] {
        for k in [1, 2, 3, 4, 5, 64, 130, 4097] {
            Case::new(13, 33, k, 0, || pair).check("constant");
        }
    }
}

#[test]
fn the_greatest_sums_of_i32_are_exact() {
    // 131,071 products of 16,384 are the most below 2^31.
    Case::new(1, 1, 131_071, 0, || (-128, -128)).check("largest K");
    Case::new(2, 1, 131_071, 0, || (127, -128)).check("largest K");
}

#[test]
fn row_sums_are_exact() {
    let mut random = Random::new(4);
    for k in 0..=200 {
        let case = Case::new(3, 1, k, 2, || (random.i8(), 0));
        for tier in Tier::available() {
            for (row, sum) in case.sums(tier).into_iter().enumerate() {
                let want: i32 = case.a[row * case.stride..][..k].iter().map(|&x| i32::from(x)).sum();
                assert_eq!(sum, want, "{tier} k {k} row {row}");
            }
        }
    }
}

#[test]
fn sums_of_groups_are_exact() {
    let mut random = Random::new(7);
    for (k, group) in [(1, 32), (32, 32), (33, 32), (200, 64), (130, 128)] {
        let case = Case::new(3, 1, k, 2, || (random.i8(), 0));
        for tier in Tier::available() {
            let mut sums = vec![i32::MIN; 3 * k.div_ceil(group)];
            tier.run(SumRows {
                values: &case.a,
                stride: case.stride,
                rows: 3,
                k,
                group,
                times: 1,
                first: 0,
                sums: &mut sums,
            });
            for (place, sum) in sums.into_iter().enumerate() {
                let row = &case.a[place % 3 * case.stride..][..k];
                let want: i32 =
                    row.chunks(group).nth(place / 3).into_iter().flatten().map(|&x| i32::from(x)).sum();
                assert_eq!(sum, want, "{tier} k {k} group {group} place {place}");
            }
        }
    }
}

#[test]
fn a_range_of_panels_leaves_the_others_alone() {
    let mut random = Random::new(5);
    let case = Case::new(13, 100, 30, 0, || (random.i8(), random.i8()));
    for tier in Tier::available() {
        let (bytes, sums) = (case.packed(), case.sums(tier));
        let mut out = vec![i32::MIN; 13 * 100];
        let weights = Int8Weights::new(&bytes, case.n, case.k, case.columns);
        tier.run(Multiply {
            product: Int8Product::new(Int8Rows::new(&case.a, case.m, case.stride, case.k, &sums), weights),
            panels: 1..3,
            epilogue: Int8ToI32 { out: OutputRows::new(&mut out, 13, 100, 100) },
        });
        for (i, &got) in out.iter().enumerate() {
            let (row, channel) = (i / 100, i % 100);
            let inside = (32..96).contains(&channel);
            let want = if inside { case.exact(row, channel) } else { i64::from(i32::MIN) };
            assert_eq!(i64::from(got), want, "{tier} row {row} channel {channel}");
        }
    }
}

#[test]
fn gated_panels_hold_gate_and_up_of_the_same_columns() {
    /// Writes gate minus 3 times up: tells the two apart.
    struct Difference<'a>(OutputRows<'a, i32>);
    impl Epilogue for Difference<'_> {
        type Sum = i32;
        #[inline(always)]
        fn store<I: Isa>(&mut self, isa: I, row: usize, place: Place, sums: &RowSums<i32>) {
            let acc = [isa.load_i32(&sums[0]), isa.load_i32(&sums[1])];
            let up = isa.add_i32(isa.add_i32(acc[1], acc[1]), acc[1]);
            isa.store_i32_partial(isa.sub_i32(acc[0], up), self.0.segment(row, place.column, place.valid));
        }
    }
    let mut random = Random::new(6);
    for half in [1, 15, 16, 17, 40] {
        let mut case = Case::new(3, 2 * half, 9, 0, || (random.i8(), random.i8()));
        case.columns = Columns::Gated;
        for tier in Tier::available() {
            let (bytes, sums) = (case.packed(), case.sums(tier));
            let mut out = vec![0; 3 * half];
            let weights = Int8Weights::new(&bytes, case.n, case.k, case.columns);
            tier.run(Multiply {
                product: Int8Product::new(
                    Int8Rows::new(&case.a, case.m, case.stride, case.k, &sums),
                    weights,
                ),
                panels: 0..case.columns.panels(case.n),
                epilogue: Difference(OutputRows::new(&mut out, 3, half, half)),
            });
            for (i, &got) in out.iter().enumerate() {
                let (row, column) = (i / half, i % half);
                let want = case.exact(row, column) - 3 * case.exact(row, half + column);
                assert_eq!(i64::from(got), want, "{tier} half {half} row {row} column {column}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "3 rows of 5, 6 apart, in 16 values")]
fn short_activations_are_refused() {
    Int8Rows::new(&[0; 16], 3, 6, 5, &[0; 3]);
}

#[test]
#[should_panic(expected = "33 x 4 weights in 255")]
fn short_weights_are_refused() {
    Int8Weights::new(&[0; 255], 33, 4, Columns::Plain);
}
