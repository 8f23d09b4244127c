//! The CUDA backend's tests. They need NVIDIA's compiler, which comes as Python packages into `target/cuda`, and no GPU.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::compiled::{self, Executable, Kind};
use crate::peers::{digest, environment, interpreter, piece};
use crate::runner::every;
use crate::workspace::{Workspace, text};

/// The folder with the list of what the tests need.
const REQUIREMENTS: &str = "backends/cuda/tests";
/// Tells the loader of libraries where NVRTC lies; the tests look for its tools beside it.
const LIBRARY_PATH: &str = if cfg!(windows) { "PATH" } else { "LD_LIBRARY_PATH" };

/// Installs the compiler where it is not there.
pub(crate) fn compiler(workspace: &Workspace) -> Result<()> {
    let sources = workspace.root().join(REQUIREMENTS);
    let python = python(workspace);
    piece(&python, &digest(&sources.join("requirements.txt"))?, || {
        environment(workspace.root(), &sources, &python)
    })?;
    // Whether it lies where the tests will look.
    eprintln!("    {LIBRARY_PATH}={}", libraries(workspace)?);
    Ok(())
}

/// The tests, with the compiler in the library path.
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    let libraries = libraries(workspace)?;
    let mut tests = compiled::all(workspace, Kind::Test)?;
    tests.retain(is_one);
    // With CI=true, nothing passes for want of a compiler.
    let environment = [(LIBRARY_PATH, libraries.as_str()), ("CI", "true")];
    every(tests.iter().map(|test| test.run(&[], &environment)))
}

/// Whether tests need the compiler: those of the backend, and those named after it, in which it is judged (`halite-parity`)
/// and the program uses it (`halite-server`).
pub(crate) fn is_one(tests: &Executable) -> bool {
    tests.package == "halite-cuda" || tests.name == "cuda"
}

/// The folder of NVRTC's library, with what stood in the library path before.
fn libraries(workspace: &Workspace) -> Result<String> {
    let script = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let packages = interpreter(&python(workspace), &["-c", script])?.capture_line(workspace.root())?;
    let folders = PathBuf::from(packages).join("nvidia");
    let library = |folder: &PathBuf| {
        let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.file_name());
        names.into_iter().any(|name| name.to_string_lossy().contains("nvrtc"))
    };
    let toolkits = fs::read_dir(&folders).with_context(|| folders.display().to_string())?;
    let parts = toolkits.flatten().flat_map(|toolkit| ["lib", "bin"].map(|part| toolkit.path().join(part)));
    let Some(found) = parts.into_iter().find(library) else {
        bail!("no folder of {} has NVRTC's library", folders.display());
    };
    let before = std::env::var_os(LIBRARY_PATH).unwrap_or_default();
    let all = std::env::join_paths(std::iter::once(found).chain(std::env::split_paths(&before)))?;
    Ok(text(all.as_ref())?.to_owned())
}

fn python(workspace: &Workspace) -> PathBuf {
    workspace.root().join("target").join("cuda").join("python")
}
