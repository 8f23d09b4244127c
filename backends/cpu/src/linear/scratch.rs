//! Scratch memory of a product: row sums of integers, and activations in the form that tiles read.

use super::{CpuPacked, pack_groups::is_group_wise, quantized::step};
use crate::{
    device::Cpu,
    simd::{Isa, Kernel, LANES, StoredFloat},
    view::{read, with_float},
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
    /// `[rows][in_features]` I8: of U8 activations, or without the outlier columns.
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
                let copied = format.dtype() == DType::U8 || blanked;
                let bytes = if copied { rows.saturating_mul(k) } else { 0 };
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

    /// Writes a tensor's I8 rows, without gaps and with 0 in some columns.
    pub(super) fn blanked_rows(&self, from: &Tensor<Cpu>, columns: &[u32], to: &mut [i8]) -> Result<()> {
        let from = read::<i8>(from)?;
        for (row, to) in to.chunks_exact_mut(from.rows.columns.max(1)).enumerate() {
            to.copy_from_slice(from.rows.row(from.data(), row));
            columns.iter().for_each(|&column| to[column as usize] = 0);
        }
        Ok(())
    }

    /// Writes a tensor's U8 rows less 128, without gaps.
    pub(super) fn signed_rows(&self, from: &Tensor<Cpu>, to: &mut [i8]) -> Result<()> {
        let from = read::<u8>(from)?;
        for (row, to) in to.chunks_exact_mut(from.rows.columns.max(1)).enumerate() {
            for (to, &from) in to.iter_mut().zip(from.rows.row(from.data(), row)) {
                *to = (from ^ 0x80) as i8;
            }
        }
        Ok(())
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
