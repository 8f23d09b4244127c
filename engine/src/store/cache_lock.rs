//! One process at a time fetches into a cache folder.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use super::error::StoreError;
use super::progress::Phase;

/// A lock on a cache folder. The system releases it when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct CacheLock {
    _file: File,
}

impl CacheLock {
    /// Waits until no other process holds the lock.
    pub(crate) fn acquire(folder: &Path, progress: &mut dyn FnMut(Phase)) -> Result<Self, StoreError> {
        let path = folder.join(".lock");
        let fail = |action| {
            let path = path.clone();
            move |source| StoreError::Folder { action, path, source }
        };
        let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = opened.map_err(fail("create"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                progress(Phase::WaitingForOther);
                file.lock().map_err(fail("lock"))?;
            }
            Err(TryLockError::Error(source)) => return Err(fail("lock")(source)),
        }
        Ok(Self { _file: file })
    }
}
