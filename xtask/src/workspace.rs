//! Where the workspace and its build output lie.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};

/// The checkout that the tasks work on.
pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

impl Workspace {
    /// Finds the workspace from what cargo tells its children; the build folder follows `CARGO_TARGET_DIR`.
    pub(crate) fn locate() -> Result<Self> {
        let manifest = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let root = manifest
            .as_deref()
            .and_then(Path::parent)
            .ok_or_else(|| anyhow!("CARGO_MANIFEST_DIR is not set: run this program as `cargo xtask`"))?
            .to_path_buf();
        // Cargo reads a relative CARGO_TARGET_DIR against the folder it was started in; so does `absolute`.
        let target = match env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => std::path::absolute(folder)?,
            None => root.join("target"),
        };
        Ok(Self { root, target })
    }

    /// The folder of the root Cargo.toml.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A folder of the build output.
    pub(crate) fn target(&self, folder: &str) -> PathBuf {
        self.target.join(folder)
    }

    /// What the tests are compared with. In the checkout whatever `CARGO_TARGET_DIR` says: tests look for it there.
    pub(crate) fn peers(&self) -> PathBuf {
        self.root.join("target").join("peers")
    }
}

/// A path as an argument of a command.
pub(crate) fn text(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| anyhow!("{} is not valid UTF-8", path.display()))
}
