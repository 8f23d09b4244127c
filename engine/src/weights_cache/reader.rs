//! Taking kept weights.

use super::checksum::checksum;
use super::error::WeightsCacheError;
use super::table::{Key, Section, Table, written};
use crate::mapped_file::{self, MapError};
use memmap2::Mmap;
use std::io;
use std::path::{Path, PathBuf};

/// A file of weights, mapped, whose bytes have been checked. Sections are taken in the order they were written in.
pub(crate) struct KeptWeights {
    path: PathBuf,
    map: Mmap,
    sections: std::vec::IntoIter<Section>,
}

impl KeptWeights {
    /// Maps the file and compares all checksums. It is never changed once it has its name, only replaced or removed.
    pub(super) fn open(path: &Path, key: &Key) -> Result<Self, WeightsCacheError> {
        let map = mapped_file::map(path).map_err(|error| match error {
            MapError::Io(source) if source.kind() == io::ErrorKind::NotFound => {
                WeightsCacheError::Nothing { path: path.to_owned() }
            }
            other => WeightsCacheError::Io { path: path.to_owned(), source: other.into() },
        })?;
        let table = Table::read(path, &map)?;
        if let Some(what) = key.difference(&table.key) {
            return Err(WeightsCacheError::Other { path: path.to_owned(), what });
        }
        for section in &table.sections {
            let range = section.range(map.len());
            let bytes = range.and_then(|range| map.get(range));
            if bytes.is_none_or(|bytes| written(checksum(bytes)) != section.checksum) {
                let what = format!("the checksum of {}", section.name);
                return Err(WeightsCacheError::Damaged { path: path.to_owned(), what });
            }
        }
        Ok(Self { path: path.to_owned(), map, sections: table.sections.into_iter() })
    }

    /// The next section, which must have this name.
    pub(crate) fn take(&mut self, name: &str) -> Result<&[u8], WeightsCacheError> {
        let section = self.sections.next().filter(|section| section.name == name);
        let range = section.and_then(|section| section.range(self.map.len()));
        match range.and_then(|range| self.map.get(range)) {
            Some(bytes) => Ok(bytes),
            None => Err(self.damaged(&format!("{name} is not where it should be"))),
        }
    }

    /// As [`Self::take`], of `count` elements of one type.
    pub(crate) fn take_elements<T: bytemuck::AnyBitPattern>(
        &mut self,
        name: &str,
        count: usize,
    ) -> Result<&[T], WeightsCacheError> {
        let path = self.path.clone();
        let what = match bytemuck::try_cast_slice(self.take(name)?) {
            Ok(elements) if elements.len() == count => return Ok(elements),
            Ok(elements) => format!("{name}: {} of {count} elements", elements.len()),
            Err(error) => format!("{name} has no whole elements: {error}"),
        };
        Err(WeightsCacheError::Damaged { path, what })
    }

    /// Bytes of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.map.len() as u64
    }

    fn damaged(&self, what: &str) -> WeightsCacheError {
        WeightsCacheError::Damaged { path: self.path.clone(), what: what.to_owned() }
    }
}
