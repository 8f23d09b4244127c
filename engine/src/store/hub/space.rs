//! Room on the disk.

use std::path::Path;

/// Bytes that are free in a folder, where the system says so cheaply.
#[cfg(unix)]
pub(super) fn free_bytes(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    found.f_bavail.checked_mul(found.f_frsize)
}

/// Bytes that are free in a folder, where the system says so cheaply.
#[cfg(not(unix))]
pub(super) fn free_bytes(_folder: &Path) -> Option<u64> {
    None
}
