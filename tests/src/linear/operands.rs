//! Weights and activations of a case: made, put on the device, and kept for the oracle.

use super::{
    Case, Fill,
    group_wise::{self, GroupWise},
};
use crate::{
    case::Fault,
    oracle::linear::{
        float_sums,
        group_wise::{Outliers, RowScales},
        integers::{Integers, products},
    },
    poison::{Guarded, Layout},
    random::Rng,
    tolerance::Bound,
};
use half::{bf16, f16};
use halite_kernels::{
    Backend, DType, Tensor,
    linear::{ActivationFormat, Activations, HostWeights, LinearSpec, Quantized, WeightFormat},
};
use std::ops::Range;

/// Weights as the host has them, with what is in float beside them.
#[derive(Clone, Debug)]
pub(crate) struct Weights {
    all: Columns,
    outliers: Vec<f32>,
    outlier_columns: Vec<u32>,
}

#[derive(Clone, Debug)]
enum Columns {
    F32(Vec<f32>),
    F16(Vec<f16>),
    Bf16(Vec<bf16>),
    Int8 { q: Vec<i8>, scales: Vec<f32>, zero_points: Option<Vec<i8>> },
    GroupWise(GroupWise),
}

impl Weights {
    pub(crate) fn new(rng: &mut Rng, spec: &LinearSpec, fill: Fill) -> Self {
        let (rows, count) = (spec.weight_rows(), spec.weight_rows() * spec.in_features);
        let all = if GroupWise::has(spec) {
            Columns::GroupWise(GroupWise::new(rng, spec, fill))
        } else if spec.weights.is_channel_wise() {
            let q = int8(rng, count, fill, [-128, -128, 127], 4);
            // Scales far apart, so that one in another's place shows.
            let scales = (0..rows).map(|_| 2e-4 * (1.0 + 30.0 * rng.unit())).collect();
            let zeros = spec.weights == WeightFormat::Int8PerChannelAsymmetric;
            let zero_points = zeros.then(|| int8(rng, rows, fill, [127, 127, -128], 0));
            Columns::Int8 { q, scales, zero_points }
        } else {
            let values = floats(rng, count, fill, 4.0);
            match spec.weights {
                WeightFormat::F16 => Columns::F16(values.into_iter().map(f16::from_f32).collect()),
                WeightFormat::Bf16 => Columns::Bf16(values.into_iter().map(bf16::from_f32).collect()),
                _ => Columns::F32(values),
            }
        };
        let count = spec.outliers.map_or(0, |outliers| outliers.columns);
        let mut columns = rng.permutation(spec.in_features);
        columns.truncate(count);
        columns.sort_unstable();
        let outlier_columns = columns.into_iter().map(|column| column as u32).collect();
        Weights { all, outliers: rng.aways(rows * count), outlier_columns }
    }

