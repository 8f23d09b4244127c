//! Keeping weights as they are converted.

use super::checksum::checksum;
use super::stale::PART;
use super::table::{ALIGNMENT, Key, Section, Table, head, written};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Tells writers of one process apart.
static WRITERS: AtomicU64 = AtomicU64::new(0);

/// A file of weights in the making, under a name of its own until it is whole. Dropped before that, it is removed.
pub(crate) struct WeightsWriter {
    /// The name it will have.
    path: PathBuf,
    part: Part,
    at: u64,
    table: Table,
}

/// A file that is removed when it is dropped. Its lock says that somebody still writes it.
struct Part {
    path: PathBuf,
    file: File,
}

impl Part {
    /// A file that nobody else writes or removes: processes of other containers may have this one's number.
    fn create(path: &Path) -> io::Result<Self> {
        loop {
            let number = WRITERS.fetch_add(1, Ordering::Relaxed);
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(format!(".{}-{number}{PART}", std::process::id()));
            let path = path.with_file_name(name);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    let part = Self { path, file };
                    if part.is_ours() {
                        return Ok(part);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Locks a part that was just made. Before it is locked, another start may take it for one that was left: then that one
    /// has the lock, or had it and the part is gone.
    fn is_ours(&self) -> bool {
        match self.file.try_lock() {
            Ok(()) => self.path.exists(),
            Err(TryLockError::WouldBlock) => false,
            // Where locks are not to be had, nobody can tell that a part was left, and it stays.
            Err(TryLockError::Error(_)) => true,
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Renamed, it is not there any more.
        _ = fs::remove_file(&self.path);
    }
}

impl WeightsWriter {
    pub(super) fn create(path: PathBuf, key: Key) -> io::Result<Self> {
        // Now rather than when all is written: a path that JSON does not hold.
        serde_json::to_vec(&key)?;
        let mut part = Part::create(&path)?;
        part.file.write_all(&head())?;
        Ok(Self { path, part, at: ALIGNMENT, table: Table { key, sections: Vec::new() } })
    }

    /// Appends a section.
    pub(crate) fn push(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let start = self.at.next_multiple_of(ALIGNMENT);
        let gap = [0; ALIGNMENT as usize];
        self.part.file.write_all(gap.get(..(start - self.at) as usize).unwrap_or_default())?;
        self.part.file.write_all(bytes)?;
        self.at = start + bytes.len() as u64;
        let (name, checksum) = (name.to_owned(), written(checksum(bytes)));
        self.table.sections.push(Section { name, start, bytes: bytes.len() as u64, checksum });
        Ok(())
    }

    /// Bytes written so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.at
    }

    /// Brings everything to the disk and gives it its name, over an older one.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.part.file.write_all(&self.table.bytes()?)?;
        // Without it the name could survive a power cut and the bytes not. (They would be noticed, but of no use.)
        self.part.file.sync_all()?;
        fs::rename(&self.part.path, &self.path)?;
        // The name, too. Where folders cannot be synchronised, the name is lost at worst, and weights are converted again.
        if let Some(Ok(folder)) = self.path.parent().map(File::open) {
            _ = folder.sync_all();
        }
        Ok(())
    }

    /// The file that it will be.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
