//! Integer weights with scales along K by the oracle.

use crate::{
    device::{Exact, read},
    fault::Fault,
};
use halite_hal::DType;
use halite_kernels::linear::{
    ActivationFormat, Activations, GroupOffset, HostWeights, LinearSpec, WeightFormat,
};
use halite_parity::{
    oracle::linear::group_wise::{Outliers, RowScales, Weights, bare_sums, float_products, integer_products},
    tolerance::Bound,
};

/// Whether a layer's weights are these.
pub(crate) fn has(spec: &LinearSpec) -> bool {
    let channels =
        matches!(spec.weights, WeightFormat::Int8PerChannel | WeightFormat::Int8PerChannelAsymmetric);
    spec.weights.is_integer() && !(channels && spec.activations.is_quantized())
}

impl Exact {
    pub(crate) fn read_group_wise(&self, host: HostWeights<'_>, spec: &LinearSpec) -> Weights {
        let (rows, k) = (spec.weight_rows(), spec.in_features);
        let group = host.format().group_size(k).unwrap_or(k).min(k);
        let mut weights = Weights { rows, k, group, q: Vec::new(), scales: Vec::new(), mins: Vec::new() };
        let mut room = vec![0; group];
        for row in 0..rows {
            for (index, start) in (0..k).step_by(group).enumerate() {
                let Some(factors) = host.read_group(k, row, index, &mut room) else { continue };
                let zero = match factors.zero_point {
                    _ if self.has(Fault::LinearNoZeroPoints) => 0,
                    zero if self.has(Fault::LinearZeroPointsUnsigned) => i16::from(zero as u8),
                    // In the arithmetic of its own type.
                    zero if self.has(Fault::LinearZeroPointsInEightBits) => {
                        room.iter_mut().for_each(|q| *q = q.wrapping_sub(zero));
                        0
                    }
                    zero => i16::from(zero),
                };
                let q = &mut room[..group.min(k - start)];
                if self.has(Fault::LinearHalvesInterleaved) && spec.weights.block().is_some() {
                    let halves = q.to_vec();
                    let middle = q.len() / 2;
                    q.iter_mut().enumerate().for_each(|(i, q)| *q = halves[i % 2 * middle + i / 2]);
                }
                if self.has(Fault::LinearLastGroupLost) && start > 0 && start + group >= k {
                    q.fill(0);
                }
                weights.q.extend(q.iter().map(|&q| i64::from(q) - i64::from(zero)));
                weights.scales.push(f64::from(factors.scale));
                if spec.weights.offset() == GroupOffset::Min {
                    weights.mins.push(f64::from(factors.min));
                }
            }
        }
        let groups = k.div_ceil(group);
        if self.has(Fault::LinearFirstGroupsScale) {
            weights.scales.chunks_exact_mut(groups).for_each(|row| row.fill(row[0]));
        }
        if self.has(Fault::LinearNoMins) {
            weights.mins.fill(0.0);
        }
        weights
    }

    /// `[rows, weight_rows]`, scales included.
    pub(crate) fn group_wise_products(
        &self,
        spec: &LinearSpec,
        weights: &Weights,
        (columns, kept): (&[u32], &[f64]),
        x: &Activations<'_, Self>,
    ) -> Vec<Bound> {
        let Some(x) = x.quantized() else {
            let Activations::Float(x) = x else { return Vec::new() };
            let rows = x.dims()[0];
            let mut products = float_products(&read(x), weights);
            if self.has(Fault::LinearBatchVariant) && rows > 4 {
                products.iter_mut().for_each(|product| product.value *= 1.0 + 1e-6);
            }
            return products;
        };
        let zero_points = x.zero_points.map(read).filter(|_| !self.has(Fault::LinearNoRowZeroPoint));
        let zero =
            |row: usize| zero_points.as_ref().map_or(0, |zeros| zeros[row.min(zeros.len() - 1)] as i32);
        let q = read(x.q).into_iter().enumerate();
        let q: Vec<i32> = q.map(|(i, x)| x as i32 - zero(i / weights.k)).collect();
        if spec.output == DType::I32 {
            return bare_sums(&q, weights).iter().map(|&sum| Bound::exact(sum as f64)).collect();
        }
        let mut scales = read(x.scales);
        if self.has(Fault::LinearRowScaleMissing) {
            scales.fill(1.0);
        }
        let group = if let ActivationFormat::Int8PerGroup { group_size } = spec.activations {
            Some(group_size)
        } else {
            None
        };
        let mut x = x.outliers.map(read).unwrap_or_default();
        if self.has(Fault::LinearNoOutliers) {
            x.fill(0.0);
        }
        let scales = RowScales { scales: &scales, group };
        let outliers = Outliers { columns, x: &x, weights: kept };
        let mut sums = integer_products(&q, scales, weights, outliers);
        let mut others = None;
        if self.has(Fault::LinearOutliersTwice) && !columns.is_empty() {
            others = Some(weights.clone());
        }
        if self.has(Fault::LinearOutlierMinsStay) && !columns.is_empty() {
            // What is left of a weight of 0.
            let mut mins = weights.clone();
            mins.q.fill(0);
            others = Some(mins);
        }
        if let Some(others) = others {
            let others = integer_products(&q, scales, &others, Outliers::default());
            sums.iter_mut().zip(others).for_each(|(sum, other)| sum.value += other.value);
        }
        sums
    }
}

/// As bytes.
pub(crate) fn save(weights: &Weights) -> Vec<u8> {
    let q = weights.q.iter().map(|&q| q as f64);
    let all = q.chain(weights.scales.iter().copied()).chain(weights.mins.iter().copied());
    all.flat_map(f64::to_le_bytes).collect()
}

/// Bytes of [`save`].
pub(crate) fn saved_len(spec: &LinearSpec) -> usize {
    let (rows, k) = (spec.weight_rows(), spec.in_features);
    let groups = rows.saturating_mul(k.div_ceil(spec.weights.group_size(k).unwrap_or(k)));
    let factors = if spec.weights.offset() == GroupOffset::Min { 2 } else { 1 };
    rows.saturating_mul(k).saturating_add(groups.saturating_mul(factors)).saturating_mul(8)
}

/// Takes back what [`save`] gave.
pub(crate) fn restore(spec: &LinearSpec, saved: &[u8]) -> Weights {
    let (rows, k) = (spec.weight_rows(), spec.in_features);
    let group = spec.weights.group_size(k).unwrap_or(k).min(k);
    let numbers = saved.chunks_exact(8).map(|bytes| f64::from_le_bytes(std::array::from_fn(|i| bytes[i])));
    let mut numbers = numbers.collect::<Vec<_>>();
    let mut factors = numbers.split_off(rows * k);
    let mins = factors.split_off(rows * k.div_ceil(group));
    Weights { rows, k, group, q: numbers.into_iter().map(|q| q as i64).collect(), scales: factors, mins }
}
