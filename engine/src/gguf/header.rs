//! Everything before the tensors' data, and the checks that let the rest of the crate trust it.

use super::cursor::Cursor;
use super::error::What;
use super::name_index::NameIndex;
use super::{GgmlType, GgufError, Metadata, TensorInfo};
use crate::quoted::quoted;

const MAGIC: [u8; 4] = *b"GGUF";
/// The most dimensions the format allows.
const MAX_DIMS: u32 = 4;
/// More than any tool allows (64); it bounds what an error can quote.
const MAX_NAME_BYTES: u64 = 65_535;
/// The least an entry of the tensor table takes: the name's length, one dimension and its count, the type, the offset.
const MIN_TENSOR_BYTES: u64 = 32;
const DEFAULT_ALIGNMENT: u64 = 32;

/// The checked contents of a file, but for the data.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) version: u32,
    pub(super) metadata: Metadata,
    /// In the order of the table.
    pub(super) tensors: Vec<TensorInfo>,
    pub(super) index: NameIndex,
}

impl Header {
    pub(super) fn read(file: &[u8]) -> Result<Self, GgufError> {
        let mut from = Cursor::new(file);
        let found = from.array(What::Part("the magic number"))?;
        if found != MAGIC {
            return Err(GgufError::BadMagic { found });
        }
        let version = from.u32(What::Part("the version"))?;
        check_version(version)?;
        let tensor_count = from.u64(What::Part("the number of tensors"))?;
        let metadata_count = from.u64(What::Part("the number of metadata entries"))?;

        let metadata = Metadata::read(&mut from, metadata_count)?;
        let alignment = metadata.opt_u64("general.alignment")?.unwrap_or(DEFAULT_ALIGNMENT);
        if !alignment.is_power_of_two() {
            return Err(GgufError::BadAlignment { value: alignment });
        }

        let capacity =
            from.check_count(tensor_count, MIN_TENSOR_BYTES, What::Part("the number of tensors"))?;
        let mut entries = Vec::with_capacity(capacity);
        for number in 0..tensor_count {
            entries.push(Entry::read(&mut from, number)?);
        }
        let data = Data {
            // Saturating is safe: nothing lies inside a file from there on.
            start: from.offset().checked_next_multiple_of(alignment).unwrap_or(u64::MAX),
            alignment,
            file_len: file.len() as u64,
        };
        let tensors = entries.into_iter().map(|entry| entry.place(&data)).collect::<Result<Vec<_>, _>>()?;
        let index = NameIndex::new(&tensors, TensorInfo::name)
            .map_err(|tensor: &TensorInfo| GgufError::DuplicateTensor { tensor: quoted(&tensor.name) })?;
        check_apart(&tensors)?;
        Ok(Self { version, metadata, tensors, index })
    }
}

fn check_version(version: u32) -> Result<(), GgufError> {
    match version {
        2 | 3 => Ok(()),
        // Versions are small: set bits at the top mean the other byte order.
        _ if version != 0 && version.trailing_zeros() >= 16 => {
            Err(GgufError::BigEndian { version: version.swap_bytes() })
        }
        _ => Err(GgufError::UnsupportedVersion { version }),
    }
}

/// A line of the tensor table as it stands in the file.
struct Entry<'a> {
    name: &'a str,
    /// Innermost first, `rank` of them.
    dims: [u64; MAX_DIMS as usize],
    rank: usize,
    type_id: u32,
    /// From the start of the data.
    offset: u64,
}

/// Where the tensors' data lies.
struct Data {
    start: u64,
    alignment: u64,
    file_len: u64,
}

impl<'a> Entry<'a> {
    fn read(from: &mut Cursor<'a>, number: u64) -> Result<Self, GgufError> {
        let name = from.name(MAX_NAME_BYTES, What::TensorName(number))?;
        let what = What::Tensor(name);
        let got = from.u32(what)?;
        let mut dims = [0; MAX_DIMS as usize];
        let rank = got as usize;
        let Some(used) = dims.get_mut(..rank).filter(|used| !used.is_empty()) else {
            return Err(GgufError::BadDimensionCount { tensor: quoted(name), got, limit: MAX_DIMS });
        };
        for dim in used {
            *dim = from.u64(what)?;
        }
        Ok(Self { name, dims, rank, type_id: from.u32(what)?, offset: from.u64(what)? })
    }

    fn shape(&self) -> impl Iterator<Item = u64> {
        self.dims.iter().take(self.rank).rev().copied()
    }

    /// Checks size and place, and makes them absolute.
    fn place(&self, data: &Data) -> Result<TensorInfo, GgufError> {
        let tensor = || quoted(self.name);
        if self.shape().any(|dim| dim == 0) {
            return Err(GgufError::ZeroDimension { tensor: tensor(), shape: self.shape().collect() });
        }
        let overflow = || GgufError::SizeOverflow { tensor: tensor(), shape: self.shape().collect() };
        // No dimension is 0, so a product that fits proves that every partial product does.
        let elements = self.shape().try_fold(1u64, u64::checked_mul).ok_or_else(overflow)?;
        usize::try_from(elements).map_err(|_| overflow())?;
        let bytes = match GgmlType::from_id(self.type_id) {
            Some(ty) => self.byte_len(ty, elements)?.ok_or_else(overflow)?,
            None => 0,
        };
        if !self.offset.is_multiple_of(data.alignment) {
            let alignment = data.alignment;
            return Err(GgufError::Misaligned { tensor: tensor(), offset: self.offset, alignment });
        }
        let start = data.start.checked_add(self.offset);
        let end = start.and_then(|start| start.checked_add(bytes)).filter(|end| *end <= data.file_len);
        // What lies inside the file has offsets that fit: the file is a slice.
        let (Some(start), Some(end)) = (start.map(|x| x as usize), end.map(|x| x as usize)) else {
            return Err(GgufError::OutsideFile {
                tensor: tensor(),
                offset: self.offset,
                bytes,
                data_start: data.start,
                file_len: data.file_len,
            });
        };
        let shape = self.shape().map(|dim| dim as usize).collect();
        Ok(TensorInfo { name: self.name.into(), shape, type_id: self.type_id, bytes: start..end })
    }

    /// Bytes of `elements` values; `None` on overflow.
    fn byte_len(&self, ty: GgmlType, elements: u64) -> Result<Option<u64>, GgufError> {
        let row_len = self.dims[0];
        let block_len = ty.block_len();
        if !row_len.is_multiple_of(block_len as u64) {
            return Err(GgufError::PartialBlock { tensor: quoted(self.name), ty, row_len, block_len });
        }
        Ok((elements / block_len as u64).checked_mul(ty.block_bytes() as u64))
    }
}

/// Refuses tensors that share bytes: no writer makes them, and many names for the same bytes would let a small file
/// unpack to any size.
fn check_apart(tensors: &[TensorInfo]) -> Result<(), GgufError> {
    let mut by_start: Vec<&TensorInfo> = tensors.iter().filter(|tensor| !tensor.bytes.is_empty()).collect();
    by_start.sort_unstable_by_key(|tensor| tensor.bytes.start);
    match by_start.array_windows().find(|[left, right]| left.bytes.end > right.bytes.start) {
        Some([left, right]) => {
            Err(GgufError::Overlap { first: quoted(&left.name), second: quoted(&right.name) })
        }
        None => Ok(()),
    }
}
