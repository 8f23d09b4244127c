//! The one table of tolerances: how far F32 arithmetic, in any order, may end from the exact result.
//!
//! The oracle computes with [`Bound`]s: an exact value (f64) and how far a right backend may be from it. Nothing else
//! in this crate decides what is close enough. The rules, with `u = 2^-24`, the unit roundoff of F32:
//!
//! | step | may add | from |
//! |---|---|---|
//! | sum of `n` products | `min(n, 8√n) · u · Σ\|x·w\|` | the classic forward bound (Higham 2002, §3.1), and its probabilistic form `λ√n·u`, λ = 8 (Higham and Mary 2019), which rules for n > 64 |
//! | sum of `n` inexact products | the same, and what each of them is off | the errors of the terms add up |
//! | one addition or product | `u · \|result\|` | IEEE 754 |
//! | a division, root or reciprocal | `4u · \|result\|` | 2.5 ULP, WGSL's bound for a division |
//! | `exp(x)` | `(4 + 2\|x\|) · u`, relative | argument reduction by a product with log2(e) |
//! | the logistic function | its `exp`, an addition and a division | `1 / (1 + exp(-x))` |
//! | softmax | of each `exp` also the rounding of its argument `x - max`; a sum, a division | |
//! | SiLU | `(8 + 2\|x\|) · u`, relative | its `exp` and its division |
//! | `x · sigmoid(alpha · x)` | `(8 + 3\|alpha · x\|) · u`, relative | as SiLU, and the rounding of `alpha · x`, which `exp` passes on |
//! | GELU, erf and tanh | `8u · \|x\|` | its factor `1 + erf` or `1 + tanh` lies in [0, 2] and has an absolute error |
//! | ReLU; squared | nothing; a product's | exact; one product |
//! | an activation, of its argument's error | 1.13 times it | the largest slope of SiLU, of every GELU and of ReLU |
//! | a soft-cap | a division's, `8u` of the tanh, relative, a product's; its argument's error once | the slope of tanh is at most 1 |
//! | a linear bias | a product's and an addition's | distances are exact |
//! | a sink | nothing; it counts as a position whose value is 0 | |
//! | a state of attention | the greatest score is off as scores are, and with it all weights by the same factor | as in the softmax |
//! | merged partial results | each part's error by its share, its weight's by its distance from the mean | as in the softmax |
//! | an element of an INT8 query | a step where it is that near a tie, times the key's element | one step near ties |
//! | a weight in 8 bits | as many steps as its score and its scale may move it | one step near ties |
//! | INT8 sums | nothing | they are exact in i32 |
//! | `cos`, `sin` of a rotation | `2u` | tables rounded from f64 |
//! | rounding to F32, F16, BF16 | `2^-24`, `2^-11`, `2^-8`, relative | half a unit in the last place |
//! | results below the smallest normal | that normal (F16: one subnormal step) | flushing to zero is allowed |
//! | quantised results | `\|q - y / scale\| ≤ 1/2`, and beyond it only what `y` and the scale may be off | one step near ties |
//!
//! How weights, keys and values are stored adds nothing: the oracle reads the stored values. Data of
//! [`Rng::away`](crate::random::Rng::away) makes the bounds catch one lost element: it weighs at least 1/4 of the mean.

use crate::oracle::activation;
use halite_hal::DType;
use halite_kernels::activation::Activation;

/// The unit roundoff of F32.
pub const U: f64 = 1.0 / (1u64 << 24) as f64;
/// The smallest normal F32.
pub const TINY: f64 = f32::MIN_POSITIVE as f64;
/// A division, root or reciprocal, relative.
const DIVISION: f64 = 4.0 * U;
/// The largest slope of the activations.
const SLOPE: f64 = 1.13;

/// An exact value and how far from it a right result may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The exact value.
    pub value: f64,
    /// The largest right distance from it.
    pub error: f64,
}

/// Relative error of a sum of `n` products, of the sum of their magnitudes.
pub fn summing(n: usize) -> f64 {
    (n as f64).min(8.0 * (n as f64).sqrt()) * U
}

/// Relative error of `exp(x)` itself.
pub fn exponential(x: f64) -> f64 {
    (4.0 + 2.0 * x.abs()) * U
}

