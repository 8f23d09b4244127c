//! Metadata values, and reading them.

use super::GgufError;
use super::cursor::Cursor;
use super::error::What;

/// Arrays may stand in arrays, this deep in all. Known files use one level.
const MAX_DEPTH: usize = 4;

/// A metadata value, of one of the format's thirteen types.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// An unsigned 8-bit integer.
    U8(u8),
    /// A signed 8-bit integer.
    I8(i8),
    /// An unsigned 16-bit integer.
    U16(u16),
    /// A signed 16-bit integer.
    I16(i16),
    /// An unsigned 32-bit integer.
    U32(u32),
    /// A signed 32-bit integer.
    I32(i32),
    /// A single precision number.
    F32(f32),
    /// A boolean.
    Bool(bool),
    /// A string.
    String(Box<str>),
    /// An array, of elements of one type.
    Array(Box<Array>),
    /// An unsigned 64-bit integer.
    U64(u64),
    /// A signed 64-bit integer.
    I64(i64),
    /// A double precision number.
    F64(f64),
}

/// A metadata array.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Array {
    /// Unsigned 8-bit integers.
    U8(Vec<u8>),
    /// Signed 8-bit integers.
    I8(Vec<i8>),
    /// Unsigned 16-bit integers.
    U16(Vec<u16>),
    /// Signed 16-bit integers.
    I16(Vec<i16>),
    /// Unsigned 32-bit integers.
    U32(Vec<u32>),
    /// Signed 32-bit integers.
    I32(Vec<i32>),
    /// Single precision numbers.
    F32(Vec<f32>),
    /// Booleans.
    Bool(Vec<bool>),
    /// Strings, such as a vocabulary.
    Strings(Strings),
    /// Arrays, which may differ in type and length.
    Arrays(Vec<Array>),
    /// Unsigned 64-bit integers.
    U64(Vec<u64>),
    /// Signed 64-bit integers.
    I64(Vec<i64>),
    /// Double precision numbers.
    F64(Vec<f64>),
}

/// Strings stored end to end: a vocabulary of 150,000 tokens is two allocations, no larger than it was in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strings {
    text: String,
    ends: Vec<usize>,
}

impl Strings {
    /// The number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The string at `index`.
    pub fn get(&self, index: usize) -> Option<&str> {
        let start = match index.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.text.get(start..*self.ends.get(index)?)
    }

    /// The strings, in the file's order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }
}

impl Value {
    /// The type's name, such as `u32` or `array of strings`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::U8(_) => "u8",
            Self::I8(_) => "i8",
            Self::U16(_) => "u16",
            Self::I16(_) => "i16",
            Self::U32(_) => "u32",
            Self::I32(_) => "i32",
            Self::F32(_) => "f32",
            Self::Bool(_) => "bool",
            Self::String(_) => "string",
            Self::Array(array) => array.type_name(),
            Self::U64(_) => "u64",
            Self::I64(_) => "i64",
            Self::F64(_) => "f64",
        }
    }

    /// An integer of any width; `None` for other types.
    pub fn as_integer(&self) -> Option<i128> {
        Some(match *self {
            Self::U8(x) => x.into(),
            Self::I8(x) => x.into(),
            Self::U16(x) => x.into(),
            Self::I16(x) => x.into(),
            Self::U32(x) => x.into(),
            Self::I32(x) => x.into(),
            Self::U64(x) => x.into(),
            Self::I64(x) => x.into(),
            _ => return None,
        })
    }

    /// Reads a value of the type numbered `id`.
    pub(super) fn read(from: &mut Cursor<'_>, id: u32, key: &str) -> Result<Self, GgufError> {
        let what = What::Value(key);
        let id_offset = from.offset().saturating_sub(4);
        Ok(match id {
            0 => Self::U8(u8::from_le_bytes(from.array(what)?)),
            1 => Self::I8(i8::from_le_bytes(from.array(what)?)),
            2 => Self::U16(u16::from_le_bytes(from.array(what)?)),
            3 => Self::I16(i16::from_le_bytes(from.array(what)?)),
            4 => Self::U32(u32::from_le_bytes(from.array(what)?)),
            5 => Self::I32(i32::from_le_bytes(from.array(what)?)),
            6 => Self::F32(f32::from_le_bytes(from.array(what)?)),
            7 => {
                let offset = from.offset();
                let [byte] = from.array(what)?;
                Self::Bool(boolean(byte, what, offset)?)
            }
            8 => Self::String(from.string(what)?.into()),
            9 => Self::Array(Box::new(Array::read(from, key, 1)?)),
            10 => Self::U64(u64::from_le_bytes(from.array(what)?)),
            11 => Self::I64(i64::from_le_bytes(from.array(what)?)),
            12 => Self::F64(f64::from_le_bytes(from.array(what)?)),
            _ => return Err(GgufError::UnknownValueType { what: what.to_string(), offset: id_offset, id }),
        })
    }
}

