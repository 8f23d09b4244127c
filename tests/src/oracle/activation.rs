//! Activations; formulas from `halite_kernels::activation`.

use crate::tolerance::Bound;
use halite_kernels::activation::{Activation, Function, GateLayout, Glu};

/// The factor of [`Activation::QuickGelu`], as F32 holds it.
pub const QUICK: f64 = 1.702f32 as f64;

/// One element.
pub fn apply(function: Activation, x: f64) -> f64 {
    match function {
        // The limit of each.
        _ if x == f64::NEG_INFINITY => 0.0,
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::GeluErf => x / 2.0 * erfc(-x / 2f64.sqrt()),
        Activation::GeluTanh => {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
            x / 2.0 * (1.0 + inner.tanh())
        }
        Activation::QuickGelu => x / (1.0 + (-QUICK * x).exp()),
        Activation::Relu if x < 0.0 => 0.0,
        Activation::Relu => x,
        Activation::ReluSquared if x < 0.0 => 0.0,
        Activation::ReluSquared => x * x,
        // An activation that the oracle does not know makes every comparison fail.
        _ => f64::NAN,
    }
}

/// One gate and what it gates.
pub fn glu(function: Glu, gate: Bound, up: Bound) -> Bound {
    match function {
        Glu::Plain(activation) => gate.activated(activation).times(up),
        Glu::Clamped { alpha, limit } => {
            let limit = f64::from(limit);
            // Clamps move a value and its error nowhere further apart. `f64::min` would lose a NaN.
            let gate = if gate.value > limit { Bound { value: limit, ..gate } } else { gate };
            let up =
                if up.value.is_nan() { up } else { Bound { value: up.value.clamp(-limit, limit), ..up } };
            gate.sigmoid_gated(f64::from(alpha)).times(up.plus(Bound::exact(1.0)))
        }
        _ => Bound::exact(f64::NAN),
    }
}

/// Rows of `columns` results each.
pub fn rows(function: Function, x: &[Bound], columns: usize) -> Vec<Bound> {
    let Function::Gated { glu: unit, layout } = function else {
        let Function::Plain(activation) = function else { return Vec::new() };
        return x.iter().map(|x| x.activated(activation)).collect();
    };
    let mut out = Vec::new();
    for row in x.chunks_exact((2 * columns).max(1)) {
        for column in 0..columns {
            let (gate, up) = match layout {
                GateLayout::Interleaved => (2 * column, 2 * column + 1),
                _ => (column, columns + column),
            };
            out.push(glu(unit, row[gate], row[up]));
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
