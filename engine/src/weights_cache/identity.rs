//! What tells one model, and one program, from another.

use crate::siphash::siphash_2_4_128;
use serde::{Deserialize, Serialize};
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The most characters of a model's name in a file's name.
const LABEL: usize = 60;

/// A model as it is on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// Absolute, links followed.
    pub(super) path: PathBuf,
    /// Of `path`.
    pub(super) path_hash: u64,
    /// A part of the name it was given by, to be recognised by people.
    pub(super) label: String,
    /// In the order of their names.
    pub(super) files: Vec<FileState>,
}

/// A file as it is on the disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileState {
    name: String,
    bytes: u64,
    /// From 1970 on; what archives hold may be older.
    modified_ns: i128,
    /// The last change of any kind. A copy that keeps the time of modification has another one, and so has a file that was
    /// renamed over this one. 0 on systems without.
    changed_ns: i128,
}

impl Identity {
    pub(super) fn of(model: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(model)?;
        let mut files = Vec::new();
        if path.is_dir() {
            for entry in fs::read_dir(&path)? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.ends_with(".safetensors") || name.ends_with(".json") {
                    // Links to the hub's blobs are followed; what they do not lead to is not there.
                    if let Ok(metadata) = fs::metadata(entry.path()) {
                        files.push(FileState::of(name, &metadata)?);
                    }
                }
            }
            files.sort_by(|a, b| a.name.cmp(&b.name));
        } else {
            files.push(FileState::of(String::new(), &fs::metadata(&path)?)?);
        }
        let name = model.file_name().or(path.file_name()).unwrap_or_default().to_string_lossy();
        let harmless = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let label = name.trim_start_matches('.').chars().take(LABEL).map(harmless).collect();
        let path_hash = siphash_2_4_128([0, 0], path.as_os_str().as_encoded_bytes()) as u64;
        Ok(Self { path, path_hash, label, files })
    }
}

impl FileState {
    fn of(name: String, metadata: &Metadata) -> io::Result<Self> {
        let modified_ns = match metadata.modified()?.duration_since(UNIX_EPOCH) {
            Ok(after) => after.as_nanos() as i128,
            Err(before) => -(before.duration().as_nanos() as i128),
        };
        Ok(Self { name, bytes: metadata.len(), modified_ns, changed_ns: changed_ns(metadata) })
    }
}

#[cfg(unix)]
fn changed_ns(metadata: &Metadata) -> i128 {
    use std::os::unix::fs::MetadataExt;
    i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec())
}

#[cfg(not(unix))]
fn changed_ns(_metadata: &Metadata) -> i128 {
    0
}

/// The running program: the version alone where the system does not show it.
pub(super) fn program() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let state = || -> io::Result<FileState> {
        FileState::of(String::new(), &fs::metadata(std::env::current_exe()?)?)
    };
    match state() {
        Ok(FileState { bytes, modified_ns, changed_ns, .. }) => {
            format!("{version}, {bytes} bytes of {modified_ns}, {changed_ns}")
        }
        Err(_) => version.to_owned(),
    }
}