    /// Hands over what the contract takes.
    pub(crate) fn with_host<T>(&self, take: impl FnOnce(HostWeights<'_>) -> T) -> T {
        let weights = match &self.all {
            Columns::F32(data) => HostWeights::F32(data),
            Columns::F16(data) => HostWeights::F16(data),
            Columns::Bf16(data) => HostWeights::Bf16(data),
            Columns::Int8 { q, scales, zero_points: None } => HostWeights::Int8PerChannel { q, scales },
            Columns::Int8 { q, scales, zero_points: Some(zero_points) } => {
                HostWeights::Int8PerChannelAsymmetric { q, scales, zero_points }
            }
            Columns::GroupWise(group_wise) => group_wise.host(),
        };
        if self.outlier_columns.is_empty() {
            return take(weights);
        }
        let (columns, values) = (&self.outlier_columns, &self.outliers);
        take(HostWeights::WithOutliers { weights: &weights, columns, values })
    }

    /// Packs them.
    pub(crate) fn pack<B: Backend>(
        &self,
        device: &B,
        stream: &mut B::Stream,
        spec: &LinearSpec,
    ) -> Result<B::Packed, Fault> {
        self.with_host(|weights| Ok(device.linear_pack(stream, weights.check(spec)?)?))
    }

    /// `[weight_rows, in_features]`, as a product counts them.
    pub(crate) fn dequantised(&self, in_features: usize) -> Vec<f64> {
        if let Columns::GroupWise(group_wise) = &self.all {
            return group_wise.dequantised();
        }
        let Columns::Int8 { q, scales, zero_points } = &self.all else { return self.values() };
        let zero = |row: usize| zero_points.as_ref().map_or(0.0, |zero_points| f64::from(zero_points[row]));
        q.iter()
            .enumerate()
            .map(|(place, &q)| {
                let row = place / in_features;
                (f64::from(q) - zero(row)) * f64::from(scales[row])
            })
            .collect()
    }

    /// The columns in float, and their weights.
    pub(crate) fn outliers(&self) -> (&[u32], &[f32]) {
        (&self.outlier_columns, &self.outliers)
    }

    /// The stored elements of float weights.
    pub(super) fn values(&self) -> Vec<f64> {
        match &self.all {
            Columns::F32(data) => data.iter().map(|&w| f64::from(w)).collect(),
            Columns::F16(data) => data.iter().map(|&w| w.to_f64()).collect(),
            Columns::Bf16(data) => data.iter().map(|&w| w.to_f64()).collect(),
            Columns::Int8 { .. } | Columns::GroupWise(_) => Vec::new(),
        }
    }

    fn integers(&self) -> Integers {
        let Columns::Int8 { q, scales, zero_points } = &self.all else { return Integers::default() };
        Integers {
            q: q.iter().copied().map(i32::from).collect(),
            scales: scales.iter().copied().map(f64::from).collect(),
            zero_points: zero_points.iter().flatten().copied().map(i32::from).collect(),
            group: 0,
            outliers: self.outliers.iter().copied().map(f64::from).collect(),
        }
    }
}

pub(super) fn floats(rng: &mut Rng, count: usize, fill: Fill, factor: f32) -> Vec<f32> {
    match fill {
        Fill::Spread => rng.spreads(count),
        Fill::SixTimesFour => vec![factor; count],
        _ => rng.aways(count),
    }
}

/// `ends` are the values of [`Fill::Least`], [`Fill::Opposite`] and [`Fill::Most`].
pub(super) fn int8(rng: &mut Rng, count: usize, fill: Fill, ends: [i8; 3], six_or_four: i8) -> Vec<i8> {
    match fill {
        Fill::Least => vec![ends[0]; count],
        Fill::Opposite => vec![ends[1]; count],
        Fill::Most => vec![ends[2]; count],
        Fill::SixTimesFour => vec![six_or_four; count],
        _ => rng.int8(count),
    }
}

/// Activations on the device, with what the oracle needs of them.
pub(crate) struct Operand<B: Backend> {
    pub(crate) x: Guarded<B>,
    scales: Option<Guarded<B>>,
    zero_points: Option<Guarded<B>>,
    outliers: Option<Guarded<B>>,
    floats: Vec<f64>,
    integers: Integers,
}

impl<B: Backend> Operand<B> {
    pub(crate) fn new(stream: &mut B::Stream, rng: &mut Rng, case: &Case) -> Result<Self, Fault> {
        let (rows, k, format) = (case.rows, case.spec.in_features, case.spec.activations);
        if let ActivationFormat::Float(dtype) = format {
            let values = group_wise::activations(rng, rows * k, case.fill);
            let (x, floats) = Guarded::input(stream, dtype, &values, &[rows, k], case.layout)?;
            let integers = Integers::default();
            return Ok(Operand { x, scales: None, zero_points: None, outliers: None, floats, integers });
        }
        // U8 is I8 and 128 more, zero points as well.
        let offset = if format.dtype() == DType::U8 { 128 } else { 0 };
        let wide = |values: Vec<i8>| values.into_iter().map(|q| i32::from(q) + offset).collect::<Vec<_>>();
        let q = wide(match case.fill {
            Fill::Grid => {
                group_wise::activations(rng, rows * k, case.fill).iter().map(|&x| x as i8).collect()
            }
            fill => int8(rng, rows * k, fill, [-128, 127, 127], 6),
        });
        let x = Guarded::integers(stream, format.dtype(), &q, &[rows, k], case.layout)?;
        let dims = format.scale_dims(rows, k);
        let count = dims.iter().product();
        let scale = |_| match case.fill {
            Fill::Grid => (1 << rng.below(2)) as f32,
            Fill::Tiny => f32::MIN_POSITIVE,
            _ => 1e-3 * (1.0 + 30.0 * rng.unit()),
        };
        let scales: Vec<f32> = (0..count).map(scale).collect();
        let strided = if dims.len() == 2 { case.layout } else { Layout::Dense };
        let (scales, scale_values) = Guarded::input(stream, DType::F32, &scales, &dims, strided)?;
        let (mut zero_points, mut zeros) = (None, Vec::new());
        if format.has_zero_points() {
            zeros = wide(int8(rng, count, case.fill, [127, -128, -128], 0));
            zero_points = Some(Guarded::integers(stream, DType::I32, &zeros, &dims, Layout::Dense)?);
        }
        let (mut outliers, mut outlier_values) = (None, Vec::new());
        if let Some(spec) = case.spec.outliers {
            let dims = [rows, spec.columns];
            let values = rng.aways(rows * spec.columns);
            let (guarded, stored) = Guarded::input(stream, spec.dtype, &values, &dims, case.layout)?;
            (outliers, outlier_values) = (Some(guarded), stored);
        }
        let group = if let ActivationFormat::Int8PerGroup { group_size } = format { group_size } else { 0 };
        let integers =
            Integers { q, scales: scale_values, zero_points: zeros, group, outliers: outlier_values };
        Ok(Operand { x, scales: Some(scales), zero_points, outliers, floats: Vec::new(), integers })
    }

