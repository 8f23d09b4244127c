//! Which device, and where compiled kernels lie.

use std::path::PathBuf;

#[cfg(feature = "interpreter")]
use crate::driver::Interpreter;

/// Which driver and device, and where compiled kernels are kept: by default the first GPU, and nowhere.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// What runs kernels.
    pub driver: Driver,
    /// The folder in which compiled kernels are kept for later processes.
    pub cache: Option<PathBuf>,
    /// A folder of kernels that were compiled elsewhere, so that no NVRTC is needed.
    pub precompiled: Option<PathBuf>,
}

/// What runs kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Driver {
    /// A GPU, by its number from 0.
    Hardware(u32),
    /// The interpreter of PTX: no GPU at all.
    #[cfg(feature = "interpreter")]
    Interpreter(Interpreter),
}

impl Default for Driver {
    fn default() -> Self {
        Driver::Hardware(0)
    }
}

impl Options {
    /// The GPU of this number, from 0.
    #[must_use]
    pub fn device(mut self, number: u32) -> Self {
        self.driver = Driver::Hardware(number);
        self
    }

    /// The interpreter in the place of a GPU.
    #[cfg(feature = "interpreter")]
    #[must_use]
    pub fn interpreter(mut self, interpreter: Interpreter) -> Self {
        self.driver = Driver::Interpreter(interpreter);
        self
    }

    /// Compiled kernels kept in this folder.
    #[must_use]
    pub fn cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache = Some(folder.into());
        self
    }

    /// Kernels from a folder that [`compile::precompile`](crate::compile::precompile) made.
    #[must_use]
    pub fn precompiled(mut self, folder: impl Into<PathBuf>) -> Self {
        self.precompiled = Some(folder.into());
        self
    }

    /// Where the compiler looks.
    pub(crate) fn compiler(&self) -> crate::compile::Options {
        let mut options = crate::compile::Options::default();
        if let Some(folder) = &self.cache {
            options = options.cache(folder);
        }
        if let Some(folder) = &self.precompiled {
            options = options.precompiled(folder);
        }
        options
    }
}
