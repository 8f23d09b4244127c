//! Where quantised rows go, in a call of its own and at the end of another operator's pass.

use super::{QuantizeSpec, Rotation, ScaleSource, Smoothing};
use crate::{
    check::{Check, Named},
    linear::ActivationFormat,
};
use halite_hal::{DType, Device, Result, Tensor};

/// The tensors of a quantisation beside its rows, `[rows, columns]` or, behind a norm, `[tokens, heads, columns]`.
#[derive(Debug)]
#[non_exhaustive]
pub struct QuantizeOut<'a, D: Device> {
    /// Of the rows' shape and the format's type.
    pub q: &'a Tensor<D>,
    /// F32, of the format's [`scale_dims`](crate::linear::ActivationFormat::scale_dims_of): written, or read where
    /// static.
    pub scales: &'a Tensor<D>,
    /// I32, of the scales' shape, for formats that have them: written, or read where static.
    pub zero_points: Option<&'a Tensor<D>>,
    /// F32 `[columns]`: what columns are divided by; read.
    pub smoothing: Option<&'a Tensor<D>>,
    /// Columns kept in float.
    pub outliers: Option<QuantizeOutliers<'a, D>>,
}

/// Columns that are kept in float.
#[derive(Debug)]
#[non_exhaustive]
pub struct QuantizeOutliers<'a, D: Device> {
    /// I32 `[outlier_columns]`, ascending; read. One that is no column keeps nothing, and its value is 0.
    pub columns: &'a Tensor<D>,
    /// `[rows, outlier_columns]` of the spec's input type: receives them, smoothed.
    pub values: &'a Tensor<D>,
}

impl<D: Device> Clone for QuantizeOut<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Device> Copy for QuantizeOut<'_, D> {}

impl<D: Device> Clone for QuantizeOutliers<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Device> Copy for QuantizeOutliers<'_, D> {}

impl<'a, D: Device> QuantizeOut<'a, D> {
    /// Without zero points, factors and outliers.
    pub fn new(q: &'a Tensor<D>, scales: &'a Tensor<D>) -> Self {
        QuantizeOut { q, scales, zero_points: None, smoothing: None, outliers: None }
    }

    /// With zero points.
    pub fn with_zero_points(mut self, zero_points: &'a Tensor<D>) -> Self {
        self.zero_points = Some(zero_points);
        self
    }

    /// With what columns are divided by.
    pub fn with_smoothing(mut self, factors: &'a Tensor<D>) -> Self {
        self.smoothing = Some(factors);
        self
    }

    /// With columns kept in float, and where they go.
    pub fn with_outliers(mut self, columns: &'a Tensor<D>, values: &'a Tensor<D>) -> Self {
        self.outliers = Some(QuantizeOutliers { columns, values });
        self
    }

    /// Elements from an outer and from an inner row's scales to the next, and the same of zero points, 0 where there are
    /// none. Outer rows are the first dimension of `q`, inner ones the second of three.
    pub fn step_strides(&self, spec: &QuantizeSpec) -> [[usize; 2]; 2] {
        let grouped = matches!(spec.output, ActivationFormat::Int8PerGroup { .. });
        [Some(self.scales), self.zero_points]
            .map(|steps| steps.map_or([0; 2], |steps| step_strides(steps.strides(), grouped)))
    }

