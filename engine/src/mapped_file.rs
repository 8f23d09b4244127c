//! Mapping a file of weights into memory.

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;

/// Why a file was not opened or mapped.
#[derive(Debug)]
pub(crate) enum MapError {
    /// What the operating system said.
    Io(io::Error),
    /// A directory, a pipe or a device.
    NotAFile,
}

impl From<MapError> for io::Error {
    fn from(error: MapError) -> Self {
        match error {
            MapError::Io(error) => error,
            MapError::NotAFile => Self::new(io::ErrorKind::InvalidInput, "it is no regular file"),
        }
    }
}

/// Opens a regular file.
pub(crate) fn open_regular(path: &Path) -> Result<File, MapError> {
    // Asked before opening: to open a pipe waits for a writer.
    let kind = std::fs::metadata(path).map_err(MapError::Io)?;
    if !kind.is_file() {
        return Err(MapError::NotAFile);
    }
    File::open(path).map_err(MapError::Io)
}

/// Maps a regular file, to be read only. Nobody may change the file while the map lives: the public functions that call
/// this hand that on to their callers.
pub(crate) fn map(path: &Path) -> Result<Mmap, MapError> {
    let file = open_regular(path)?;
    // SAFETY: the map is private and read-only. That nobody changes the file meanwhile is asked of the caller, as no
    // operating system can promise it; all text and tables are copied out and checked when the file is opened.
    unsafe { Mmap::map(&file) }.map_err(MapError::Io)
}