impl Bound {
    /// Without any error.
    pub const fn exact(value: f64) -> Self {
        Bound { value, error: 0.0 }
    }

    /// The sum of `terms`, each of them an exact product.
    pub fn sum(terms: impl Iterator<Item = f64>) -> Self {
        let (mut value, mut magnitude, mut count) = (0.0, 0.0, 0);
        for term in terms {
            value += term;
            magnitude += term.abs();
            count += 1;
        }
        Bound { value, error: summing(count) * magnitude }
    }

    /// The sum of products that are not exact themselves.
    pub fn total(terms: &[Bound]) -> Self {
        let value = terms.iter().map(|term| term.value).sum();
        let error: f64 = terms.iter().map(|term| term.error).sum();
        let magnitude: f64 = terms.iter().map(|term| term.value.abs() + term.error).sum();
        Bound { value, error: error + summing(terms.len()) * magnitude }
    }

    /// One addition.
    pub fn plus(self, other: Bound) -> Self {
        let value = self.value + other.value;
        let error = self.error + other.error;
        Bound { value, error: error + U * (value.abs() + error) }
    }

    /// One product.
    pub fn times(self, other: Bound) -> Self {
        let value = self.value * other.value;
        let error =
            self.error * other.value.abs() + other.error * self.value.abs() + self.error * other.error;
        Bound { value, error: error + U * (value.abs() + error) }
    }

    /// One division by an exact number.
    pub fn over(self, divisor: f64) -> Self {
        let value = self.value / divisor;
        let error = self.error / divisor.abs();
        Bound { value, error: error + DIVISION * (value.abs() + error) }
    }

    /// One division.
    pub fn divided_by(self, divisor: Bound) -> Self {
        let value = self.value / divisor.value;
        // Where the divisor may be as small as nothing, nothing is known of the quotient.
        let least = (divisor.value.abs() - divisor.error).max(0.0);
        let error = if self.error + divisor.error == 0.0 {
            0.0
        } else {
            (self.error + value.abs() * divisor.error) / least
        };
        Bound { value, error: error + DIVISION * (value.abs() + error) + TINY }
    }

    /// `exp(self)`.
    pub fn exp(self) -> Self {
        let value = self.value.exp();
        let relative = exponential(self.value) + self.error.exp_m1();
        Bound { value, error: if value == 0.0 { TINY } else { value * relative + TINY } }
    }

    /// `1 / (1 + exp(-self))`.
    pub fn sigmoid(self) -> Self {
        let value = 1.0 / (1.0 + (-self.value).exp());
        // Of the sum 1 + exp(-x) the share of the exponential is 1 - value.
        let power = if self.value.is_finite() { exponential(self.value) * (1.0 - value) } else { 0.0 };
        let error = if value < TINY { 0.0 } else { value * (power + U + DIVISION) };
        Bound { value, error: error + self.error / 4.0 + TINY }
    }

    /// The sum of `terms`, none of them below zero, in any order.
    pub fn sum_of(terms: &[Bound]) -> Self {
        let value: f64 = terms.iter().map(|term| term.value).sum();
        let error: f64 = terms.iter().map(|term| term.error).sum();
        Bound { value, error: error + summing(terms.len()) * (value.abs() + error) }
    }

    /// `1 / √self`; the error of the argument counts half.
    pub fn inverse_root(self) -> Self {
        let value = 1.0 / self.value.sqrt();
        // Where the argument may be as small as nothing, nothing is known of its root.
        let relative = self.error / self.value;
        let error = if relative < 0.5 { value * relative } else { f64::INFINITY };
        Bound { value, error: error + 2.0 * DIVISION * value }
    }

    /// One of the activations.
    pub fn activated(self, function: Activation) -> Self {
        let (x, value) = (self.value, activation::apply(function, self.value));
        if x.is_infinite() {
            return Bound { value, error: TINY };
        }
        let own = match function {
            Activation::Silu => (8.0 + 2.0 * x.abs()) * U * value.abs(),
            Activation::QuickGelu => return self.sigmoid_gated(activation::QUICK),
            Activation::Relu => return Bound { value, error: self.error },
            Activation::ReluSquared => {
                let positive = Bound { value: activation::apply(Activation::Relu, x), error: self.error };
                return positive.times(positive).loosened(TINY);
            }
            _ => 8.0 * U * x.abs(),
        };
        Bound { value, error: SLOPE * self.error + own + TINY }
    }