    /// Views of some of the rows.
    pub(crate) fn rows(&self, rows: Range<usize>, format: ActivationFormat) -> Result<Views<B>, Fault> {
        let narrow = |tensor: &Option<Guarded<B>>, one: bool| -> Result<Option<Tensor<B>>, Fault> {
            let Some(tensor) = tensor else { return Ok(None) };
            if one { Ok(Some(tensor.view.clone())) } else { Ok(Some(tensor.view.narrow(0, rows.clone())?)) }
        };
        let one = format.scale_dims(2, 1) == [1];
        Ok(Views {
            x: self.x.view.narrow(0, rows.clone())?,
            scales: narrow(&self.scales, one)?,
            zero_points: narrow(&self.zero_points, one)?,
            outliers: narrow(&self.outliers, false)?,
        })
    }

    /// The exact products `[rows, weight_rows]`, scales included.
    pub(crate) fn products(&self, spec: &LinearSpec, rows: usize, weights: &Weights) -> Vec<Bound> {
        if let Columns::GroupWise(group_wise) = &weights.all {
            if !spec.activations.is_quantized() {
                return group_wise.times_floats(&self.floats);
            }
            let Integers { q, scales, zero_points, group, outliers: x } = &self.integers;
            let zero = |row: usize| zero_points.get(row.min(zero_points.len().max(1) - 1)).copied();
            let q: Vec<i32> =
                q.iter().enumerate().map(|(i, &q)| q - zero(i / spec.in_features).unwrap_or(0)).collect();
            let scales = RowScales { scales, group: (*group > 0).then_some(*group) };
            let kept: Vec<f64> = weights.outliers.iter().copied().map(f64::from).collect();
            let outliers = Outliers { columns: &weights.outlier_columns, x, weights: &kept };
            return group_wise.times_integers(&q, scales, outliers, spec.output);
        }
        if spec.weights.is_channel_wise() {
            let (columns, bare) = (&weights.outlier_columns, spec.output == DType::I32);
            return products(&self.integers, &weights.integers(), spec.in_features, columns, bare);
        }
        float_sums(&self.floats, &weights.values(), rows, spec.weight_rows())
    }
}

/// Views of activations.
pub(crate) struct Views<B: Backend> {
    x: Tensor<B>,
    scales: Option<Tensor<B>>,
    zero_points: Option<Tensor<B>>,
    outliers: Option<Tensor<B>>,
}

impl<B: Backend> Views<B> {
    /// What the operator gets.
    pub(crate) fn activations(&self) -> Activations<'_, B> {
        let (q, Some(scales)) = (&self.x, &self.scales) else { return Activations::Float(&self.x) };
        let mut quantized = Quantized::new(q, scales);
        quantized.zero_points = self.zero_points.as_ref();
        quantized.outliers = self.outliers.as_ref();
        Activations::Quantized(quantized)
    }
}
