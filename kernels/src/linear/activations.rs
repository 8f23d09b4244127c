//! How activations come, and what a call passes.

use super::{CHECK, LinearSpec};
use crate::check::{Check, Named};
use halite_hal::{DType, Device, Result, Tensor};

/// How activations come. [`quantize`](crate::quantize) makes every format of integers.
///
/// Symmetric formats are `x = q · scale`, with `q` from -127 to 127; the others `x = (q - zero_point) · scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ActivationFormat {
    /// Floating-point elements.
    Float(DType),
    /// INT8, symmetric, with one F32 scale a row.
    Int8PerToken,
    /// INT8, symmetric, with one F32 scale for all rows.
    Int8PerTensor,
    /// INT8, symmetric, with one F32 scale for each `group_size` columns of a row; the last group may be shorter.
    Int8PerGroup {
        /// Columns of a group: a multiple of 32, which holds whole blocks of GGUF weights.
        group_size: usize,
    },
    /// I8 or U8 with one F32 scale and one I32 zero point a row.
    AsymmetricPerToken(DType),
    /// I8 or U8 with one F32 scale and one I32 zero point for all rows.
    AsymmetricPerTensor(DType),
}

impl ActivationFormat {
    /// Type of the elements.
    pub fn dtype(self) -> DType {
        match self {
            Self::Float(dtype) | Self::AsymmetricPerToken(dtype) | Self::AsymmetricPerTensor(dtype) => dtype,
            Self::Int8PerToken | Self::Int8PerTensor | Self::Int8PerGroup { .. } => DType::I8,
        }
    }

    /// Whether elements are integers with scales.
    pub fn is_quantized(self) -> bool {
        !matches!(self, Self::Float(_))
    }

    /// Whether there is a zero point beside each scale.
    pub fn has_zero_points(self) -> bool {
        matches!(self, Self::AsymmetricPerToken(_) | Self::AsymmetricPerTensor(_))
    }

    /// Whether one scale serves all rows.
    pub fn is_per_tensor(self) -> bool {
        matches!(self, Self::Int8PerTensor | Self::AsymmetricPerTensor(_))
    }

    /// Shape of the scales of `[rows, columns]`: `[rows]`, `[1]` or `[rows, groups]`. Zero points have the same.
    pub fn scale_dims(self, rows: usize, columns: usize) -> Vec<usize> {
        self.scale_dims_of(&[rows], columns)
    }

    /// The same of rows with several dimensions: of `[tokens, heads, columns]` with `rows` of `[tokens, heads]`.
    pub fn scale_dims_of(self, rows: &[usize], columns: usize) -> Vec<usize> {
        match self {
            Self::Int8PerTensor | Self::AsymmetricPerTensor(_) => vec![1],
            Self::Int8PerGroup { group_size } => [rows, &[columns.div_ceil(group_size.max(1))]].concat(),
            _ => rows.to_vec(),
        }
    }

    /// Types and sizes that make sense.
    pub(crate) fn check(self, check: Check, argument: &'static str) -> Result<()> {
        match self {
            Self::Float(dtype) => check.that(dtype.is_float(), argument, "a floating-point type", dtype),
            Self::Int8PerGroup { group_size } => check.that(
                group_size > 0 && group_size % 32 == 0,
                argument,
                "groups of a multiple of 32 columns",
                group_size,
            ),
            Self::AsymmetricPerToken(dtype) | Self::AsymmetricPerTensor(dtype) => {
                check.that(matches!(dtype, DType::I8 | DType::U8), argument, "I8 or U8", dtype)
            }
            Self::Int8PerToken | Self::Int8PerTensor => Ok(()),
        }
    }
}

