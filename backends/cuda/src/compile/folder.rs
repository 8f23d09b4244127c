//! Machine code in files. A file is whole or it does not count.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use sha2::{Digest, Sha256};

/// A file is 8 bytes that say what it is, the code's length, its SHA-256, and the code: drivers need not survive half of it.
const MAGIC: &[u8; 8] = b"halitemc";
/// What unfinished files of one process are told apart by.
static WRITES: AtomicU64 = AtomicU64::new(0);

/// A folder of machine code.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Folder { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The code of this name; `None` where there is no file, or where anything is wrong with it.
    pub(super) fn read(&self, name: &str) -> Option<Vec<u8>> {
        let bytes = fs::read(self.path.join(name)).ok()?;
        let (magic, rest) = bytes.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first_chunk::<8>()?;
        let (sum, code) = rest.split_first_chunk::<32>()?;
        let whole = u64::from_le_bytes(*length) == code.len() as u64 && Sha256::digest(code)[..] == sum[..];
        (magic == MAGIC && whole).then(|| code.to_vec())
    }

    /// Writes a file, whole or not at all, and makes the folder where there is none.
    pub(super) fn write(&self, name: &str, code: &[u8]) -> io::Result<()> {
        let length = (code.len() as u64).to_le_bytes();
        let bytes = [&MAGIC[..], &length, &Sha256::digest(code), code].concat();
        // Threads and processes may write the same file at once: each has its own unfinished one.
        let number = WRITES.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.path.join(format!("{name}.{}-{number}", std::process::id()));
        let written = fs::create_dir_all(&self.path)
            .and_then(|()| fs::write(&unfinished, bytes))
            .and_then(|()| fs::rename(&unfinished, self.path.join(name)));
        if written.is_err() {
            // It may not even have begun.
            let _ = fs::remove_file(&unfinished);
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_damaged() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::new(root.path().join("made/when/needed"));
        assert_eq!(folder.read("a"), None);
        folder.write("a", b"machine code").unwrap();
        assert_eq!(folder.read("a").unwrap(), b"machine code");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no unfinished file");

        let file = folder.path().join("a");
        let whole = fs::read(&file).unwrap();
        let flipped_at = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            bytes
        };
        let longer = [&whole[..], &[0]].concat();
        let shorter = whole[..whole.len() - 1].to_vec();
        let flips = (0..whole.len()).map(flipped_at);
        for damaged in flips.chain([longer, shorter, whole[..20].to_vec(), Vec::new()]) {
            fs::write(&file, &damaged).unwrap();
            assert_eq!(folder.read("a"), None, "{damaged:?}");
        }
        folder.write("a", b"other code").unwrap();
        assert_eq!(folder.read("a").unwrap(), b"other code");
    }

    #[test]
    fn a_folder_that_cannot_be_is_an_error_and_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let below_a_file = root.path().join("file");
        fs::write(&below_a_file, "no folder").unwrap();
        let folder = Folder::new(below_a_file.join("cache"));
        assert!(folder.write("a", b"code").is_err());
        assert_eq!(folder.read("a"), None);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }
}
