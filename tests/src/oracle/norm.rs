//! Norms; formulas from `halite_kernels::norm`.

use crate::tolerance::{Bound, U, summing};
use halite_kernels::norm::{NormKind, NormSpec};

/// One row: RMS or layer norm, with its weights and biases where it has them. `x` has an error where a residual was
/// added to it.
pub fn row(spec: &NormSpec, x: &[Bound], weight: Option<&[f64]>, bias: Option<&[f64]>) -> Vec<Bound> {
    let eps = f64::from(spec.eps);
    let mut y = match spec.kind {
        NormKind::Rms => rms(eps, x),
        NormKind::Layer => layer(eps, x),
        _ => vec![Bound::exact(f64::NAN); x.len()],
    };
    for (y, &weight) in y.iter_mut().zip(weight.into_iter().flatten()) {
        let weight = Bound::exact(weight);
        let offset = Bound::exact(f64::from(spec.weight_offset));
        *y = y.times(if offset.value == 0.0 { weight } else { weight.plus(offset) });
    }
    for (y, &bias) in y.iter_mut().zip(bias.into_iter().flatten()) {
        *y = y.plus(Bound::exact(bias));
    }
    y
}

fn rms(eps: f64, x: &[Bound]) -> Vec<Bound> {
    let mut squares = Bound::sum(x.iter().map(|x| x.value * x.value));
    squares.error += x.iter().map(|x| 2.0 * x.value.abs() * x.error + x.error * x.error).sum::<f64>();
    let inverse = squares.over(x.len() as f64).plus(Bound::exact(eps)).inverse_root();
    x.iter().map(|x| x.times(inverse)).collect()
}

fn layer(eps: f64, x: &[Bound]) -> Vec<Bound> {
    let n = x.len() as f64;
    let mean = x.iter().map(|x| x.value).sum::<f64>() / n;
    // How far off the mean that a backend subtracts may be.
    let rounding = (summing(x.len()) + 4.0 * U) * x.iter().map(|x| x.value.abs()).sum::<f64>() / n;
    let mean_error = rounding + x.iter().map(|x| x.error).sum::<f64>() / n;
    let differences: Vec<Bound> = x
        .iter()
        .map(|x| Bound { value: x.value - mean, error: x.error + mean_error }.plus(Bound::exact(0.0)))
        .collect();
    let mut squares = Bound::sum(differences.iter().map(|d| d.value * d.value));
    // The differences add up to nothing, so a mean that is off counts by its square only.
    squares.error += n * mean_error * mean_error;
    for (x, difference) in x.iter().zip(&differences) {
        squares.error += 2.0 * difference.value.abs() * (x.error + U * (difference.value.abs() + mean_error));
    }
    let inverse = squares.over(n).plus(Bound::exact(eps)).inverse_root();
    differences.into_iter().map(|difference| difference.times(inverse)).collect()
}
