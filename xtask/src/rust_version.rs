//! `rust-version`: one for all crates, and the one that is tested.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::command::Invocation;
use crate::files;
use crate::workspace::Workspace;

/// Checks that no manifest names a version of its own, and that this toolchain is the promised one.
///
/// A later toolchain proves less: only clippy's `incompatible_msrv` then holds the promise. Where `CI=true` that is
/// an error.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let root = workspace.root();
    let promised = promised(&std::fs::read_to_string(root.join("Cargo.toml"))?)?;
    let is_manifest = |path: &String| path == "Cargo.toml" || path.ends_with("/Cargo.toml");
    for path in files::all(root)?.into_iter().filter(is_manifest) {
        let text = std::fs::read_to_string(root.join(&path)).with_context(|| path.clone())?;
        same(&path, &text, &promised)?;
    }
    says(root, "README.md", &promised)?;
    let rustc = Invocation::new("rustc", &["--version"], "install Rust from https://rustup.rs");
    let version = rustc.capture_line(root)?;
    eprintln!("    rust-version {promised}; {version}");
    if !is(&version, &promised) {
        let told =
            format!("rust-version is {promised}, and this is {version}: the promise is not tested here");
        if std::env::var("CI").is_ok_and(|value| value == "true") {
            bail!("{told}; run with that toolchain, or raise rust-version in Cargo.toml and README.md");
        }
        eprintln!("    {told} (an error where CI=true)");
    }
    Ok(())
}

/// The version in the workspace's manifest.
fn promised(manifest: &str) -> Result<String> {
    let value = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    value
        .map(|value| value.trim().trim_matches('"').to_owned())
        .context("Cargo.toml names no rust-version in [workspace.package]")
}

/// A crate takes the workspace's version; one outside of it names the same.
fn same(path: &str, manifest: &str, promised: &str) -> Result<()> {
    let own = format!("rust-version = \"{promised}\"");
    let package = manifest.lines().any(|line| line.trim() == "[package]");
    let held =
        manifest.lines().any(|line| line.trim() == "rust-version.workspace = true" || line.trim() == own);
    if package && !held {
        bail!("{path}: expected `rust-version.workspace = true`, or `{own}`")
    } else {
        Ok(())
    }
}

fn says(root: &Path, file: &str, promised: &str) -> Result<()> {
    let words = format!("Rust {promised}");
    let text = std::fs::read_to_string(root.join(file)).with_context(|| file.to_owned())?;
    if text.contains(&words) { Ok(()) } else { bail!("{file} does not say that {words} is needed") }
}

/// True if a line such as `rustc 1.95.0 (...)` is of this version.
fn is(line: &str, promised: &str) -> bool {
    let version = line.split_whitespace().nth(1).unwrap_or_default();
    version.strip_prefix(promised).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_in_one_manifest_is_found() {
        let workspace = "[workspace.package]\nedition = \"2024\"\nrust-version = \"1.95\"\n";
        assert_eq!(promised(workspace).unwrap(), "1.95");
        for good in ["rust-version.workspace = true", "rust-version = \"1.95\""] {
            same("a/Cargo.toml", &format!("[package]\n{good}\n"), "1.95").unwrap();
        }
        same("Cargo.toml", workspace, "1.95").unwrap();
        for bad in ["", "rust-version = \"1.96\"", "# rust-version.workspace = true"] {
            let error = same("a/Cargo.toml", &format!("[package]\n{bad}\n"), "1.95").unwrap_err();
            assert!(error.to_string().starts_with("a/Cargo.toml: expected"), "{error}");
        }
    }

    #[test]
    fn a_toolchain_is_known_by_its_minor_version() {
        assert!(is("rustc 1.95.0 (59807616e 2026-04-14)", "1.95"));
        assert!(is("rustc 1.95.1", "1.95"));
        for other in ["rustc 1.96.0", "rustc 1.9.5", "rustc 1.950.0", ""] {
            assert!(!is(other, "1.95"), "{other}");
        }
    }
}