impl Array {
    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::U8(x) => x.len(),
            Self::I8(x) => x.len(),
            Self::U16(x) => x.len(),
            Self::I16(x) => x.len(),
            Self::U32(x) => x.len(),
            Self::I32(x) => x.len(),
            Self::F32(x) => x.len(),
            Self::Bool(x) => x.len(),
            Self::Strings(x) => x.len(),
            Self::Arrays(x) => x.len(),
            Self::U64(x) => x.len(),
            Self::I64(x) => x.len(),
            Self::F64(x) => x.len(),
        }
    }

    /// Whether the array has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn type_name(&self) -> &'static str {
        match self {
            Self::U8(_) => "array of u8",
            Self::I8(_) => "array of i8",
            Self::U16(_) => "array of u16",
            Self::I16(_) => "array of i16",
            Self::U32(_) => "array of u32",
            Self::I32(_) => "array of i32",
            Self::F32(_) => "array of f32",
            Self::Bool(_) => "array of bool",
            Self::Strings(_) => "array of strings",
            Self::Arrays(_) => "array of arrays",
            Self::U64(_) => "array of u64",
            Self::I64(_) => "array of i64",
            Self::F64(_) => "array of f64",
        }
    }

    fn read(from: &mut Cursor<'_>, key: &str, depth: usize) -> Result<Self, GgufError> {
        let what = What::Value(key);
        if depth > MAX_DEPTH {
            return Err(GgufError::NestingTooDeep {
                what: what.to_string(),
                offset: from.offset(),
                limit: MAX_DEPTH,
            });
        }
        let id_offset = from.offset();
        let id = from.u32(what)?;
        let count = from.u64(what)?;
        Ok(match id {
            0 => Self::U8(numbers(from, count, key, u8::from_le_bytes)?),
            1 => Self::I8(numbers(from, count, key, i8::from_le_bytes)?),
            2 => Self::U16(numbers(from, count, key, u16::from_le_bytes)?),
            3 => Self::I16(numbers(from, count, key, i16::from_le_bytes)?),
            4 => Self::U32(numbers(from, count, key, u32::from_le_bytes)?),
            5 => Self::I32(numbers(from, count, key, i32::from_le_bytes)?),
            6 => Self::F32(numbers(from, count, key, f32::from_le_bytes)?),
            7 => Self::Bool(booleans(from, count, key)?),
            8 => Self::Strings(strings(from, count, key)?),
            9 => Self::Arrays(arrays(from, count, key, depth)?),
            10 => Self::U64(numbers(from, count, key, u64::from_le_bytes)?),
            11 => Self::I64(numbers(from, count, key, i64::from_le_bytes)?),
            12 => Self::F64(numbers(from, count, key, f64::from_le_bytes)?),
            _ => return Err(GgufError::UnknownValueType { what: what.to_string(), offset: id_offset, id }),
        })
    }
}

fn numbers<T, const N: usize>(
    from: &mut Cursor<'_>,
    count: u64,
    key: &str,
    decode: fn([u8; N]) -> T,
) -> Result<Vec<T>, GgufError> {
    from.check_count(count, N as u64, What::Elements(key))?;
    let bytes = from.take(count * N as u64, What::Value(key))?;
    Ok(bytes.as_chunks().0.iter().copied().map(decode).collect())
}

fn booleans(from: &mut Cursor<'_>, count: u64, key: &str) -> Result<Vec<bool>, GgufError> {
    from.check_count(count, 1, What::Elements(key))?;
    let start = from.offset();
    let bytes = from.take(count, What::Value(key))?;
    (0..).zip(bytes).map(|(n, &byte)| boolean(byte, What::Element(key, n), start + n)).collect()
}

fn boolean(byte: u8, what: What<'_>, offset: u64) -> Result<bool, GgufError> {
    match byte {
        0 => Ok(false),
        1 => Ok(true),
        value => Err(GgufError::InvalidBool { what: what.to_string(), offset, value }),
    }
}

fn strings(from: &mut Cursor<'_>, count: u64, key: &str) -> Result<Strings, GgufError> {
    // The least a string takes is its length.
    let capacity = from.check_count(count, 8, What::Elements(key))?;
    let mut strings = Strings { text: String::new(), ends: Vec::with_capacity(capacity) };
    for n in 0..count {
        strings.text.push_str(from.string(What::Element(key, n))?);
        strings.ends.push(strings.text.len());
    }
    Ok(strings)
}

fn arrays(from: &mut Cursor<'_>, count: u64, key: &str, depth: usize) -> Result<Vec<Array>, GgufError> {
    // The least an array takes is its type and its count.
    let capacity = from.check_count(count, 12, What::Elements(key))?;
    let mut arrays = Vec::with_capacity(capacity);
    for _ in 0..count {
        arrays.push(Array::read(from, key, depth + 1)?);
    }
    Ok(arrays)
}
