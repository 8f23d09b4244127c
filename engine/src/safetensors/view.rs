//! A tensor of a folder, and its values as other types.

use std::fmt;
use std::ops::Range;

use half::{bf16, f16};

use super::{ElementType, SafetensorsError};
use crate::quoted::quoted;

/// A tensor of a [`SafetensorsFolder`](super::SafetensorsFolder), with its bytes.
#[derive(Clone, Copy)]
pub struct SafetensorsView<'a> {
    name: &'a str,
    dtype: ElementType,
    shape: &'a [usize],
    data: &'a [u8],
}

impl<'a> SafetensorsView<'a> {
    pub(super) fn new(name: &'a str, dtype: ElementType, shape: &'a [usize], data: &'a [u8]) -> Self {
        Self { name, dtype, shape, data }
    }

    /// The tensor's name, such as `model.layers.0.self_attn.q_proj.weight`.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// How the values are stored.
    pub fn dtype(&self) -> ElementType {
        self.dtype
    }

    /// The dimensions, outermost first: `[rows, cols]` for a matrix, nothing for a single value.
    pub fn shape(&self) -> &'a [usize] {
        self.shape
    }

    /// The bytes: little-endian values, the last dimension innermost. They may start at any address.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// The number of values.
    pub fn elements(&self) -> usize {
        // Checked to fit when the file was opened.
        self.shape.iter().product()
    }

    /// All values of an `F32`, `F16` or `BF16` tensor.
    ///
    /// # Errors
    /// [`SafetensorsError::WrongType`] for tensors of other types.
    pub fn to_f32(&self) -> Result<Vec<f32>, SafetensorsError> {
        let widen = self.widening()?;
        let mut values = vec![0.0; self.elements()];
        widen(self.data, &mut values);
        Ok(values)
    }

    /// The values of these rows of an `F32`, `F16` or `BF16` matrix `[rows, cols]`, one row behind the other.
    ///
    /// # Errors
    /// [`SafetensorsError::WrongType`] for other types, [`SafetensorsError::NotAMatrix`] for other than two dimensions,
    /// [`SafetensorsError::RowsOutOfRange`], and [`SafetensorsError::OutputLength`] unless `out` has
    /// `rows.len() * cols` values.
    pub fn rows_to_f32(&self, rows: Range<usize>, out: &mut [f32]) -> Result<(), SafetensorsError> {
        let widen = self.widening()?;
        let [have, cols] = *self.shape else {
            return Err(SafetensorsError::NotAMatrix { tensor: self.quoted(), shape: self.shape.to_vec() });
        };
        if rows.start > rows.end || rows.end > have {
            return Err(SafetensorsError::RowsOutOfRange { tensor: self.quoted(), rows, have });
        }
        // Both products are at most the number of elements.
        let expected = rows.len() * cols;
        if out.len() != expected {
            return Err(SafetensorsError::OutputLength { tensor: self.quoted(), expected, got: out.len() });
        }
        let value_bytes = self.data.len().checked_div(self.elements()).unwrap_or_default();
        let bytes = rows.start * cols * value_bytes..rows.end * cols * value_bytes;
        widen(self.data.get(bytes).unwrap_or_default(), out);
        Ok(())
    }

    /// The values of an `I8` tensor.
    ///
    /// # Errors
    /// [`SafetensorsError::WrongType`] for tensors of other types.
    pub fn as_i8(&self) -> Result<&'a [i8], SafetensorsError> {
        match self.dtype {
            ElementType::I8 => Ok(bytemuck::cast_slice(self.data)),
            _ => Err(self.wrong_type("I8")),
        }
    }

    /// What reads this tensor's type.
    fn widening(&self) -> Result<Widening, SafetensorsError> {
        Ok(match self.dtype {
            ElementType::F32 => |bytes, out| widen(bytes, out, f32::from_le_bytes),
            ElementType::F16 => |bytes, out| widen(bytes, out, |value| f16::from_le_bytes(value).to_f32()),
            ElementType::Bf16 => |bytes, out| widen(bytes, out, |value| bf16::from_le_bytes(value).to_f32()),
            _ => return Err(self.wrong_type("F32, F16 or BF16")),
        })
    }

    fn wrong_type(&self, expected: &'static str) -> SafetensorsError {
        SafetensorsError::WrongType { tensor: self.quoted(), expected, got: self.dtype }
    }

    fn quoted(&self) -> String {
        quoted(self.name)
    }
}

/// Turns bytes of a type into as many values.
type Widening = fn(&[u8], &mut [f32]);

/// The values may lie at any address, so they are read as bytes.
fn widen<const N: usize>(bytes: &[u8], out: &mut [f32], value: impl Fn([u8; N]) -> f32) {
    let (values, _) = bytes.as_chunks::<N>();
    for (out, bytes) in out.iter_mut().zip(values) {
        *out = value(*bytes);
    }
}

impl fmt::Debug for SafetensorsView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SafetensorsView({} {} {:?})", quoted(self.name), self.dtype, self.shape)
    }
}
