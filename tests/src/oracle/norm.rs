//! Norms; formulas from `halite_kernels::norm`.

use crate::tolerance::{Bound, U, summing};
use halite_kernels::norm::NormKind;

/// One row: RMS or layer norm. `x` has an error where a residual was added to it.
pub fn row(kind: NormKind, eps: f64, x: &[Bound], weight: &[f64], bias: Option<&[f64]>) -> Vec<Bound> {
    match kind {
        NormKind::Rms => rms(eps, x, weight),
        NormKind::Layer => layer(eps, x, weight, bias),
        _ => vec![Bound::exact(f64::NAN); x.len()],
    }
}

fn rms(eps: f64, x: &[Bound], weight: &[f64]) -> Vec<Bound> {
    let mut squares = Bound::sum(x.iter().map(|x| x.value * x.value));
    squares.error += x.iter().map(|x| 2.0 * x.value.abs() * x.error + x.error * x.error).sum::<f64>();
    let inverse = squares.over(x.len() as f64).plus(Bound::exact(eps)).inverse_root();
    x.iter().zip(weight).map(|(x, &weight)| x.times(inverse).times(Bound::exact(weight))).collect()
}

fn layer(eps: f64, x: &[Bound], weight: &[f64], bias: Option<&[f64]>) -> Vec<Bound> {
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
    (0..x.len())
        .map(|i| {
            let y = differences[i].times(inverse).times(Bound::exact(weight[i]));
            match bias {
                Some(bias) => y.plus(Bound::exact(bias[i])),
                None => y,
            }
        })
        .collect()
}
