//! What products of integers see of an expert's rows; formulas from `halite_kernels::quantize`.

use crate::tolerance::{Bound, TINY, U, quantised};
use halite_hal::DType;
use halite_kernels::linear::ActivationFormat;

/// A static scale.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The scale.
    pub scale: f64,
    /// Its zero point; 0 of a symmetric format.
    pub zero_point: i32,
}

/// Rows as a product sees them.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    /// Each row, outlier columns 0.
    pub(super) all: Vec<Vec<Bound>>,
    /// The outlier columns of each row.
    pub(super) kept: Vec<Vec<Bound>>,
}

impl Rows {
    /// Rounds what shares a scale.
    pub(super) fn quantise(&mut self, format: ActivationFormat, known: Option<Known>) {
        match format {
            ActivationFormat::Float(_) => {}
            ActivationFormat::Int8PerTensor | ActivationFormat::AsymmetricPerTensor(_) => {
                let mut values = through_integers(&self.all.concat(), format, known).into_iter();
                for row in &mut self.all {
                    row.iter_mut().zip(&mut values).for_each(|(x, seen)| *x = seen);
                }
            }
            _ => {
                for row in &mut self.all {
                    let size = if let ActivationFormat::Int8PerGroup { group_size } = format {
                        group_size
                    } else {
                        row.len()
                    };
                    let parts =
                        row.chunks(size.max(1)).flat_map(|part| through_integers(part, format, known));
                    *row = parts.collect();
                }
            }
        }
    }
}

/// `(q - zero_point) · scale` of values that share a scale. Where a rounding may go either way, the error is a step.
fn through_integers(part: &[Bound], format: ActivationFormat, known: Option<Known>) -> Vec<Bound> {
    if known.is_none() && part.iter().any(|x| !x.value.is_finite()) {
        return vec![Bound::exact(f64::NAN); part.len()];
    }
    let error = part.iter().map(|x| x.error).fold(0.0, f64::max);
    let low = part.iter().map(|x| x.value).fold(0.0, f64::min);
    let high = part.iter().map(|x| x.value).fold(0.0, f64::max);
    let zeros = format.has_zero_points();
    let mut scale = match known {
        Some(known) => Bound::exact(known.scale),
        None if zeros => {
            let of = |value| Bound { value, error }.over(255.0);
            of(high).plus(of(-low))
        }
        None => Bound { value: high.max(-low), error }.over(127.0),
    };
    scale.value = scale.value.max(TINY);
    // Least and most steps that `q - zero_point` can be; more than one of each where the zero point is near a tie.
    let limits = if zeros {
        let least = if format.dtype() == DType::U8 { 0.0 } else { -128.0 };
        let (first, last) = match known {
            Some(known) => (f64::from(known.zero_point), f64::from(known.zero_point)),
            None => {
                let ratio = -low / scale.value;
                let slack = quantised(Bound { value: low, error }, scale) - 0.5 + 2.0 * U * (ratio + 128.0);
                either_way(least + ratio, slack)
            }
        };
        let within = |zero: f64| zero.clamp(least, least + 255.0);
        let limits = |zero: f64| (least - within(zero), least + 255.0 - within(zero));
        [limits(first), limits(last)]
    } else {
        [(-127.0, 127.0); 2]
    };
    let clamp = |steps: f64, limit: usize| steps.clamp(limits[limit].0, limits[limit].1);
    let step = |&x: &Bound| {
        let ratio = x.value / scale.value;
        let (first, last) = either_way(ratio, quantised(x, scale) - 0.5);
        let steps = clamp(ratio.round_ties_even(), 0);
        // The later zero point allows fewer steps upwards and more downwards.
        let off = (steps - clamp(first, 1)).max(clamp(last, 0) - steps).max(0.0);
        Bound { value: steps * scale.value, error: steps.abs() * scale.error + off * scale.value }
    };
    part.iter().map(step).collect()
}

/// The first and the last integer that a value which may be `slack` off is rounded to.
fn either_way(value: f64, slack: f64) -> (f64, f64) {
    ((value - slack - 0.5).ceil(), (value + slack + 0.5).floor())
}
