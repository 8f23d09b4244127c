//! The table of a file's sections, and what stands around it.

use super::checksum::checksum;
use super::error::WeightsCacheError;
use super::identity::FileState;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The name of the format, with its version: the first bytes of a file, and the last.
pub(super) const FORMAT: &str = "halite weights 1";
/// The same without the version.
const FAMILY: &str = "halite weights ";

/// Where sections begin: in a mapped file they are aligned for every element type, and to cache lines.
pub(super) const ALIGNMENT: u64 = 64;

/// Bytes behind the table: its length, its checksum and the format's name.
const TAIL: usize = 8 + 16 + FORMAT.len();

/// What weights were made by and of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Key {
    pub(super) program: String,
    pub(super) backend: String,
    pub(super) weights: String,
    pub(super) path: PathBuf,
    pub(super) files: Vec<FileState>,
}

/// One section.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) start: u64,
    pub(super) bytes: u64,
    /// Hexadecimal: JSON numbers have fewer digits.
    pub(super) checksum: String,
}

/// All of a file but the sections' bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Table {
    pub(super) key: Key,
    pub(super) sections: Vec<Section>,
}

/// A checksum as it is written.
pub(super) fn written(checksum: u128) -> String {
    format!("{checksum:032x}")
}

impl Key {
    /// What differs in another key, as an error's text has it.
    pub(super) fn difference(&self, other: &Self) -> Option<&'static str> {
        match () {
            () if self.program != other.program => Some("program"),
            () if self.backend != other.backend => Some("backend"),
            () if self.weights != other.weights => Some("weights format"),
            () if self.path != other.path => Some("model path"),
            () if self.files != other.files => Some("model file"),
            () => None,
        }
    }
}

impl Section {
    /// Its place in a file of `len` bytes.
    pub(super) fn range(&self, len: usize) -> Option<Range<usize>> {
        let start = usize::try_from(self.start).ok()?;
        let end = start.checked_add(usize::try_from(self.bytes).ok()?)?;
        (end <= len && self.start.is_multiple_of(ALIGNMENT)).then_some(start..end)
    }
}

/// What stands at the beginning of a file.
pub(super) fn head() -> [u8; ALIGNMENT as usize] {
    let mut head = [b'\n'; ALIGNMENT as usize];
    head.iter_mut().zip(FORMAT.bytes()).for_each(|(to, byte)| *to = byte);
    head
}

impl Table {
    /// The table and what stands behind it.
    pub(super) fn bytes(&self) -> std::io::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec(self)?;
        let (len, sum) = (bytes.len() as u64, checksum(&bytes));
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes.extend_from_slice(FORMAT.as_bytes());
        Ok(bytes)
    }

    /// Reads the table of the file at `path`, whose bytes these are.
    pub(super) fn read(path: &Path, file: &[u8]) -> Result<Self, WeightsCacheError> {
        let path = || path.to_owned();
        let damaged = |what: &str| WeightsCacheError::Damaged { path: path(), what: what.to_owned() };
        let truncated = || WeightsCacheError::Truncated { path: path(), bytes: file.len() as u64 };
        if file.len() < head().len() && head().starts_with(file) {
            return Err(truncated());
        }
        if !file.starts_with(&head()) {
            // No more than that is read of a file that is something else, however large.
            let line = file.get(..file.len().min(FORMAT.len() + 8)).unwrap_or_default();
            let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
            return Err(if line.starts_with(FAMILY.as_bytes()) && line != FORMAT.as_bytes() {
                let got = line.escape_ascii().to_string();
                WeightsCacheError::Version { path: path(), expected: FORMAT, got }
            } else {
                WeightsCacheError::NotWeights { path: path(), expected: FORMAT }
            });
        }
        let (rest, tail) = file.split_at_checked(file.len().wrapping_sub(TAIL)).ok_or_else(truncated)?;
        let (len, tail) = tail.split_first_chunk().ok_or_else(truncated)?;
        let (sum, name) = tail.split_first_chunk().ok_or_else(truncated)?;
        if name != FORMAT.as_bytes() {
            return Err(truncated());
        }
        let len = usize::try_from(u64::from_le_bytes(*len)).unwrap_or(usize::MAX);
        let start = rest.len().checked_sub(len).ok_or_else(|| damaged("the length of its table"))?;
        let bytes = rest.get(start..).unwrap_or_default();
        if checksum(bytes) != u128::from_le_bytes(*sum) {
            return Err(damaged("the checksum of its table"));
        }
        serde_json::from_slice(bytes).map_err(|error| damaged(&format!("its table: {error}")))
    }
}
