//! Weights on the way from the file's format to the one they are kept in: one matrix at a time, a few rows a thread.

use crate::model_file::{ModelError, SourceTensor};
use crate::{Result, WeightsFormat};
use half::bf16;
use halite_kernels::{linear::HostWeights, quantize::quantize_row};
use rayon::prelude::*;

/// Values a thread dequantises at a time: they stay in its cache until they are converted.
const CHUNK_VALUES: usize = 16 * 1024;

/// A matrix in the format that weights are kept in, row-major.
#[derive(Debug)]
pub(super) enum HostMatrix {
    F32(Vec<f32>),
    Bf16(Vec<bf16>),
    /// A row is `q · scale`.
    Int8 {
        q: Vec<i8>,
        scales: Vec<f32>,
    },
}

impl HostMatrix {
    /// The rows of `parts`, one below the other. All parts have rows of the same length.
    pub(super) fn read(parts: &[SourceTensor<'_>], format: WeightsFormat) -> Result<Self> {
        let rows: usize = parts.iter().map(SourceTensor::rows).sum();
        let values: usize = parts.iter().map(|part| part.rows() * part.row_len()).sum();
        match format {
            WeightsFormat::F32 => {
                let mut out = vec![0.0; values];
                convert(parts, &mut out, &mut vec![(); rows], |row, out| {
                    out.copy_from_slice(row);
                })?;
                Ok(Self::F32(out))
            }
            WeightsFormat::Bf16 => {
                let mut out = vec![bf16::ZERO; values];
                convert(parts, &mut out, &mut vec![(); rows], |row, out| {
                    out.iter_mut().zip(row).for_each(|(out, &value)| *out = bf16::from_f32(value));
                })?;
                Ok(Self::Bf16(out))
            }
            WeightsFormat::W8a8 => {
                let (mut q, mut scales) = (vec![0; values], vec![0.0; rows]);
                convert(parts, &mut q, &mut scales, quantize_row)?;
                Ok(Self::Int8 { q, scales })
            }
        }
    }

    /// The rows of `parts` one below the other, INT8 as the file has them.
    ///
    /// # Errors
    /// A part that is not INT8 in the file.
    pub(super) fn stored_int8(parts: &[SourceTensor<'_>]) -> Result<Self> {
        let (mut all, mut all_scales) = (Vec::new(), Vec::new());
        for part in parts {
            let SourceTensor::Int8PerChannel { q, scales } = part else {
                return Err(ModelError::NotQuantized { tensor: part.name().to_owned() }.into());
            };
            all.extend_from_slice(q.as_i8()?);
            all_scales.extend_from_slice(scales);
        }
        Ok(Self::Int8 { q: all, scales: all_scales })
    }

    /// As a linear layer's weights.
    pub(super) fn weights(&self) -> HostWeights<'_> {
        match self {
            Self::F32(values) => HostWeights::F32(values),
            Self::Bf16(values) => HostWeights::Bf16(values),
            Self::Int8 { q, scales } => HostWeights::Int8PerChannel { q, scales },
        }
    }

    /// Its size.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::F32(values) => size_of_val(values.as_slice()) as u64,
            Self::Bf16(values) => size_of_val(values.as_slice()) as u64,
            Self::Int8 { q, scales } => (q.len() + size_of_val(scales.as_slice())) as u64,
        }
    }
}

/// Turns every row of `parts` into a row of `out` and what belongs to it, in parallel.
fn convert<T: Send, S: Send>(
    parts: &[SourceTensor<'_>],
    mut out: &mut [T],
    mut per_row: &mut [S],
    row: impl Fn(&[f32], &mut [T]) -> S + Sync,
) -> Result<()> {
    for part in parts {
        let columns = part.row_len();
        let (own, rest) = std::mem::take(&mut out).split_at_mut(part.rows() * columns);
        let (own_rows, rest_rows) = std::mem::take(&mut per_row).split_at_mut(part.rows());
        (out, per_row) = (rest, rest_rows);
        if columns == 0 {
            continue;
        }
        let rows = (CHUNK_VALUES / columns).max(1);
        let chunks = own.par_chunks_mut(rows * columns).zip(own_rows.par_chunks_mut(rows)).enumerate();
        chunks.try_for_each(|(chunk, (out, per_row))| -> Result<()> {
            let first = chunk * rows;
            let mut values = vec![0.0; out.len()];
            part.rows_to_f32(first..first + per_row.len(), &mut values)?;
            let each = values.chunks_exact(columns).zip(out.chunks_exact_mut(columns)).zip(per_row);
            for (index, ((values, out), per_row)) in each.enumerate() {
                if !values.iter().all(|value| value.is_finite()) {
                    let (tensor, row) = (part.name().to_owned(), first + index);
                    return Err(ModelError::NotFinite { tensor, row }.into());
                }
                *per_row = row(values, out);
            }
            Ok(())
        })?;
    }
    Ok(())
}
