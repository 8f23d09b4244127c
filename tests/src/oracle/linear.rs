//! Linear layers; formulas from `halite_kernels::linear`.

pub mod group_wise;
pub mod integers;
pub mod lora;

use crate::tolerance::Bound;
use halite_hal::DType;
use halite_kernels::{activation::Activation, linear::OutputScale};

/// Exact integer sums `x · Wᵀ`, `[rows, weight_rows]`.
pub fn integer_sums(x: &[i8], w: &[i8], rows: usize, weight_rows: usize) -> Vec<i64> {
    let k = w.len().checked_div(weight_rows).unwrap_or(0);
    let mut sums = Vec::with_capacity(rows * weight_rows);
    for row in 0..rows {
        for n in 0..weight_rows {
            let (x, w) = (&x[row * k..][..k], &w[n * k..][..k]);
            sums.push(x.iter().zip(w).map(|(&x, &w)| i64::from(x) * i64::from(w)).sum());
        }
    }
    sums
}

/// Sums of products of floats, `[rows, weight_rows]`.
pub fn float_sums(x: &[f64], w: &[f64], rows: usize, weight_rows: usize) -> Vec<Bound> {
    let k = w.len().checked_div(weight_rows).unwrap_or(0);
    let mut sums = Vec::with_capacity(rows * weight_rows);
    for row in 0..rows {
        for n in 0..weight_rows {
            let (x, w) = (&x[row * k..][..k], &w[n * k..][..k]);
            sums.push(Bound::sum(x.iter().zip(w).map(|(x, w)| x * w)));
        }
    }
    sums
}

/// An integer sum with its two scales; `i32` to F32 rounds once.
pub fn scaled(sum: i64, weight_scale: f64, row_scale: f64) -> Bound {
    Bound::exact(sum as f64)
        .plus(Bound::exact(0.0))
        .times(Bound::exact(weight_scale))
        .times(Bound::exact(row_scale))
}

/// What happens to the products of one layer.
#[derive(Clone, Debug)]
pub struct After<'a> {
    /// Columns of the output.
    pub out_features: usize,
    /// `[weight_rows]`.
    pub bias: Option<&'a [f64]>,
    /// Of a layer without a gate.
    pub activation: Option<Activation>,
    /// Of a gated layer.
    pub gate: Option<Activation>,
    /// Bounds the results before the residual.
    pub soft_cap: Option<f64>,
    /// `[rows, out_features]`.
    pub residual: Option<&'a [f64]>,
    /// Type of the output.
    pub output: DType,
    /// Of an output of integers.
    pub output_scale: Option<OutputScale>,
}

/// The products, `[rows, weight_rows]`, through bias, activation or gate, soft-cap, residual
/// and rounding.
pub fn epilogue(products: &[Bound], after: &After<'_>) -> Vec<Bound> {
    let n = after.out_features;
    let weight_rows = if after.gate.is_some() { 2 * n } else { n };
    let biased = |row: &[Bound], column: usize| match after.bias {
        Some(bias) => row[column].plus(Bound::exact(bias[column])),
        None => row[column],
    };
    let mut out = Vec::new();
    for (r, row) in products.chunks_exact(weight_rows).enumerate() {
        for column in 0..n {
            let mut y = biased(row, column);
            if let Some(activation) = after.activation {
                y = y.activated(activation);
            }
            if let Some(gate) = after.gate {
                y = y.activated(gate).times(biased(row, n + column));
            }
            if let Some(cap) = after.soft_cap {
                y = y.soft_capped(cap);
            }
            if let Some(residual) = after.residual {
                y = y.plus(Bound::exact(residual[r * n + column]));
            }
            out.push(match (after.output, after.output_scale) {
                (DType::I8, Some(scale)) => requantized(y, scale, -128.0, 127.0),
                (DType::U8, Some(scale)) => requantized(y, scale, 0.0, 255.0),
                (output, _) => y.rounded(output),
            });
        }
    }
    out
}

/// As an integer of a type from `least` to `most`: one step near ties, as for every quantised result.
fn requantized(y: Bound, scale: OutputScale, least: f64, most: f64) -> Bound {
    let (steps, zero_point) = (y.over(f64::from(scale.scale)), f64::from(scale.zero_point));
    if steps.value.is_nan() {
        return Bound::exact(zero_point);
    }
    Bound { value: (steps.value + zero_point).clamp(least, most), error: steps.error + 0.5 }
}
