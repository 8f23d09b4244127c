//! Which device, and whose libraries.

use std::path::PathBuf;

/// Which device, and where CANN's libraries lie: by default the first, and where CANN's set-up says.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The device's number, from 0.
    pub device: u32,
    /// A folder of libraries, or one library that has all functions; else `ASCEND_HOME_PATH` and `ASCEND_TOOLKIT_HOME` are
    /// asked for the toolkit, and then the loader for each library by its name.
    pub library: Option<PathBuf>,
}

impl Options {
    /// The device of this number, from 0.
    #[must_use]
    pub fn device(mut self, number: u32) -> Self {
        self.device = number;
        self
    }

    /// CANN's libraries from this folder, or all of it from this one library.
    #[must_use]
    pub fn library(mut self, path: impl Into<PathBuf>) -> Self {
        self.library = Some(path.into());
        self
    }
}
