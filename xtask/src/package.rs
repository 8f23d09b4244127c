//! The tarballs that crates.io would get: what is in them, and that they build without the repository around them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::command::Invocation;
use crate::steps::PUBLISHED;
use crate::workspace::{Workspace, text};

/// The version of every crate of the workspace, this one's too.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// What every tarball holds besides sources.
const EXPECTED: &[&str] = &["Cargo.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE"];
/// Bytes of a tarball: each is downloaded by everybody who builds it.
const LARGEST: u64 = 512 * 1024;

/// Packages all published crates, unpacks them side by side and checks each target in them.
///
/// `cargo package` would build every crate alone, its dependencies anew each time. Here one build does for all.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let folder = unpack(workspace)?;
    let manifest = fs::read_to_string(workspace.root().join("Cargo.toml"))?;
    fs::write(folder.join("Cargo.toml"), virtual_manifest(&manifest))?;
    fs::copy(workspace.root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let target = workspace.target("");
    let target = ["--target-dir", text(&target)?];
    let check = ["check", "--workspace", "--all-targets", "--all-features"];
    Invocation::cargo(&[&check[..], &target[..]].concat())
        .run(&folder)
        .context("the tarballs do not build alone: does an `include` leave out what a crate needs?")
}

/// Where the tarballs lie unpacked, one folder a crate.
pub(crate) fn unpacked(workspace: &Workspace) -> PathBuf {
    workspace.target("packaged")
}

/// The folder of one unpacked crate.
pub(crate) fn folder_of(package: &str) -> String {
    format!("{package}-{VERSION}")
}

/// Lines for `[patch.crates-io]` that lead to the unpacked tarballs, `prefix` being the way to them.
pub(crate) fn patches(prefix: &str) -> String {
    PUBLISHED
        .iter()
        .map(|package| format!("{package} = {{ path = \"{prefix}{}\" }}\n", folder_of(package)))
        .collect()
}

fn unpack(workspace: &Workspace) -> Result<PathBuf> {
    // Its warnings tell of every test that is left out on purpose: only a failure is worth reading.
    let target = workspace.target("");
    let mut arguments = vec!["package", "--no-verify", "--allow-dirty", "--target-dir", text(&target)?];
    arguments.extend(PUBLISHED.iter().flat_map(|package| ["--package", *package]));
    Invocation::cargo(&arguments).capture(workspace.root())?;
    let folder = unpacked(workspace);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(&folder)?;
    for package in PUBLISHED {
        let tarball = workspace.target("package").join(format!("{}.crate", folder_of(package)));
        let size = fs::metadata(&tarball).with_context(|| tarball.display().to_string())?.len();
        Invocation::new("tar", &["-xzf", text(&tarball)?], "install tar").capture(&folder)?;
        inspect(&folder.join(folder_of(package)), size)?;
        eprintln!("    {package} {VERSION}: {} KB packed", size / 1024);
    }
    Ok(folder)
}

/// Checks size and contents of one unpacked tarball.
fn inspect(folder: &Path, packed: u64) -> Result<()> {
    let name = folder.display();
    if packed > LARGEST {
        bail!("{name}: {packed} bytes packed, of at most {LARGEST}: narrow `include` in its Cargo.toml");
    }
    let missing: Vec<&str> = EXPECTED.iter().copied().filter(|file| !folder.join(file).is_file()).collect();
    if !missing.is_empty() {
        bail!("{name}: {} not in the tarball: see `include` in its Cargo.toml", missing.join(", "));
    }
    Ok(())
}

/// A workspace of the unpacked crates, with the profiles of ours, so that built dependencies serve both.
fn virtual_manifest(ours: &str) -> String {
    let members: String =
        PUBLISHED.iter().map(|package| format!("    \"{}\",\n", folder_of(package))).collect();
    let profiles = ours.find("[profile.").and_then(|at| ours.get(at..)).unwrap_or_default();
    let patches = patches("");
    format!(
        "[workspace]\nresolver = \"3\"\nmembers = [\n{members}]\n\n[patch.crates-io]\n{patches}\n{profiles}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tarball_without_its_licence_or_too_large_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for file in &EXPECTED[1..] {
            fs::write(folder.path().join(file), "").unwrap();
        }
        let error = inspect(folder.path(), 1).unwrap_err().to_string();
        assert!(error.contains("Cargo.toml not in the tarball"), "{error}");
        fs::write(folder.path().join("Cargo.toml"), "").unwrap();
        inspect(folder.path(), LARGEST).unwrap();
        let error = inspect(folder.path(), LARGEST + 1).unwrap_err().to_string();
        assert!(error.contains("narrow `include`"), "{error}");
    }

    #[test]
    fn the_workspace_of_the_tarballs_has_our_profiles() {
        let text = virtual_manifest("[workspace]\nmembers = []\n\n[profile.dev]\nopt-level = 2\n");
        assert!(text.ends_with("\n\n[profile.dev]\nopt-level = 2\n"), "{text}");
        assert!(text.contains(&format!("halite = {{ path = \"halite-{VERSION}\" }}\n")), "{text}");
        assert_eq!(text.matches("halite-engine").count(), 3, "member, name and path of the patch: {text}");
    }
}