    /// `self · sigmoid(alpha · self)`.
    pub fn sigmoid_gated(self, alpha: f64) -> Self {
        let (x, argument) = (self.value, alpha * self.value);
        if argument == f64::NEG_INFINITY {
            // The limit.
            return Bound { value: 0.0, error: TINY };
        }
        let value = x / (1.0 + (-argument).exp());
        let own = (8.0 + 3.0 * argument.abs()) * U * value.abs();
        Bound { value, error: SLOPE * self.error + own + TINY }
    }

    /// `cap · tanh(self / cap)`.
    pub fn soft_capped(self, cap: f64) -> Self {
        let Bound { value, error } = self.over(cap);
        let value = value.tanh();
        Bound { value, error: error + 8.0 * U * value.abs() }.times(Bound::exact(cap))
    }

    /// Rounded to a type of outputs.
    pub fn rounded(self, dtype: DType) -> Self {
        let (unit, least) = match dtype {
            DType::F32 => (U, TINY),
            DType::F16 => (2f64.powi(-11), 2f64.powi(-24)),
            DType::Bf16 => (2f64.powi(-8), TINY),
            _ => (0.0, 0.0),
        };
        Bound { error: self.error + unit * (self.value.abs() + self.error) + least, ..self }
    }

    /// With `more` added to the error.
    pub fn loosened(self, more: f64) -> Self {
        Bound { error: self.error + more, ..self }
    }

    /// Whether `actual` is right: NaN where NaN is due, the same infinity, otherwise within the error.
    pub fn holds(&self, actual: f64) -> bool {
        if self.value.is_nan() {
            actual.is_nan()
        } else if self.value.is_infinite() {
            actual == self.value
        } else {
            (actual - self.value).abs() <= self.error
        }
    }
}

/// How far `q` may be from `y / scale`, both exact: half a step, and what `y` and the scale may be off.
pub fn quantised(y: Bound, scale: Bound) -> f64 {
    let ratio = (y.value / scale.value).abs();
    let own = y.error / scale.value + ratio * scale.error / scale.value;
    // A reciprocal and a product stand between `y` and `q`.
    0.5 + own + (DIVISION + U) * ratio
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    #[test]
    fn a_lost_element_is_outside_the_bound() {
        for n in [1usize, 2, 3, 16, 17, 130, 576, 1536, 4096] {
            let mut rng = Rng::new(n as u64);
            let terms: Vec<f64> = (0..n).map(|_| f64::from(rng.away()) * f64::from(rng.away())).collect();
            let whole = Bound::sum(terms.iter().copied());
            for lost in [0, n / 2, n - 1] {
                assert!(!whole.holds(whole.value - terms[lost]), "{n} terms without number {lost}");
            }
        }
    }

    #[test]
    fn f32_sums_in_either_direction_are_inside() {
        for n in [1usize, 2, 63, 64, 65, 1536, 20_000] {
            let mut rng = Rng::new(n as u64);
            let pairs: Vec<(f32, f32)> = (0..n).map(|_| (rng.spread(), rng.spread())).collect();
            let bound = Bound::sum(pairs.iter().map(|&(a, b)| f64::from(a) * f64::from(b)));
            let forwards = pairs.iter().fold(0f32, |sum, &(a, b)| sum + a * b);
            let backwards = pairs.iter().rev().fold(0f32, |sum, &(a, b)| sum + a * b);
            assert!(bound.holds(f64::from(forwards)) && bound.holds(f64::from(backwards)), "{n} terms");
        }
    }

    #[test]
    fn nan_and_infinity_are_wanted_exactly() {
        assert!(Bound::exact(f64::NAN).holds(f64::NAN));
        assert!(!Bound::exact(f64::NAN).holds(0.0));
        assert!(!Bound { value: 1.0, error: 1e9 }.holds(f64::NAN));
        assert!(Bound::exact(f64::NEG_INFINITY).holds(f64::NEG_INFINITY));
        assert!(!Bound::exact(f64::NEG_INFINITY).holds(-1e300));
    }
}
