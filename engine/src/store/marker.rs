//! Notes beside cached files: verified once, not hashed again at every start.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

/// What a file looked like when its hash was found right. A file that looks different is hashed again.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marker {
    sha256: String,
    bytes: u64,
    modified_ns: u128,
}

impl Marker {
    /// `None` where the system keeps no time of modification: such files are hashed every time.
    pub(crate) fn of(metadata: &Metadata, sha256: &str) -> Option<Self> {
        let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(Self { sha256: sha256.to_owned(), bytes: metadata.len(), modified_ns: modified.as_nanos() })
    }

    /// The marker stored beside `file`; `None` if there is none or it cannot be read.
    pub(crate) fn read(file: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path(file)).ok()?).ok()
    }

    /// Stores the marker. Failing is no error: the file is hashed again next time.
    pub(crate) fn write(&self, file: &Path) {
        let written = serde_json::to_vec(self)
            .map_err(std::io::Error::other)
            .and_then(|json| fs::write(path(file), json));
        if let Err(error) = written {
            tracing::debug!(%error, file = %file.display(), "no marker written; the file is hashed again next time");
        }
    }
}

fn path(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".verified");
    name.into()
}