    /// The end of another operator's pass over rows of `dims`: a specification that one pass can do, and
    /// [`check`](Self::check).
    pub(crate) fn check_fused(
        &self,
        check: Check,
        spec: &QuantizeSpec,
        dims: &[usize],
        others: &[Named<'_, D>],
    ) -> Result<()> {
        spec.check_fused(check)?;
        self.check(check, spec, dims, others)
    }

    /// Shapes and types for rows of `dims`, and no output on one of `others`, which the operator reads or writes besides.
    pub(crate) fn check(
        &self,
        check: Check,
        spec: &QuantizeSpec,
        dims: &[usize],
        others: &[Named<'_, D>],
    ) -> Result<()> {
        let Some((&columns, rows)) = dims.split_last() else {
            return Err(check.wrong("q", "rows", format!("{dims:?}")));
        };
        check.tensor("q", self.q, spec.output.dtype(), dims)?;
        let scale_dims = spec.output.scale_dims_of(rows, columns);
        check.tensor("scales", self.scales, DType::F32, &scale_dims)?;
        let given = |argument, given: bool, expected: bool| {
            let tensor = |there| if there { "a tensor" } else { "no tensor" };
            let text = format!("{} for {spec:?}", tensor(expected));
            check.holds(given == expected, argument, text, tensor(given))
        };
        given("zero_points", self.zero_points.is_some(), spec.output.has_zero_points())?;
        if let Some(zero_points) = self.zero_points {
            check.tensor("zero_points", zero_points, DType::I32, &scale_dims)?;
        }
        given("smoothing", self.smoothing.is_some(), spec.smoothing == Smoothing::PerColumn)?;
        if let Some(factors) = self.smoothing {
            check.tensor("smoothing", factors, DType::F32, &[columns])?;
        }
        given("outliers", self.outliers.is_some(), spec.outlier_columns > 0)?;
        if let Some(outliers) = self.outliers {
            let count = spec.outlier_columns;
            check.limit("outliers", count, columns)?;
            check.tensor("outliers", outliers.columns, DType::I32, &[count])?;
            check.tensor("outliers", outliers.values, spec.input, &[rows, &[count]].concat())?;
        }
        if let Rotation::Hadamard { block } = spec.rotation {
            let whole = columns.is_multiple_of(block);
            check.that(whole, "rotation", format!("a block that divides {columns} columns"), block)?;
        }
        let (reads, outputs) = (self.reads(spec), self.writes(spec));
        for (place, (name, out)) in outputs.iter().enumerate() {
            if let Some(out) = out {
                check.disjoint(name, out, others)?;
                check.disjoint(name, out, &reads)?;
                check.disjoint(name, out, &outputs[..place])?;
            }
        }
        Ok(())
    }

    /// What is read on the way.
    pub(crate) fn reads(&self, spec: &QuantizeSpec) -> [Named<'a, D>; 4] {
        let [scales, zero_points] = self.steps(spec, ScaleSource::Static);
        let columns = self.outliers.map(|outliers| outliers.columns);
        [("smoothing", self.smoothing), ("outliers", columns), scales, zero_points]
    }

    fn writes(&self, spec: &QuantizeSpec) -> [Named<'a, D>; 4] {
        let [scales, zero_points] = self.steps(spec, ScaleSource::Dynamic);
        let values = self.outliers.map(|outliers| outliers.values);
        [("q", Some(self.q)), scales, zero_points, ("outliers", values)]
    }

    /// Scales and zero points, if they come from there.
    fn steps(&self, spec: &QuantizeSpec, source: ScaleSource) -> [Named<'a, D>; 2] {
        let here = spec.scales == source;
        let zero_points = self.zero_points.filter(|_| here);
        [("scales", here.then_some(self.scales)), ("zero_points", zero_points)]
    }
}

/// Of steps with these strides: one a row, or one a group of its columns.
fn step_strides(strides: &[usize], grouped: bool) -> [usize; 2] {
    match (strides, grouped) {
        (&[outer, inner, _], _) => [outer, inner],
        (&[outer, _], true) => [outer, 0],
        (&[outer, inner], false) => [outer, inner],
        (&[each], _) => [each, 0],
        _ => [0, 0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_rows_and_of_groups_are_told_apart() {
        for (strides, grouped, expected) in [
            (&[40, 8, 1][..], true, [40, 8]),
            (&[8, 1], true, [8, 0]),
            (&[8, 1], false, [8, 1]),
            (&[2], false, [2, 0]),
            (&[], false, [0, 0]),
        ] {
            assert_eq!(step_strides(strides, grouped), expected, "{strides:?}");
        }
    }
}
