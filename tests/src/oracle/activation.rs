//! Activations; formulas from `halite_kernels::activation`.

use crate::tolerance::Bound;
use halite_kernels::activation::Activation;

/// One element.
pub fn apply(function: Activation, x: f64) -> f64 {
    match function {
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::GeluErf => x / 2.0 * erfc(-x / 2f64.sqrt()),
        Activation::GeluTanh => {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
            x / 2.0 * (1.0 + inner.tanh())
        }
        // An activation that the oracle does not know makes every comparison fail.
        _ => f64::NAN,
    }
}

/// `act(gate) · up` for rows that hold the gate, then the up half.
pub fn gated(function: Activation, x: &[f64], columns: usize) -> Vec<Bound> {
    let mut out = Vec::new();
    for row in x.chunks_exact((2 * columns).max(1)) {
        for column in 0..columns {
            let gate = Bound::exact(row[column]).activated(function);
            out.push(gate.times(Bound::exact(row[columns + column])));
        }
    }
    out
}

/// The complementary error function: its power series near zero, its continued fraction beyond.
fn erfc(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 - erfc(-x);
    }
    if x < 2.0 {
        // erf(x) = 2/√π Σ (-1)^n x^(2n+1) / (n! (2n+1))   (Abramowitz and Stegun 7.1.5)
        let (mut term, mut sum) = (x, x);
        for n in 1..80 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        return 1.0 - 2.0 / std::f64::consts::PI.sqrt() * sum;
    }
    // erfc(x) = exp(-x²)/√π · 1/(x + (1/2)/(x + 1/(x + (3/2)/(x + …))))   (Abramowitz and Stegun 7.1.14)
    let mut fraction = x;
    for n in (1..120).rev() {
        fraction = x + f64::from(n) / 2.0 / fraction;
    }
    (-x * x).exp() / std::f64::consts::PI.sqrt() / fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of Abramowitz and Stegun, table 7.1, and Python's `math.erfc` for the tail.
    #[test]
    fn erfc_agrees_with_tables() {
        for (x, expected) in [
            (0.0, 1.0),
            (0.5, 0.479_500_122_186_953_5),
            (1.0, 0.157_299_207_050_285_13),
            (2.0, 0.004_677_734_981_047_266),
            (3.0, 2.209_049_699_858_544e-5),
            (5.0, 1.537_459_794_428_035e-12),
        ] {
            assert!((erfc(x) - expected).abs() <= 1e-12 * expected.max(1e-3), "erfc({x}) = {}", erfc(x));
            assert!((erfc(-x) - (2.0 - expected)).abs() <= 1e-12);
        }
    }
}
