//! One call.

use super::{CHECK, QuantizeSpec, Rotation, ScaleSource, Smoothing};
use crate::Checked;
use halite_hal::{DType, Device, Result, Tensor};

/// One call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QuantizeArgs<'a, D: Device> {
    /// What to compute.
    pub spec: &'a QuantizeSpec,
    /// `[rows, columns]`.
    pub x: &'a Tensor<D>,
    /// `[rows, columns]` of the format's type.
    pub q: &'a Tensor<D>,
    /// F32, of the format's [`scale_dims`](crate::linear::ActivationFormat::scale_dims): written, or read where static.
    pub scales: &'a Tensor<D>,
    /// I32, of the scales' shape, for formats that have them: written, or read where static.
    pub zero_points: Option<&'a Tensor<D>>,
    /// F32 `[columns]`: what columns are divided by.
    pub smoothing: Option<&'a Tensor<D>>,
    /// Columns kept in float.
    pub outliers: Option<QuantizeOutliers<'a, D>>,
}

/// Columns that are kept in float.
#[derive(Debug)]
#[non_exhaustive]
pub struct QuantizeOutliers<'a, D: Device> {
    /// I32 `[outlier_columns]`, ascending. One that is no column keeps nothing, and its value is 0.
    pub columns: &'a Tensor<D>,
    /// `[rows, outlier_columns]` of the input's type: receives them, smoothed.
    pub values: &'a Tensor<D>,
}

impl<D: Device> Clone for QuantizeOutliers<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Device> Copy for QuantizeOutliers<'_, D> {}

impl<'a, D: Device> QuantizeArgs<'a, D> {
    /// Without zero points, factors and outliers.
    pub fn new(spec: &'a QuantizeSpec, x: &'a Tensor<D>, q: &'a Tensor<D>, scales: &'a Tensor<D>) -> Self {
        QuantizeArgs { spec, x, q, scales, zero_points: None, smoothing: None, outliers: None }
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

    /// Checks shapes and types, and the specification.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let spec = self.spec;
        spec.check()?;
        let rows = CHECK.rows("x", self.x, 2)?;
        let columns = self.x.dims()[1];
        CHECK.tensor("x", self.x, spec.input, &[rows, columns])?;
        CHECK.tensor("q", self.q, spec.output.dtype(), self.x.dims())?;
        let dims = spec.output.scale_dims(rows, columns);
        CHECK.tensor("scales", self.scales, DType::F32, &dims)?;
        self.given("zero_points", self.zero_points.is_some(), spec.output.has_zero_points())?;
        if let Some(zero_points) = self.zero_points {
            CHECK.tensor("zero_points", zero_points, DType::I32, &dims)?;
        }
        self.given("smoothing", self.smoothing.is_some(), spec.smoothing == Smoothing::PerColumn)?;
        if let Some(factors) = self.smoothing {
            CHECK.tensor("smoothing", factors, DType::F32, &[columns])?;
        }
        self.given("outliers", self.outliers.is_some(), spec.outlier_columns > 0)?;
        if let Some(outliers) = self.outliers {
            let count = spec.outlier_columns;
            CHECK.limit("outliers", count, columns)?;
            CHECK.tensor("outliers", outliers.columns, DType::I32, &[count])?;
            CHECK.tensor("outliers", outliers.values, spec.input, &[rows, count])?;
        }
        if let Rotation::Hadamard { block } = spec.rotation {
            let whole = columns.is_multiple_of(block);
            CHECK.that(whole, "rotation", format!("a block that divides {columns} columns"), block)?;
        }
        self.check_overlaps()?;
        Ok(Checked::new(self))
    }

    fn given(&self, argument: &'static str, given: bool, expected: bool) -> Result<()> {
        let text = if expected { "a tensor" } else { "none for this specification" };
        CHECK.that(given == expected, argument, text, self.spec)
    }

    /// No output on an input or another output.
    fn check_overlaps(&self) -> Result<()> {
        let columns = self.outliers.map(|outliers| outliers.columns);
        let values = self.outliers.map(|outliers| outliers.values);
        let inputs = [("x", Some(self.x)), ("smoothing", self.smoothing), ("outliers", columns)];
        let scales = [("scales", Some(self.scales)), ("zero_points", self.zero_points)];
        CHECK.disjoint("q", self.q, &inputs)?;
        CHECK.disjoint("q", self.q, &scales)?;
        CHECK.disjoint("q", self.q, &[("outliers", values)])?;
        if let Some(values) = values {
            CHECK.disjoint("outliers", values, &inputs)?;
            CHECK.disjoint("outliers", values, &scales)?;
        }
        if self.spec.scales == ScaleSource::Dynamic {
            CHECK.disjoint("scales", self.scales, &inputs)?;
            CHECK.disjoint("scales", self.scales, &[("zero_points", self.zero_points)])?;
            if let Some(zero_points) = self.zero_points {
                CHECK.disjoint("zero_points", zero_points, &inputs)?;
            }
        }
        Ok(())
    }
}
