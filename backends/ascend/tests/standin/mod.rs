//! The stand-in for CANN, which cargo builds beside the tests because they depend on it.

use std::{
    env::{consts, current_exe},
    path::PathBuf,
};

use halite_ascend::{Ascend, Options};
use halite_hal::Result;

/// Where its library lies: beside this program.
pub(crate) fn library() -> PathBuf {
    let file = format!("{}halite_cann{}", consts::DLL_PREFIX, consts::DLL_SUFFIX);
    current_exe().unwrap_or_default().with_file_name(file)
}

/// A device of its own.
pub(crate) fn device() -> Result<Ascend> {
    Ascend::new(Options::default().library(library()))
}
