//! What a quantisation writes, and reads beside its rows: made and judged for every operator that quantises.

use super::bounds::judge_rows;
use crate::{
    case::{Fault, Verdict},
    judge::judge,
    oracle::quantize::{prepared, smoothed},
    poison::{Guarded, Layout},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    DType, Device,
    quantize::{QuantizeOut, QuantizeSpec, Rotation, ScaleSource, Smoothing},
};

/// The tensors of a call, and what the inputs among them hold.
pub(crate) struct Outputs<B: Device> {
    spec: QuantizeSpec,
    /// Of the rows that are quantised.
    dims: Vec<usize>,
    q: Guarded<B>,
    scales: Guarded<B>,
    zero_points: Guarded<B>,
    smoothing: Guarded<B>,
    factors: Vec<f64>,
    columns: Guarded<B>,
    outliers: Vec<i32>,
    values: Guarded<B>,
}

impl<B: Device> Outputs<B> {
    /// For rows of `dims`, `[.., columns]`.
    pub(crate) fn new(
        stream: &mut B::Stream,
        rng: &mut Rng,
        spec: &QuantizeSpec,
        dims: &[usize],
        layout: Layout,
    ) -> Result<Self, Fault> {
        let (rows, columns) = (&dims[..dims.len() - 1], dims[dims.len() - 1]);
        let count = spec.outlier_columns;
        let factors: Vec<f32> = (0..columns).map(|_| 1.0 + 3.0 * rng.unit()).collect();
        let (smoothing, factors) = Guarded::input(stream, DType::F32, &factors, &[columns], Layout::Dense)?;
        let outliers = outlier_columns(rng, columns, count);
        let scale_dims = spec.output.scale_dims_of(rows, columns);
        let (scales, zero_points) = if spec.scales == ScaleSource::Static {
            let scale = [0.05 + rng.unit()];
            let zero = [if spec.output.dtype() == DType::U8 { 100 } else { -3 }];
            (
                Guarded::input(stream, DType::F32, &scale, &scale_dims, Layout::Dense)?.0,
                Guarded::integers(stream, DType::I32, &zero, &scale_dims, Layout::Dense)?,
            )
        } else {
            // Scales of [tokens, heads] may be a part of wider rows, a single head of them too.
            let strided = match (scale_dims.len(), layout) {
                (1, _) => Layout::Dense,
                (2, Layout::Heads { after }) => Layout::Rows { before: 1, after },
                _ => layout,
            };
            (
                Guarded::output(stream, DType::F32, &scale_dims, strided)?,
                Guarded::output(stream, DType::I32, &scale_dims, strided)?,
            )
        };
        let value_dims = if count == 0 { vec![0] } else { [rows, &[count]].concat() };
        Ok(Outputs {
            spec: spec.clone(),
            dims: dims.to_vec(),
            q: Guarded::output(stream, spec.output.dtype(), dims, layout)?,
            scales,
            zero_points,
            smoothing,
            factors,
            columns: Guarded::integers(stream, DType::I32, &outliers, &[count], Layout::Dense)?,
            outliers,
            values: Guarded::output(stream, spec.input, &value_dims, layout)?,
        })
    }

    /// What the specification asks for.
    pub(crate) fn out(&self) -> QuantizeOut<'_, B> {
        let mut out = QuantizeOut::new(&self.q.view, &self.scales.view);
        if self.spec.output.has_zero_points() {
            out = out.with_zero_points(&self.zero_points.view);
        }
        if self.spec.smoothing == Smoothing::PerColumn {
            out = out.with_smoothing(&self.smoothing.view);
        }
        if self.spec.outlier_columns > 0 {
            out = out.with_outliers(&self.columns.view, &self.values.view);
        }
        out
    }

    /// Holds what was written against the rows before quantisation; gives integers and scales.
    pub(crate) fn judge(&self, stream: &mut B::Stream, y: &[Bound]) -> Result<[Vec<f64>; 2], Fault> {
        let (spec, columns) = (&self.spec, self.dims[self.dims.len() - 1]);
        let factors = (spec.smoothing == Smoothing::PerColumn).then_some(&self.factors[..]);
        let block = if let Rotation::Hadamard { block } = spec.rotation { Some(block) } else { None };
        let before = prepared(y, columns, factors, &self.outliers, block);
        let scales = self.scales.read(stream)?;
        let zeros = match spec.output.has_zero_points() {
            true => self.zero_points.read(stream)?,
            false => vec![0.0; scales.len()],
        };
        let q = self.q.read(stream)?;
        judge_rows(spec, columns, &before, &q, &scales, &zeros)?;
        let mut expected = Vec::new();
        for row in y.chunks(columns.max(1)).filter(|_| !self.outliers.is_empty()) {
            let row = smoothed(row, factors);
            let of = |&column: &i32| usize::try_from(column).ok().and_then(|column| row.get(column).copied());
            let values = self.outliers.iter().map(|column| of(column).unwrap_or(Bound::exact(0.0)));
            expected.extend(values.map(|value| value.rounded(spec.input)));
        }
        judge("outliers", self.values.view.dims(), &self.values.read(stream)?, &expected)?;
        Ok([q, scales])
    }

    /// Nothing was written at all.
    pub(crate) fn untouched(&self, stream: &mut B::Stream) -> Verdict {
        self.q.untouched(stream)?;
        self.values.untouched(stream)?;
        if self.spec.scales == ScaleSource::Static { Ok(()) } else { self.scales.untouched(stream) }
    }
}

/// Ascending; of three or more the first and the last are no columns.
fn outlier_columns(rng: &mut Rng, columns: usize, count: usize) -> Vec<i32> {
    let mut order = rng.permutation(columns);
    order.truncate(count);
    order.sort_unstable();
    let mut outliers: Vec<i32> = order.into_iter().map(|column| column as i32).collect();
    if let [first, _, .., last] = &mut outliers[..] {
        (*first, *last) = (-1, columns as i32);
    }
    outliers
}
