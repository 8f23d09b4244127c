//! What has come of a file, hashed as it comes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::HubError;
use super::listing::{Content, RemoteFile};
use crate::store::digest::{hash_into, hex};

/// A file under way.
pub(super) struct Partial {
    path: PathBuf,
    file: File,
    hasher: Sha256,
    bytes: u64,
}

impl Partial {
    /// Opens what an earlier attempt left, or begins; hashes what is there.
    pub(super) fn open(path: PathBuf, wanted: &RemoteFile, report: &mut dyn FnMut(u64)) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        let left = file.metadata()?.len();
        let mut hasher = Sha256::new();
        let bytes = match left {
            0 => 0,
            1.. if left <= wanted.bytes => hash_into(&mut file, &mut hasher, report)?,
            // Longer than the file: of no use.
            _ => {
                file.set_len(0)?;
                0
            }
        };
        Ok(Self { path, file, hasher, bytes })
    }

    /// Bytes that are here.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.file.write_all(piece)?;
        self.hasher.update(piece);
        self.bytes += piece.len() as u64;
        Ok(())
    }

    /// Forgets what is here.
    pub(super) fn restart(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.hasher = Sha256::new();
        self.bytes = 0;
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Checks size and hash.
    pub(super) fn check(&self, wanted: &RemoteFile) -> Result<(), HubError> {
        check(wanted, self.bytes, self.hasher.clone())
    }

    /// The file becomes the blob.
    pub(super) fn keep(self, blob: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        drop(self.file);
        fs::rename(self.path, blob)
    }
}

/// Checks a blob that some program left under its hash.
pub(super) fn check_blob(
    path: &Path,
    wanted: &RemoteFile,
    report: &mut dyn FnMut(u64),
) -> io::Result<Result<(), HubError>> {
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let mut hasher = Sha256::new();
    if bytes == wanted.bytes && matches!(wanted.content, Content::Sha256(_)) {
        hash_into(&mut file, &mut hasher, report)?;
    }
    Ok(check(wanted, bytes, hasher))
}

fn check(wanted: &RemoteFile, bytes: u64, hasher: Sha256) -> Result<(), HubError> {
    let mismatch = |property, expected, got| {
        Err(HubError::Mismatch { file: wanted.name.clone(), property, expected, got })
    };
    if bytes != wanted.bytes {
        return mismatch("size", format!("{} bytes", wanted.bytes), format!("{bytes} bytes"));
    }
    match &wanted.content {
        Content::Tag(_) => Ok(()),
        Content::Sha256(expected) => {
            let got = hex(&hasher.finalize());
            if got == *expected { Ok(()) } else { mismatch("SHA-256", expected.clone(), got) }
        }
    }
}
