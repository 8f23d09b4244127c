//! Weights on the way from the file's format to the one they are kept in: one matrix at a time, a few rows a thread.

use crate::Result;
use crate::model_file::{GROUP, MatrixFormat, ModelError, SourceTensor};
use half::{bf16, f16};
use halite_hal::Error;
use halite_kernels::linear::{GroupOffset, GroupOffsets, HostWeights, WeightFormat};
use halite_kernels::quantize::{quantize_int4_group, quantize_row};
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
    /// 4 bits in symmetric groups of [`GROUP`], an element a byte.
    Int4 {
        q: Vec<i8>,
        scales: Vec<f32>,
    },
    /// Blocks of a GGUF file.
    Blocks(WeightFormat, Vec<u8>),
}

impl HostMatrix {
    /// The rows of `parts`, one below the other. All parts have rows of the same length, those of a stored format are in
    /// it.
    ///
    /// # Errors
    /// A value that is not finite, or a part that is not stored in the format.
    pub(super) fn read(parts: &[SourceTensor<'_>], format: MatrixFormat) -> Result<Self> {
        let rows: usize = parts.iter().map(SourceTensor::rows).sum();
        let columns = parts.first().map_or(0, SourceTensor::row_len);
        let values = rows * columns;
        match format {
            MatrixFormat::F32 => {
                let mut out = vec![0.0; values];
                convert(parts, &mut out, &mut vec![(); rows], 1, |row, out, _| out.copy_from_slice(row))?;
                Ok(Self::F32(out))
            }
            MatrixFormat::Bf16 => {
                let mut out = vec![bf16::ZERO; values];
                convert(parts, &mut out, &mut vec![(); rows], 1, |row, out, _| {
                    out.iter_mut().zip(row).for_each(|(out, &value)| *out = bf16::from_f32(value));
                })?;
                Ok(Self::Bf16(out))
            }
            MatrixFormat::Int8 | MatrixFormat::Int8ForFloats => {
                let (mut q, mut scales) = (vec![0; values], vec![0.0; rows]);
                convert(parts, &mut q, &mut scales, 1, |row, q, scale| {
                    scale.fill(quantize_row(row, q));
                })?;
                Ok(Self::Int8 { q, scales })
            }
            MatrixFormat::Int4 => {
                let groups = columns.div_ceil(GROUP);
                let (mut q, mut scales) = (vec![0; values], vec![0.0; rows * groups]);
                convert(parts, &mut q, &mut scales, groups, |row, q, scales| {
                    let groups = row.chunks(GROUP).zip(q.chunks_mut(GROUP)).zip(scales);
                    groups.for_each(|((row, q), scale)| *scale = quantize_int4_group(row, q));
                })?;
                Ok(Self::Int4 { q, scales })
            }
            MatrixFormat::StoredInt8 => Self::stored_int8(parts),
            MatrixFormat::Blocks(format) => Self::blocks(parts, format),
        }
    }

    /// INT8 as the file has it.
    fn stored_int8(parts: &[SourceTensor<'_>]) -> Result<Self> {
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

    /// Blocks as the file has them. Their numbers are looked at: packing finds what is not finite too, but does not know
    /// the tensor's name.
    fn blocks(parts: &[SourceTensor<'_>], format: WeightFormat) -> Result<Self> {
        let mut all = Vec::with_capacity(parts.iter().map(|part| part.bytes() as usize).sum());
        for part in parts {
            let stored = part.blocks().filter(|(stored, _)| *stored == format);
            let (Some((_, bytes)), Some(block)) = (stored, format.block()) else {
                return Err(other_blocks(format, part).into());
            };
            // F16 numbers come first: a scale and, where a value has one, a minimum.
            let numbers = if format.offset() == GroupOffset::Min { 4 } else { 2 };
            let finite = |block: &[u8]| {
                let numbers = block.get(..numbers).unwrap_or_default().as_chunks().0;
                numbers.iter().all(|&number| f16::from_le_bytes(number).is_finite())
            };
            if let Some(bad) = bytes.chunks_exact(block.bytes).position(|block| !finite(block)) {
                let (tensor, row) = (part.name().to_owned(), bad * block.values / part.row_len().max(1));
                return Err(ModelError::NotFinite { tensor, row }.into());
            }
            all.extend_from_slice(bytes);
        }
        Ok(Self::Blocks(format, all))
    }

    /// What the sections of a matrix are called: its elements, and their scales where there are any.
    pub(super) const SECTIONS: [&str; 2] = ["table", "table scales"];

    /// Its bytes by section.
    pub(super) fn sections(&self) -> Vec<(&'static str, &[u8])> {
        let [values, scales_name] = Self::SECTIONS;
        match self {
            Self::F32(elements) => vec![(values, bytemuck::cast_slice(elements))],
            Self::Bf16(elements) => vec![(values, bytemuck::cast_slice(elements))],
            Self::Int8 { q, scales } | Self::Int4 { q, scales } => {
                vec![(values, bytemuck::cast_slice(q)), (scales_name, bytemuck::cast_slice(scales))]
            }
            Self::Blocks(_, blocks) => vec![(values, blocks)],
        }
    }

    /// As a linear layer's weights.
    pub(super) fn weights(&self) -> HostWeights<'_> {
        match self {
            Self::F32(values) => HostWeights::F32(values),
            Self::Bf16(values) => HostWeights::Bf16(values),
            Self::Int8 { q, scales } => HostWeights::Int8PerChannel { q, scales },
            Self::Int4 { q, scales } => {
                let offsets = GroupOffsets::Symmetric;
                HostWeights::Int4PerGroup { q, scales, offsets, group_size: GROUP }
            }
            Self::Blocks(WeightFormat::Q4_0, blocks) => HostWeights::Q4_0(blocks),
            Self::Blocks(WeightFormat::Q4_1, blocks) => HostWeights::Q4_1(blocks),
            // The last that there is; with any other the spec's check fails.
            Self::Blocks(_, blocks) => HostWeights::Q4K(blocks),
        }
    }
}

/// The error of a tensor that is not in the blocks its configuration says.
fn other_blocks(format: WeightFormat, part: &SourceTensor<'_>) -> Error {
    let (expected, got) = (format!("blocks of {format:?}"), format!("others in {}", part.name()));
    Error::Argument { operator: "linear", argument: "weights", expected, got }
}

/// Turns every row of `parts` into a row of `out` and the `a_row` elements of `per_row` that belong to it, in parallel.
fn convert<T: Send, S: Send>(
    parts: &[SourceTensor<'_>],
    mut out: &mut [T],
    mut per_row: &mut [S],
    a_row: usize,
    row: impl Fn(&[f32], &mut [T], &mut [S]) + Sync,
) -> Result<()> {
    for part in parts {
        let columns = part.row_len();
        let (own, rest) = std::mem::take(&mut out).split_at_mut(part.rows() * columns);
        let (own_rows, rest_rows) = std::mem::take(&mut per_row).split_at_mut(part.rows() * a_row);
        (out, per_row) = (rest, rest_rows);
        if columns == 0 {
            continue;
        }
        let rows = (CHUNK_VALUES / columns).max(1);
        let chunks =
            own.par_chunks_mut(rows * columns).zip(own_rows.par_chunks_mut(rows * a_row)).enumerate();
        chunks.try_for_each(|(chunk, (out, per_row))| -> Result<()> {
            let first = chunk * rows;
            let mut values = vec![0.0; out.len()];
            part.rows_to_f32(first..first + out.len() / columns, &mut values)?;
            let rows = values.chunks_exact(columns).zip(out.chunks_exact_mut(columns));
            let each = rows.zip(per_row.chunks_exact_mut(a_row));
            for (index, ((values, out), per_row)) in each.enumerate() {
                if !values.iter().all(|value| value.is_finite()) {
                    let (tensor, row) = (part.name().to_owned(), first + index);
                    return Err(ModelError::NotFinite { tensor, row }.into());
                }
                row(values, out, per_row);
            }
            Ok(())
        })?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "convert_tests.rs"]
mod tests;
