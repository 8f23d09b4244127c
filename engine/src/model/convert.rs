//! Weights on the way from the file's format to the one they are kept in: one matrix at a time, a few rows a thread.

use crate::model_file::{ModelError, SourceTensor};
use crate::{Result, WeightsFormat};
use half::bf16;
use halite_kernels::linear::HostWeights;
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

/// Symmetric INT8 for one output channel, by the rule of [`halite_kernels::quantize`]; returns the scale.
fn quantize_row(row: &[f32], out: &mut [i8]) -> f32 {
    /// Adding and subtracting it rounds to the nearest even integer where |x| < 2^22, and unlike
    /// `round_ties_even` it needs no call on processors without an instruction for it.
    const ROUND: f32 = 1.5 * (1u32 << 23) as f32;
    let largest = row.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
    let scale = (largest / 127.0).max(f32::MIN_POSITIVE);
    let inverse = 1.0 / scale;
    for (out, value) in out.iter_mut().zip(row) {
        let rounded = (value * inverse + ROUND) - ROUND;
        *out = rounded.clamp(-127.0, 127.0) as i8;
    }
    scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_quantises_to_within_half_a_step() {
        let row: Vec<f32> = (0..257).map(|i| ((i * 37 % 101) as f32 - 50.0) * 0.013).collect();
        let mut q = vec![0; row.len()];
        let scale = quantize_row(&row, &mut q);
        for (&value, &q) in row.iter().zip(&q) {
            assert!((f32::from(q) * scale - value).abs() <= scale * 0.5001, "{value} {q} {scale}");
        }
        assert!(q.contains(&127) || q.contains(&-127));
    }

    #[test]
    fn ties_go_to_the_even_integer() {
        // The scale is exactly 1.
        let mut q = [0; 6];
        assert_eq!(quantize_row(&[127.0, 0.5, 1.5, 2.5, -0.5, -1.5], &mut q), 1.0);
        assert_eq!(q, [127, 0, 2, 2, 0, -2]);
    }

    #[test]
    fn zeros_and_subnormals_have_a_usable_scale() {
        let mut q = [1; 3];
        assert_eq!(quantize_row(&[0.0; 3], &mut q), f32::MIN_POSITIVE);
        assert_eq!(q, [0; 3]);
        let scale = quantize_row(&[1e-45, -1e-40, 6e-38], &mut q);
        assert!(scale.is_finite() && scale >= f32::MIN_POSITIVE);
        assert_eq!(q[0], 0);
    }
}