/// What is multiplied with the weights.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Activations<'a, D: Device> {
    /// `[rows, in_features]` of the spec's type; rows may be strided.
    Float(&'a Tensor<D>),
    /// Integers of any format.
    Quantized(Quantized<'a, D>),
}

/// Integers with what turns them into numbers.
#[derive(Debug)]
#[non_exhaustive]
pub struct Quantized<'a, D: Device> {
    /// `[rows, in_features]` of the format's type; rows may be strided.
    pub q: &'a Tensor<D>,
    /// F32, of the format's [`scale_dims`](ActivationFormat::scale_dims).
    pub scales: &'a Tensor<D>,
    /// I32, of the scales' shape, for the formats that have them. One that its type cannot hold makes a wrong sum,
    /// exact modulo 2^32.
    pub zero_points: Option<&'a Tensor<D>>,
    /// The outlier columns in float, `[rows, columns]` of the [`OutlierSpec`](super::OutlierSpec)'s size and type; rows
    /// may be strided. What `q` holds in these columns does not matter.
    pub outliers: Option<&'a Tensor<D>>,
}

impl<D: Device> Clone for Quantized<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Device> Copy for Quantized<'_, D> {}

impl<'a, D: Device> Quantized<'a, D> {
    /// Without zero points and outliers.
    pub fn new(q: &'a Tensor<D>, scales: &'a Tensor<D>) -> Self {
        Quantized { q, scales, zero_points: None, outliers: None }
    }

    /// With zero points.
    pub fn with_zero_points(mut self, zero_points: &'a Tensor<D>) -> Self {
        self.zero_points = Some(zero_points);
        self
    }

    /// With columns in float.
    pub fn with_outliers(mut self, outliers: &'a Tensor<D>) -> Self {
        self.outliers = Some(outliers);
        self
    }

    fn check(&self, spec: &LinearSpec, rows: usize) -> Result<()> {
        let format = spec.activations;
        CHECK.tensor("q", self.q, format.dtype(), &[rows, spec.in_features])?;
        let dims = format.scale_dims(rows, spec.in_features);
        CHECK.tensor("scales", self.scales, DType::F32, &dims)?;
        match (self.zero_points, format.has_zero_points()) {
            (Some(zero_points), true) => CHECK.tensor("zero_points", zero_points, DType::I32, &dims)?,
            (given, expected) => {
                let text = if expected { "zero points" } else { "none for a symmetric format" };
                CHECK.that(given.is_some() == expected, "zero_points", text, format)?;
            }
        }
        match (self.outliers, spec.outliers) {
            (Some(values), Some(outliers)) => {
                CHECK.tensor("outliers", values, outliers.dtype, &[rows, outliers.columns])
            }
            (given, expected) => CHECK.that(
                given.is_some() == expected.is_some(),
                "outliers",
                format!("{expected:?}"),
                given.is_some(),
            ),
        }
    }
}

impl<'a, D: Device> Activations<'a, D> {
    /// INT8 per token: I8 `[rows, in_features]`, F32 `[rows]`.
    pub fn int8_per_token(q: &'a Tensor<D>, scales: &'a Tensor<D>) -> Self {
        Self::Quantized(Quantized::new(q, scales))
    }

    /// The integers, if they are that.
    pub fn quantized(&self) -> Option<Quantized<'a, D>> {
        match *self {
            Self::Float(_) => None,
            Self::Quantized(quantized) => Some(quantized),
        }
    }

    /// Checks against the spec, and gives all tensors by name.
    pub(super) fn check(&self, spec: &LinearSpec, rows: usize) -> Result<[Named<'a, D>; 4]> {
        match (self, spec.activations) {
            (Self::Float(x), ActivationFormat::Float(dtype)) => {
                CHECK.tensor("x", x, dtype, &[rows, spec.in_features])?;
                Ok([("x", Some(*x)), ("scales", None), ("zero_points", None), ("outliers", None)])
            }
            (Self::Float(_), format) => Err(CHECK.wrong("x", format!("{format:?}"), "floats")),
            (Self::Quantized(_), format @ ActivationFormat::Float(_)) => {
                Err(CHECK.wrong("x", format!("{format:?}"), "integers"))
            }
            (Self::Quantized(x), _) => {
                x.check(spec, rows)?;
                Ok([
                    ("x", Some(x.q)),
                    ("scales", Some(x.scales)),
                    ("zero_points", x.zero_points),
                    ("outliers", x.outliers),
                ])
            }
        }
    }
}
