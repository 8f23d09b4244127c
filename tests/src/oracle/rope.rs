//! Rotary embedding; formulas from `halite_kernels::rope`, the frequencies included.

use crate::tolerance::{Bound, U};
use halite_kernels::rope::{RopeScaling, RopeSpec, RopeStyle};
use std::f64::consts::TAU;

/// The angle that one position turns pair `pair` by.
pub fn frequency(spec: &RopeSpec, pair: usize) -> f64 {
    let exponent = 2.0 * pair as f64 / spec.rotary_dim as f64;
    let plain = (-exponent * f64::from(spec.theta).ln()).exp();
    match spec.scaling {
        RopeScaling::None => plain,
        RopeScaling::Linear { factor } => plain / f64::from(factor),
        RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => {
            let (factor, context) = (f64::from(factor), f64::from(original_context));
            let (low, high) = (f64::from(low_freq_factor), f64::from(high_freq_factor));
            let wavelength = TAU / plain;
            if wavelength < context / high {
                plain
            } else if wavelength > context / low {
                plain / factor
            } else {
                let smooth = (context / wavelength - low) / (high - low);
                (1.0 - smooth) * plain / factor + smooth * plain
            }
        }
        _ => f64::NAN,
    }
}

/// One head turned by these cosines and sines, `[rotary_dim / 2]`; elements beyond `rotary_dim` stay.
pub fn turn(style: RopeStyle, head: &[f64], cos: &[f64], sin: &[f64]) -> Vec<Bound> {
    let mut out: Vec<Bound> = head.iter().map(|&x| Bound::exact(x)).collect();
    let pairs = cos.len();
    for pair in 0..pairs {
        let (first, second) = match style {
            RopeStyle::HalfSplit => (pair, pair + pairs),
            RopeStyle::Interleaved => (2 * pair, 2 * pair + 1),
            _ => return vec![Bound::exact(f64::NAN); head.len()],
        };
        let (a, b) = (Bound::exact(head[first]), Bound::exact(head[second]));
        let cos = Bound { value: cos[pair], error: 2.0 * U };
        let sin = Bound { value: sin[pair], error: 2.0 * U };
        let minus_sin = Bound { value: -sin.value, ..sin };
        out[first] = a.times(cos).plus(b.times(minus_sin));
        out[second] = a.times(sin).plus(b.times(cos));
    }
    out
}

/// One head at a position.
pub fn head(spec: &RopeSpec, head: &[f64], position: u32) -> Vec<Bound> {
    let angles = (0..spec.rotary_dim / 2).map(|pair| f64::from(position) * frequency(spec, pair));
    let (cos, sin): (Vec<f64>, Vec<f64>) = angles.map(|angle| (angle.cos(), angle.sin())).unzip();
    turn(spec.style, head, &cos, &sin)
}
