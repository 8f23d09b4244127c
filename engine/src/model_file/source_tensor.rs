//! A tensor as its file holds it, to be converted row by row.

use super::ModelError;
use crate::Result;
use crate::gguf::{GgmlType, TensorView, dequantize_rows};
use crate::safetensors::SafetensorsView;
use halite_kernels::linear::WeightFormat;
use std::ops::Range;

/// A tensor of any format. Rows are the innermost dimension.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SourceTensor<'a> {
    /// Of a GGUF file.
    Gguf(TensorView<'a>),
    /// Some rows of a tensor of a GGUF file.
    GgufRows {
        /// The tensor.
        view: TensorView<'a>,
        /// Which of its rows, counted through all dimensions but the innermost; within it.
        rows: Range<usize>,
    },
    /// Of a safetensors folder: floats.
    Safetensors(SafetensorsView<'a>),
    /// Of a safetensors folder: INT8, a row is `q · scale`.
    Int8PerChannel {
        /// `[rows, columns]`.
        q: SafetensorsView<'a>,
        /// `[rows]`, finite and above 0.
        scales: Vec<f32>,
    },
}

impl<'a> SourceTensor<'a> {
    pub(crate) fn name(&self) -> &'a str {
        match self {
            Self::Gguf(view) | Self::GgufRows { view, .. } => view.name(),
            Self::Safetensors(view) | Self::Int8PerChannel { q: view, .. } => view.name(),
        }
    }

    pub(crate) fn shape(&self) -> &'a [usize] {
        match self {
            Self::Gguf(view) | Self::GgufRows { view, .. } => view.shape(),
            Self::Safetensors(view) | Self::Int8PerChannel { q: view, .. } => view.shape(),
        }
    }

    /// Stored bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.data().len() as u64
    }

    /// What is stored, scales beside it apart.
    fn data(&self) -> &'a [u8] {
        match self {
            Self::GgufRows { view, rows } => {
                let row = view.data().len() / view.rows().max(1);
                view.data().get(row * rows.start..row * rows.end).unwrap_or_default()
            }
            Self::Gguf(view) => view.data(),
            Self::Safetensors(view) | Self::Int8PerChannel { q: view, .. } => view.data(),
        }
    }

    /// What is stored, where it is blocks of 4 bits that linear layers take.
    pub(crate) fn blocks(&self) -> Option<(WeightFormat, &'a [u8])> {
        let (Self::Gguf(view) | Self::GgufRows { view, .. }) = self else { return None };
        let format = match view.ty() {
            GgmlType::Q4_0 => WeightFormat::Q4_0,
            GgmlType::Q4_1 => WeightFormat::Q4_1,
            GgmlType::Q4K => WeightFormat::Q4K,
            _ => return None,
        };
        Some((format, self.data()))
    }

    /// Values in a row.
    pub(crate) fn row_len(&self) -> usize {
        self.shape().last().copied().unwrap_or(1)
    }

    /// The product of all dimensions but the innermost, which both readers have checked.
    pub(crate) fn rows(&self) -> usize {
        if let Self::GgufRows { rows, .. } = self {
            return rows.len();
        }
        self.shape().split_last().map_or(1, |(_, outer)| outer.iter().product())
    }

    /// The values of some rows, one after the other in `out`.
    pub(crate) fn rows_to_f32(&self, rows: Range<usize>, out: &mut [f32]) -> Result<()> {
        match self {
            Self::Gguf(view) => Ok(dequantize_rows(view, rows, out)?),
            Self::GgufRows { view, rows: own } => {
                Ok(dequantize_rows(view, own.start + rows.start..own.start + rows.end, out)?)
            }
            Self::Safetensors(view) => Ok(view.rows_to_f32(rows, out)?),
            Self::Int8PerChannel { q, scales } => {
                let columns = self.row_len().max(1);
                let values = q.as_i8()?.chunks_exact(columns).zip(scales).skip(rows.start).take(rows.len());
                for ((q, &scale), out) in values.zip(out.chunks_exact_mut(columns)) {
                    out.iter_mut().zip(q).for_each(|(out, &q)| *out = f32::from(q) * scale);
                }
                Ok(())
            }
        }
    }

    /// All values, which must be finite.
    pub(crate) fn to_f32(&self) -> Result<Vec<f32>> {
        let out = match self {
            Self::Safetensors(view) => view.to_f32()?,
            _ => {
                let mut out = vec![0.0; self.rows().saturating_mul(self.row_len())];
                self.rows_to_f32(0..self.rows(), &mut out)?;
                out
            }
        };
        match out.iter().position(|value| !value.is_finite()) {
            Some(index) => {
                let row = index / self.row_len().max(1);
                Err(ModelError::NotFinite { tensor: self.name().to_owned(), row }.into())
            }
            None => Ok(out),
        }
    }
}
