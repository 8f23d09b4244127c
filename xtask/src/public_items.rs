//! Public items as rustdoc writes them for programs, in JSON.
//!
//! Stable rustdoc does so when it is told that it may. Told to cargo, that would be told to every build script too, and all
//! dependencies would be built once more; so this program stands in for rustdoc and tells it alone.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::command::Invocation;
use crate::workspace::{Workspace, text};

/// Holds rustdoc's name for the process that stands in for it.
const STANDS_IN_FOR: &str = "XTASK_STANDS_IN_FOR_RUSTDOC";
/// What rustdoc is asked for: everything that a comparison may want to know of an item.
const FLAGS: &str = "-Z unstable-options --output-format=json --document-private-items --document-hidden-items \
                     --cap-lints=allow";

/// Writes a file of JSON for each library of the checkout in `root`, into the folder that is returned. What is compiled for it
/// is shared with every other build.
pub(crate) fn write(workspace: &Workspace, root: &Path, name: &str) -> Result<PathBuf> {
    let target = workspace.target("semver").join(name);
    let rustdoc = env::var("RUSTDOC").unwrap_or_else(|_| "rustdoc".to_owned());
    let program = env::current_exe().context("the path of this program")?;
    Invocation::cargo(&["doc", "--workspace", "--lib", "--all-features", "--no-deps", "--locked", "--quiet"])
        .env("CARGO_BUILD_BUILD_DIR", text(&workspace.target(""))?)
        .env("CARGO_TARGET_DIR", text(&target)?)
        .env("RUSTDOC", text(&program)?)
        .env("RUSTDOCFLAGS", FLAGS)
        .env(STANDS_IN_FOR, rustdoc)
        .run(root)?;
    Ok(target.join("doc"))
}

/// The files of a commit, in a folder of the build output.
pub(crate) fn checkout(workspace: &Workspace, commit: &str) -> Result<PathBuf> {
    let folder = workspace.target("semver").join("baseline-sources");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let tarball = workspace.target("semver").join("baseline.tar");
    let archive = ["archive", "--format=tar", "--output", text(&tarball)?, commit];
    Invocation::new("git", &archive, "install git").capture(workspace.root())?;
    Invocation::new("tar", &["-xf", text(&tarball)?], "install tar").capture(&folder)?;
    Ok(folder)
}

/// Does rustdoc's work where this process was started in its place.
pub(crate) fn stand_in() -> Option<ExitCode> {
    let rustdoc: OsString = env::var_os(STANDS_IN_FOR)?;
    let status = Command::new(&rustdoc).args(env::args_os().skip(1)).env("RUSTC_BOOTSTRAP", "1").status();
    Some(match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {} could not be started: {error}", rustdoc.display());
            ExitCode::FAILURE
        }
    })
}
