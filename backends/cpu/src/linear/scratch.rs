//! Scratch memory of a product: row sums of integers, and activations in the form that tiles read.

use super::{CpuPacked, pack_groups::is_group_wise, quantized::step};
use crate::{
    aligned::CACHE_LINE,
    cost,
    device::Cpu,
    simd::{Isa, Kernel, LANES, StoredFloat},
    view::{Rows, read, with_float},
};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::linear::{ActivationFormat, LinearSpec};

/// Elements of each part, for some number of rows.
#[derive(Clone, Copy, Default)]
pub(super) struct Sizes {
    /// `[groups][rows]` I32.
    row_sums: usize,
    /// `[rows][columns]` F32: outliers, or all of F16 and BF16 activations.
    floats: usize,
    /// `[rows][copied_stride]` I8: of U8 activations, without the outlier columns, or apart.
    bytes: usize,
}

/// The parts.
pub(super) struct Scratch<'a> {
    pub(super) row_sums: &'a mut [i32],
    pub(super) floats: &'a mut [f32],
    pub(super) bytes: &'a mut [i8],
}

impl Sizes {
    pub(super) fn of(packed: &CpuPacked, rows: usize) -> Self {
        let spec: &LinearSpec = packed.as_ref();
        let k = spec.in_features;
        match spec.activations {
            ActivationFormat::Float(DType::F32) => Sizes::default(),
            ActivationFormat::Float(_) => Sizes { floats: rows.saturating_mul(k), ..Sizes::default() },
            format => {
                let groups = k.div_ceil(step(spec));
                let outliers = spec.outliers.map_or(0, |outliers| outliers.columns);
                let blanked = outliers > 0 && is_group_wise(spec);
                let copied = format.dtype() == DType::U8 || blanked || are_spread(rows, k);
                let bytes = if copied { rows.saturating_mul(copied_stride(k)) } else { 0 };
                Sizes { row_sums: rows.saturating_mul(groups), floats: rows.saturating_mul(outliers), bytes }
            }
        }
    }

    pub(super) fn total(self) -> u64 {
        let words = (self.row_sums as u64).saturating_add(self.floats as u64);
        words.saturating_mul(4).saturating_add(self.bytes as u64)
    }

    /// Cuts scratch memory of the total size.
    pub(super) fn cut(self, scratch: &mut [u8]) -> Scratch<'_> {
        let (row_sums, rest) = scratch.split_at_mut(4 * self.row_sums);
        let (floats, bytes) = rest.split_at_mut(4 * self.floats);
        Scratch {
            row_sums: bytemuck::cast_slice_mut(row_sums),
            floats: bytemuck::cast_slice_mut(floats),
            bytes: bytemuck::cast_slice_mut(bytes),
        }
    }
}

/// Bytes after which cache sets repeat: so far apart, no more lines stay in the first level than a set has ways.
const SETS_REPEAT: usize = 4096;

/// Whether rows are copied so that they lie apart: a tile's 12 rows (AVX-512) are read together, and would push each other
/// out of the first-level cache. With few rows the weights take the time. By K, not by the rows' own stride: scratch memory is
/// asked for before there are rows.
pub(super) fn are_spread(rows: usize, k: usize) -> bool {
    rows > FEW_ROWS && k > 0 && k.is_multiple_of(SETS_REPEAT)
}

/// Rows that a set's ways hold.
const FEW_ROWS: usize = 8;

/// Bytes from a copied row to the next.
pub(super) fn copied_stride(k: usize) -> usize {
    if k.is_multiple_of(SETS_REPEAT) { k.saturating_add(CACHE_LINE) } else { k }
}

impl Cpu {
    /// Writes a tensor's rows as F32, without gaps.
    pub(super) fn widen_rows(&self, from: &Tensor<Cpu>, to: &mut [f32]) -> Result<()> {
        with_float!(from.dtype(), Float => {
            let from = read::<Float>(from)?;
            let rows = from.rows;
            for (row, to) in to.chunks_exact_mut(rows.columns.max(1)).enumerate() {
                self.tier().run(Widen { from: rows.row(from.data(), row), to });
            }
            Ok(())
        })
    }

    /// Writes a tensor's I8 rows, [`copied_stride`] apart, with 0 in some columns.
    pub(super) fn copied_rows(&self, from: &Tensor<Cpu>, blank: &[u32], to: &mut [i8]) -> Result<()> {
        let from = read::<i8>(from)?;
        self.copy_rows(from.rows, to, |row, to| {
            to.copy_from_slice(from.rows.row(from.data(), row));
            blank.iter().for_each(|&column| to[column as usize] = 0);
        });
        Ok(())
    }

    /// Writes a tensor's U8 rows less 128, [`copied_stride`] apart.
    pub(super) fn signed_rows(&self, from: &Tensor<Cpu>, to: &mut [i8]) -> Result<()> {
        let from = read::<u8>(from)?;
        self.copy_rows(from.rows, to, |row, to| {
            for (to, &from) in to.iter_mut().zip(from.rows.row(from.data(), row)) {
                *to = (from ^ 0x80) as i8;
            }
        });
        Ok(())
    }

    fn copy_rows(&self, rows: Rows, to: &mut [i8], row: impl Fn(usize, &mut [i8]) + Sync) {
        let (columns, stride) = (rows.columns.max(1), copied_stride(rows.columns).max(1));
        let count = to.len() / stride;
        let per_task = self.team().units_per_task(count, cost::copied(columns)).max(1);
        let tasks = to.chunks_mut(per_task * stride).enumerate();
        self.team().each(tasks, |(task, to)| {
            for (index, to) in to.chunks_exact_mut(stride).enumerate() {
                row(task * per_task + index, &mut to[..columns]);
            }
        });
    }
}

/// Widens a row.
struct Widen<'a, T> {
    from: &'a [T],
    to: &'a mut [f32],
}

impl<T: StoredFloat> Kernel for Widen<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for (from, to) in self.from.chunks(LANES).zip(self.to.chunks_mut(LANES)) {
            isa.store_partial(T::load_partial(isa, from), to);
        }
    }
}

#[cfg(test)]
#[path = "scratch_tests.rs"]
mod tests;
