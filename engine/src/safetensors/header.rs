//! A safetensors file's header, and the checks that let the rest of the module trust it.

use std::fmt;
use std::ops::Range;

use safetensors::Dtype;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::json::{AnyText, FromEntries, Object};
use super::{ElementType, SafetensorsError};
use crate::quoted::{quoted, shortened};

/// The format's limit, 100 MB.
const MAX_HEADER_BYTES: u64 = 100_000_000;
/// Bytes of the header's length.
const LENGTH_BYTES: usize = 8;
/// More than any framework uses; it bounds what a header can make us allocate.
const MAX_RANK: usize = 16;

/// A tensor of a file, checked: its bytes lie inside the file and fit its shape and type.
#[derive(Debug)]
pub(super) struct HeaderEntry {
    pub(super) name: Box<str>,
    pub(super) dtype: ElementType,
    /// Outermost first.
    pub(super) shape: Box<[usize]>,
    /// From the start of the file.
    pub(super) bytes: Range<usize>,
}

/// Reads and checks the header of a file, in the order of the data.
pub(super) fn read(file: &[u8]) -> Result<Vec<HeaderEntry>, SafetensorsError> {
    let available = file.len() as u64;
    let outside = |needed| SafetensorsError::HeaderOutsideFile { needed, available };
    let (length, rest) = file.split_first_chunk().ok_or_else(|| outside(LENGTH_BYTES as u64))?;
    let bytes = u64::from_le_bytes(*length);
    if bytes > MAX_HEADER_BYTES {
        return Err(SafetensorsError::HeaderTooLarge { bytes, limit: MAX_HEADER_BYTES });
    }
    let (header, data) =
        rest.split_at_checked(bytes as usize).ok_or_else(|| outside(bytes + LENGTH_BYTES as u64))?;
    let parsed: Object<Entries> = serde_json::from_slice(header)
        .map_err(|error| SafetensorsError::BadHeader { reason: shortened(error) })?;
    place(parsed.0.tensors, LENGTH_BYTES + header.len(), data.len())
}

/// Checks sizes and places, and makes the places absolute.
fn place(
    mut tensors: Vec<(Box<str>, Entry)>,
    data_start: usize,
    data_len: usize,
) -> Result<Vec<HeaderEntry>, SafetensorsError> {
    tensors.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
    if let Some([(name, _), _]) = tensors.array_windows().find(|[(left, _), (right, _)]| left == right) {
        let reason = format!("tensor {} stands in it twice", quoted(name));
        return Err(SafetensorsError::BadHeader { reason });
    }
    tensors.sort_by_key(|(_, entry)| entry.data_offsets);
    let mut end_before = 0;
    let mut placed = Vec::with_capacity(tensors.len());
    for (name, Entry { dtype, shape: Shape(shape), data_offsets: (start, end) }) in tensors {
        let tensor = || quoted(&name);
        if start != end_before || end < start {
            return Err(SafetensorsError::OutOfPlace { tensor: tensor(), start, end, expected: end_before });
        }
        let elements = shape.iter().try_fold(1usize, |product, dim| product.checked_mul(*dim));
        let elements = elements
            .ok_or_else(|| SafetensorsError::SizeOverflow { tensor: tensor(), shape: shape.to_vec() })?;
        let expected = elements as u128 * dtype.bitsize() as u128;
        let got = u128::from(end - start) * 8;
        let dtype = ElementType::of(dtype);
        if expected != got {
            let shape = shape.to_vec();
            return Err(SafetensorsError::WrongSize { tensor: tensor(), dtype, shape, expected, got });
        }
        end_before = end;
        placed.push((name, dtype, shape, start..end));
    }
    if end_before != data_len as u64 {
        return Err(SafetensorsError::WrongFileSize { expected: end_before, got: data_len as u64 });
    }
    // Now every offset is known to lie inside the file, which is a slice: no cast or sum can overflow.
    let absolute = |bytes: Range<u64>| data_start + bytes.start as usize..data_start + bytes.end as usize;
    let entries = placed.into_iter();
    Ok(entries
        .map(|(name, dtype, shape, bytes)| HeaderEntry { name, dtype, shape, bytes: absolute(bytes) })
        .collect())
}

/// The header's object.
#[derive(Default)]
struct Entries {
    tensors: Vec<(Box<str>, Entry)>,
    has_metadata: bool,
}

impl FromEntries for Entries {
    fn entry<'de, A: MapAccess<'de>>(&mut self, key: String, map: &mut A) -> Result<(), A::Error> {
        if key == "__metadata__" {
            if std::mem::replace(&mut self.has_metadata, true) {
                return Err(A::Error::custom("\"__metadata__\" stands in it twice"));
            }
            map.next_value::<Option<Object<Texts>>>()?;
            return Ok(());
        }
        let entry = map
            .next_value()
            .map_err(|error| A::Error::custom(format_args!("tensor {}: {error}", quoted(&key))))?;
        self.tensors.push((key.into(), entry));
        Ok(())
    }
}

/// Keys and strings that nobody asks for.
#[derive(Default)]
struct Texts;

impl FromEntries for Texts {
    fn entry<'de, A: MapAccess<'de>>(&mut self, _: String, map: &mut A) -> Result<(), A::Error> {
        map.next_value::<AnyText>().map(drop)
    }
}

/// A tensor's entry as it stands in the header.
#[derive(Deserialize)]
struct Entry {
    dtype: Dtype,
    shape: Shape,
    /// From the start of the data.
    data_offsets: (u64, u64),
}

struct Shape(Box<[usize]>);

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Dims;
        impl<'de> Visitor<'de> for Dims {
            type Value = Shape;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of dimensions")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Shape, A::Error> {
                let mut dims = Vec::new();
                while let Some(dim) = seq.next_element()? {
                    if dims.len() == MAX_RANK {
                        return Err(A::Error::custom(format_args!("more than {MAX_RANK} dimensions")));
                    }
                    dims.push(dim);
                }
                Ok(Shape(dims.into()))
            }
        }
        from.deserialize_seq(Dims)
    }
}
