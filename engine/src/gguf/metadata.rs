//! The metadata of a file, asked for by key and type.

use super::cursor::Cursor;
use super::error::What;
use super::name_index::NameIndex;
use super::{Array, GgufError, Strings, Value};
use crate::quoted::quoted;

/// The longest key the format allows, in bytes.
const MAX_KEY_BYTES: u64 = 65_535;
/// The least an entry takes: the key's length, the type, and a value of one byte.
const MIN_ENTRY_BYTES: u64 = 13;

/// A file's key/value metadata, copied out of the file.
///
/// Each getter `T(key)` fails where the key is missing; `opt_T(key)` gives `None` there. Both fail, naming the key, the
/// type asked for and the type found, where the value is of another type.
#[derive(Debug, Default)]
pub struct Metadata {
    entries: Vec<(Box<str>, Value)>,
    index: NameIndex,
}

impl Metadata {
    pub(super) fn read(from: &mut Cursor<'_>, count: u64) -> Result<Self, GgufError> {
        let capacity =
            from.check_count(count, MIN_ENTRY_BYTES, What::Part("the number of metadata entries"))?;
        let mut entries = Vec::with_capacity(capacity);
        for number in 0..count {
            let key = from.name(MAX_KEY_BYTES, What::Key(number))?;
            let id = from.u32(What::Value(key))?;
            entries.push((key.into(), Value::read(from, id, key)?));
        }
        let index = NameIndex::new(&entries, name)
            .map_err(|(key, _): &(Box<str>, Value)| GgufError::DuplicateKey { key: quoted(key) })?;
        Ok(Self { entries, index })
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keys and values in the file's order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(key, value)| (&**key, value))
    }

    /// The value under `key`, whatever its type.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.index.find(&self.entries, key, name).map(|(_, value)| value)
    }

    /// A non-negative integer, stored with any width.
    pub fn u64(&self, key: &str) -> Result<u64, GgufError> {
        required(key, self.opt_u64(key))
    }

    /// Like [`Self::u64`], `None` where the key is missing.
    pub fn opt_u64(&self, key: &str) -> Result<Option<u64>, GgufError> {
        self.opt(key, "u64", |value| value.as_integer().map(|x| fit(key, "u64", x)))?.transpose()
    }

    /// A non-negative integer below 2^32, stored with any width.
    pub fn u32(&self, key: &str) -> Result<u32, GgufError> {
        required(key, self.opt_u32(key))
    }

    /// Like [`Self::u32`], `None` where the key is missing.
    pub fn opt_u32(&self, key: &str) -> Result<Option<u32>, GgufError> {
        self.opt(key, "u32", |value| value.as_integer().map(|x| fit(key, "u32", x)))?.transpose()
    }

    /// A number, stored in single or (then rounded) in double precision.
    pub fn f32(&self, key: &str) -> Result<f32, GgufError> {
        required(key, self.opt_f32(key))
    }

    /// Like [`Self::f32`], `None` where the key is missing.
    pub fn opt_f32(&self, key: &str) -> Result<Option<f32>, GgufError> {
        self.opt(key, "f32", |value| match value {
            Value::F32(x) => Some(*x),
            Value::F64(x) => Some(*x as f32),
            _ => None,
        })
    }

    /// A boolean.
    pub fn bool(&self, key: &str) -> Result<bool, GgufError> {
        required(key, self.opt_bool(key))
    }

    /// Like [`Self::bool`], `None` where the key is missing.
    pub fn opt_bool(&self, key: &str) -> Result<Option<bool>, GgufError> {
        self.opt(key, "bool", |value| if let Value::Bool(x) = value { Some(*x) } else { None })
    }

    /// A string.
    pub fn str(&self, key: &str) -> Result<&str, GgufError> {
        required(key, self.opt_str(key))
    }

    /// Like [`Self::str`], `None` where the key is missing.
    pub fn opt_str(&self, key: &str) -> Result<Option<&str>, GgufError> {
        self.opt(key, "string", |value| if let Value::String(x) = value { Some(&**x) } else { None })
    }

    /// An array of strings.
    pub fn strings(&self, key: &str) -> Result<&Strings, GgufError> {
        required(key, self.opt_strings(key))
    }

    /// Like [`Self::strings`], `None` where the key is missing.
    pub fn opt_strings(&self, key: &str) -> Result<Option<&Strings>, GgufError> {
        self.opt(key, "array of strings", |value| match array(value)? {
            Array::Strings(x) => Some(x),
            _ => None,
        })
    }

    /// An array of signed 32-bit integers.
    pub fn i32s(&self, key: &str) -> Result<&[i32], GgufError> {
        required(key, self.opt_i32s(key))
    }

    /// Like [`Self::i32s`], `None` where the key is missing.
    pub fn opt_i32s(&self, key: &str) -> Result<Option<&[i32]>, GgufError> {
        self.opt(key, "array of i32", |value| match array(value)? {
            Array::I32(x) => Some(x.as_slice()),
            _ => None,
        })
    }

    /// An array of single precision numbers.
    pub fn f32s(&self, key: &str) -> Result<&[f32], GgufError> {
        required(key, self.opt_f32s(key))
    }

    /// Like [`Self::f32s`], `None` where the key is missing.
    pub fn opt_f32s(&self, key: &str) -> Result<Option<&[f32]>, GgufError> {
        self.opt(key, "array of f32", |value| match array(value)? {
            Array::F32(x) => Some(x.as_slice()),
            _ => None,
        })
    }

    fn opt<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, GgufError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match convert(value) {
            Some(converted) => Ok(Some(converted)),
            None => {
                Err(GgufError::WrongType { key: quoted(key), expected, got: value.type_name().to_owned() })
            }
        }
    }
}

fn name(entry: &(Box<str>, Value)) -> &str {
    &entry.0
}

fn array(value: &Value) -> Option<&Array> {
    if let Value::Array(array) = value { Some(array) } else { None }
}

fn required<T>(key: &str, found: Result<Option<T>, GgufError>) -> Result<T, GgufError> {
    found?.ok_or_else(|| GgufError::MissingKey { key: quoted(key) })
}

fn fit<T: TryFrom<i128>>(key: &str, expected: &'static str, value: i128) -> Result<T, GgufError> {
    T::try_from(value).map_err(|_| GgufError::OutOfRange {
        key: quoted(key),
        expected,
        value: value.to_string(),
    })
}
