//! Rows of a linear layer's input in a backend's plan.

use super::LayerInputs;
use crate::{
    linear::{ActivationFormat, Activations, LinearSpec, Quantized},
    quantize::{QuantizeSpec, ScaleSource},
};
use halite_hal::{DType, Device, Result, Tensor};

/// Rows of floats, or of integers with what turns them into numbers.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a call has a few of them, and a box would be memory at every call"
)]
pub enum RowMemory<D: Device> {
    /// Floats, `[rows, columns]`.
    Float(Tensor<D>),
    /// Integers of any format.
    Quantized {
        /// `[rows, columns]`.
        q: Tensor<D>,
        /// F32, of the format's [`scale_dims`](ActivationFormat::scale_dims), or `[experts]`.
        scales: Tensor<D>,
        /// I32, as many as scales.
        zero_points: Option<Tensor<D>>,
        /// `[rows, outlier columns]`: columns that are kept in float.
        outliers: Option<Tensor<D>>,
        /// Whether one scale serves all rows of an expert.
        one_scale: bool,
    },
}

impl<D: Device> RowMemory<D> {
    /// For rows of floats, or of INT8 per token.
    ///
    /// # Errors
    /// The device's: no memory.
    pub fn new(device: &D, format: ActivationFormat, rows: usize, columns: usize) -> Result<Self> {
        Ok(match format {
            ActivationFormat::Float(dtype) => RowMemory::Float(Tensor::new(device, dtype, &[rows, columns])?),
            _ => RowMemory::Quantized {
                q: Tensor::new(device, DType::I8, &[rows, columns])?,
                scales: Tensor::new(device, DType::F32, &[rows])?,
                zero_points: None,
                outliers: None,
                one_scale: false,
            },
        })
    }

    /// For the rows of a layer of integers, of so many experts.
    ///
    /// # Errors
    /// The device's: no memory.
    pub fn of_layer(device: &D, layer: &LinearSpec, rows: usize, experts: usize) -> Result<Self> {
        let format = layer.activations;
        // One scale for all rows is one for all rows of an expert.
        let dims =
            if format.is_per_tensor() { vec![experts] } else { format.scale_dims(rows, layer.in_features) };
        let zero_points = format.has_zero_points().then(|| Tensor::new(device, DType::I32, &dims));
        let outliers =
            layer.outliers.map(|outliers| Tensor::new(device, outliers.dtype, &[rows, outliers.columns]));
        Ok(RowMemory::Quantized {
            q: Tensor::new(device, format.dtype(), &[rows, layer.in_features])?,
            scales: Tensor::new(device, DType::F32, &dims)?,
            zero_points: zero_points.transpose()?,
            outliers: outliers.transpose()?,
            one_scale: format.is_per_tensor(),
        })
    }

    /// The first `rows` rows. Scales that are not as many as rows stay as they are.
    ///
    /// # Errors
    /// There are fewer.
    pub fn first(&self, rows: usize) -> Result<Self> {
        let first = |tensor: &Tensor<D>| tensor.narrow(0, 0..rows);
        Ok(match self {
            RowMemory::Float(x) => RowMemory::Float(first(x)?),
            RowMemory::Quantized { q, scales, zero_points, outliers, one_scale } => {
                let of_rows = |steps: &Tensor<D>| if *one_scale { Ok(steps.clone()) } else { first(steps) };
                RowMemory::Quantized {
                    q: first(q)?,
                    scales: of_rows(scales)?,
                    zero_points: zero_points.as_ref().map(of_rows).transpose()?,
                    outliers: outliers.as_ref().map(first).transpose()?,
                    one_scale: *one_scale,
                }
            }
        })
    }

    /// With the inputs' scales and zero points in the place of its own, where they are static.
    #[must_use]
    pub fn with_static(mut self, spec: &QuantizeSpec, inputs: &LayerInputs<'_, D>) -> Self {
        if let (RowMemory::Quantized { scales, zero_points, .. }, ScaleSource::Static) =
            (&mut self, spec.scales)
        {
            if let Some(given) = inputs.scales {
                *scales = given.clone();
            }
            *zero_points = inputs.zero_points.cloned();
        }
        self
    }

    /// As a layer takes them.
    pub fn activations(&self) -> Activations<'_, D> {
        match self {
            RowMemory::Float(x) => Activations::Float(x),
            RowMemory::Quantized { q, scales, zero_points, outliers, .. } => {
                let mut quantized = Quantized::new(q, scales);
                (quantized.zero_points, quantized.outliers) = (zero_points.as_ref(), outliers.as_ref());
                Activations::Quantized(quantized)
            }
        }
    }
}
