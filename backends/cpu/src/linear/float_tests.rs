//! Against `f64`, and row by row to the last bit, in every tier.

use half::{bf16, f16};

use super::*;
use crate::{
    linear::{epilogue::Epilogue, output::OutputRows, pack::pack_float_panel, product::Multiply},
    simd::{Tier, random::Random},
};

fn packed<T: StoredFloat>(w: &[T], n: usize, k: usize) -> Vec<T> {
    let len = float_panel_len(k);
    let mut values = vec![T::ZERO; Columns::Plain.panels(n) * len];
    for panel in 0..Columns::Plain.panels(n) {
        let channel = |lane| Columns::Plain.channel(n, panel, lane).map(|c| &w[c * k..][..k]);
        pack_float_panel(k, T::ZERO, channel, &mut values[panel * len..][..len]);
    }
    values
}

/// The sums themselves.
struct Sums<'a>(OutputRows<'a, f32>);

impl Epilogue for Sums<'_> {
    type Sum = f32;
    #[inline(always)]
    fn store<I: Isa>(&mut self, _isa: I, row: usize, place: Place, sums: &RowSums<f32>) {
        let out = self.0.segment(row, place.column, place.valid);
        out.copy_from_slice(&sums.as_flattened()[..place.valid]);
    }
}

struct Shape {
    m: usize,
    n: usize,
    k: usize,
    stride: usize,
}

fn product<T: StoredFloat>(tier: Tier, a: &[f32], packed: &[T], s: &Shape) -> Vec<f32> {
    let mut out = vec![f32::NAN; s.m * s.n];
    let weights = FloatWeights::new(packed, s.n, s.k, Columns::Plain);
    tier.run(Multiply {
        product: FloatProduct::new(FloatRows::new(a, s.m, s.stride, s.k), weights),
        panels: 0..Columns::Plain.panels(s.n),
        epilogue: Sums(OutputRows::new(&mut out, s.m, s.n, s.n)),
    });
    out
}

/// Every result against `f64`, and equal in bits to the row alone.
fn check<T: StoredFloat>(s: &Shape, random: &mut Random, narrow: fn(f32) -> T) {
    let mut a = vec![f32::NAN; s.m * s.stride];
    for row in 0..s.m {
        a[row * s.stride..][..s.k].copy_from_slice(&random.floats(s.k));
    }
    let w: Vec<T> = random.floats(s.n * s.k).into_iter().map(narrow).collect();
    let packed = packed(&w, s.n, s.k);
    for tier in Tier::available() {
        let got = product(tier, &a, &packed, s);
        for row in 0..s.m {
            let x = &a[row * s.stride..][..s.k];
            let alone = product(tier, x, &packed, &Shape { m: 1, stride: s.k, ..*s });
            for channel in 0..s.n {
                let got = got[row * s.n + channel];
                let what = format!("{tier} m {} n {} k {} row {row} channel {channel}", s.m, s.n, s.k);
                assert_eq!(got.to_bits(), alone[channel].to_bits(), "{what}");
                let weights = &w[channel * s.k..][..s.k];
                let terms = || x.iter().zip(weights).map(|(&x, w)| f64::from(x) * f64::from(w.widen()));
                let (sum, size) = (terms().sum::<f64>(), terms().map(f64::abs).sum::<f64>());
                let allowed = size * (s.k + 1) as f64 * 2f64.powi(-24);
                assert!((f64::from(got) - sum).abs() <= allowed, "{what}: {got} instead of {sum}");
            }
        }
    }
}

#[test]
fn right_and_the_same_alone_for_every_row_count() {
    let mut random = Random::new(1);
    for m in 0..=13 {
        check(&Shape { m, n: 161, k: 37, stride: 40 }, &mut random, |x| x);
        check(&Shape { m, n: 65, k: 20, stride: 20 }, &mut random, bf16::from_f32);
        check(&Shape { m, n: 65, k: 20, stride: 20 }, &mut random, f16::from_f32);
    }
}

#[test]
fn right_for_every_channel_count_and_k() {
    let mut random = Random::new(2);
    for n in 0..=70 {
        check(&Shape { m: 2, n, k: 5, stride: 5 }, &mut random, |x| x);
    }
    for k in 0..=40 {
        check(&Shape { m: 5, n: 33, k, stride: k }, &mut random, |x| x);
    }
}

#[test]
fn one_chain_in_ascending_k() {
    // 2^24 + 1 + 1 ... in this order never grows; any other order does.
    let (m, n, k) = (3, 40, 100);
    let mut a = vec![1.0; m * k];
    for row in 0..m {
        a[row * k] = 16_777_216.0;
    }
    let packed = packed(&vec![1.0f32; n * k], n, k);
    for tier in Tier::available() {
        let got = product(tier, &a, &packed, &Shape { m, n, k, stride: k });
        assert!(got.iter().all(|&y| y == 16_777_216.0), "{tier}");
    }
}

#[test]
fn a_range_of_panels_leaves_the_others_alone() {
    let (n, k) = (32 * 9, 3);
    let packed = packed(&vec![1.0f32; n * k], n, k);
    for tier in Tier::available() {
        for m in [1, 2, 4] {
            for panels in [0..0, 2..3, 1..7, 3..9] {
                let mut out = vec![-1.0; m * n];
                let (a, weights) = (vec![1.0; m * k], FloatWeights::new(&packed, n, k, Columns::Plain));
                tier.run(Multiply {
                    product: FloatProduct::new(FloatRows::new(&a, m, k, k), weights),
                    panels: panels.clone(),
                    epilogue: Sums(OutputRows::new(&mut out, m, n, n)),
                });
                for (i, y) in out.into_iter().enumerate() {
                    let want = if panels.contains(&(i % n / PANEL)) { 3.0 } else { -1.0 };
                    assert_eq!(y, want, "{tier} m {m} {panels:?} column {}", i % n);
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "2 rows of 4, 4 apart, in 7 values")]
fn short_activations_are_refused() {
    FloatRows::new(&[0.0; 7], 2, 4, 4);
}
