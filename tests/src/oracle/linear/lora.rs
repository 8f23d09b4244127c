//! Low-rank adapters; the formula from `halite_kernels::linear::lora`.

use crate::tolerance::Bound;
use halite_hal::DType;

/// An adapter's matrices, exact.
#[derive(Clone, Debug)]
pub struct Adapter {
    /// `[rank, in_features]`.
    pub down: Vec<f64>,
    /// `[out_features, rank]`.
    pub up: Vec<f64>,
    /// Its rank.
    pub rank: usize,
    /// The factor of what it adds.
    pub scale: f64,
}

/// One row: `out + scale · ((x · Aᵀ) · Bᵀ)`, rounded to `output`.
pub fn row(x: &[f64], adapter: &Adapter, out: &[f64], output: DType) -> Vec<Bound> {
    let Adapter { down, up, rank, scale } = adapter;
    let hidden: Vec<Bound> =
        down.chunks_exact(x.len()).map(|a| Bound::sum(x.iter().zip(a).map(|(x, a)| x * a))).collect();
    out.iter()
        .zip(up.chunks_exact(*rank))
        .map(|(&out, b)| {
            let terms: Vec<Bound> = hidden
                .iter()
                .zip(b)
                .map(|(h, b)| Bound { value: h.value * b, error: h.error * b.abs() })
                .collect();
            let added = Bound::total(&terms).times(Bound::exact(*scale));
            Bound::exact(out).plus(added).rounded(output)
        })
        .collect()
}
