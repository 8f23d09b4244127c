//! Rotary embedding; formulas from `halite_kernels::rope`, the frequencies included.

use crate::tolerance::{Bound, U};
use halite_kernels::rope::{RopeScaling, RopeSpec, RopeStyle, YarnBounds};
use std::f64::consts::TAU;

/// The angle that one position turns pair `pair` by.
pub fn frequency(spec: &RopeSpec, pair: usize) -> f64 {
    let exponent = 2.0 * pair as f64 / spec.rotary_dim as f64;
    let theta = f64::from(spec.theta);
    let plain = (-exponent * theta.ln()).exp();
    match spec.scaling {
        RopeScaling::None => plain,
        RopeScaling::Linear { factor } => plain / f64::from(factor),
        // factor^(d / (d - 2)) in the base is factor^(-2i / (d - 2)) of pair i.
        RopeScaling::Ntk { .. } if pair == 0 => plain,
        RopeScaling::Ntk { factor } => {
            plain * (-2.0 * pair as f64 / (spec.rotary_dim as f64 - 2.0) * f64::from(factor).ln()).exp()
        }
        RopeScaling::Yarn(yarn) => {
            // Pair i turns context / 2π · theta^(-2i/d) times.
            let turning = |times: f32| {
                let ratio = f64::from(yarn.original_context) / TAU / f64::from(times);
                ratio.log(theta) * spec.rotary_dim as f64 / 2.0
            };
            let (mut low, mut high) = (turning(yarn.beta_fast), turning(yarn.beta_slow));
            if yarn.bounds == YarnBounds::Whole {
                (low, high) = (low.floor(), high.ceil());
            }
            let low = if low < 0.0 { 0.0 } else { low };
            let last = spec.rotary_dim as f64 - 1.0;
            let high = if high > last { last } else { high };
            let high = if high < low + 0.001 { low + 0.001 } else { high };
            let at = pair as f64;
            let divided = plain / f64::from(yarn.factor);
            if at <= low {
                plain
            } else if at >= high {
                divided
            } else {
                let share = (at - low) / (high - low);
                share * divided + (1.0 - share) * plain
            }
        }
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
        RopeScaling::PerPair { ref divisors, .. } => plain / f64::from(divisors[pair]),
        _ => f64::NAN,
    }
}

/// The factor of cosines and sines.
fn attention_factor(scaling: &RopeScaling) -> f64 {
    match scaling {
        RopeScaling::Yarn(yarn) => f64::from(yarn.attention_factor),
        RopeScaling::PerPair { attention_factor, .. } => f64::from(*attention_factor),
        _ => 1.0,
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
        // Tables are rounded from f64; the bound is relative to the longest that a cosine or a sine gets.
        let longest = cos[pair].hypot(sin[pair]);
        let (a, b) = (Bound::exact(head[first]), Bound::exact(head[second]));
        let cos = Bound { value: cos[pair], error: 2.0 * U * longest };
        let sin = Bound { value: sin[pair], error: 2.0 * U * longest };
        let minus_sin = Bound { value: -sin.value, ..sin };
        out[first] = a.times(cos).plus(b.times(minus_sin));
        out[second] = a.times(sin).plus(b.times(cos));
    }
    out
}

/// Cosines and sines of a position, which has one number an axis.
pub fn tables(spec: &RopeSpec, position: &[u32]) -> (Vec<f64>, Vec<f64>) {
    let factor = attention_factor(&spec.scaling);
    let turn = |pair| {
        let axis = if spec.pair_axes.is_empty() { 0 } else { spec.pair_axes[pair] };
        let angle = f64::from(position[axis]) * frequency(spec, pair);
        (factor * angle.cos(), factor * angle.sin())
    };
    (0..spec.rotary_dim / 2).map(turn).unzip()
}

/// One head at a position.
pub fn head(spec: &RopeSpec, head: &[f64], position: &[u32]) -> Vec<Bound> {
    let (cos, sin) = tables(spec, position);
    turn(spec.style, head, &cos, &sin)
}
