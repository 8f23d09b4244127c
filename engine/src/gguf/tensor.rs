//! Tensors of a file: their entries in its table, and views of their bytes.

use std::fmt;
use std::ops::Range;

use super::ggml_type::name_of;
use super::{GgmlType, GgufError, dequantize_rows};
use crate::quoted::quoted;

/// A tensor's entry in the file's table, checked: its bytes lie inside the file.
#[derive(Clone, Debug)]
pub struct TensorInfo {
    pub(super) name: Box<str>,
    pub(super) shape: Box<[usize]>,
    pub(super) type_id: u32,
    /// Bytes from the start of the file. Empty where the type, and so the size, is not known.
    pub(super) bytes: Range<usize>,
}

impl TensorInfo {
    /// The tensor's name, such as `blk.0.attn_q.weight`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The dimensions, outermost first: `[rows, cols]` for a matrix. (The file has them the other way round.)
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// How the values are stored; `None` for types that are not read.
    pub fn ty(&self) -> Option<GgmlType> {
        GgmlType::from_id(self.type_id)
    }

    /// The type's number in the file.
    pub fn type_id(&self) -> u32 {
        self.type_id
    }

    /// The type's name as other tools print it, also for types that are not read.
    pub fn type_name(&self) -> &'static str {
        name_of(self.type_id)
    }

    /// The size of the data in bytes; `None` for types that are not read.
    pub fn byte_len(&self) -> Option<usize> {
        self.ty().map(|_| self.bytes.len())
    }

    pub(super) fn view<'a>(&'a self, file: &'a [u8]) -> Result<TensorView<'a>, GgufError> {
        let ty = self.ty().ok_or_else(|| GgufError::UnsupportedType {
            tensor: quoted(&self.name),
            id: self.type_id,
            name: self.type_name(),
        })?;
        // Only an owner that gives other bytes than it gave before can get here.
        let data = file.get(self.bytes.clone()).ok_or_else(|| GgufError::OutsideFile {
            tensor: quoted(&self.name),
            offset: self.bytes.start as u64,
            bytes: self.bytes.len() as u64,
            data_start: 0,
            file_len: file.len() as u64,
        })?;
        Ok(TensorView { info: self, ty, data })
    }
}

/// A tensor of a type that Halite reads, with its bytes.
#[derive(Clone, Copy)]
pub struct TensorView<'a> {
    info: &'a TensorInfo,
    ty: GgmlType,
    data: &'a [u8],
}

impl<'a> TensorView<'a> {
    /// The tensor's name.
    pub fn name(&self) -> &'a str {
        &self.info.name
    }

    /// How the values are stored.
    pub fn ty(&self) -> GgmlType {
        self.ty
    }

    /// The dimensions, outermost first: `[rows, cols]` for a matrix.
    pub fn shape(&self) -> &'a [usize] {
        &self.info.shape
    }

    /// Values in a row: the innermost dimension.
    pub fn row_len(&self) -> usize {
        self.info.shape.last().copied().unwrap_or(1)
    }

    /// The number of rows: the product of all dimensions but the innermost, 1 for a vector.
    pub fn rows(&self) -> usize {
        // The product of all dimensions is known to fit.
        self.info.shape.split_last().map_or(1, |(_, outer)| outer.iter().product())
    }

    /// The stored bytes: all rows, each a whole number of blocks.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// All values, rows one after the other.
    pub fn to_f32(&self) -> Result<Vec<f32>, GgufError> {
        let mut out = vec![0.0; self.rows().saturating_mul(self.row_len())];
        dequantize_rows(self, 0..self.rows(), &mut out)?;
        Ok(out)
    }
}

impl fmt::Debug for TensorView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorView")
            .field("name", &self.name())
            .field("ty", &self.ty)
            .field("shape", &self.shape())
            .field("bytes", &self.info.bytes)
            .finish()
    }
}
