//! A crate outside the workspace that links the packaged tarballs, as a stranger's would.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::command::Invocation;
use crate::package::{patches, unpacked};
use crate::workspace::Workspace;

/// What whoever links the kernels must not have to build.
const UNWANTED: &[&str] = &[
    "axum",
    "cudarc",
    "halite-engine",
    "halite-server",
    "hf-hub",
    "libloading",
    "tokenizers",
    "tokio",
    "wgpu",
];
/// What its tree must hold: a tree without them was not the consumer's.
const EXPECTED: &[&str] = &["halite", "halite-cpu", "halite-hal", "halite-kernels"];

/// Builds and runs `xtask/consumer` against the unpacked tarballs, and looks at its dependency tree.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let folder = workspace.target("consumer");
    place(workspace.root(), &folder)?;
    if !unpacked(workspace).is_dir() {
        bail!("{} is missing: run the step `package` first", unpacked(workspace).display());
    }
    Invocation::cargo(&["run", "--quiet", "--target-dir", "target"])
        .run(&folder)
        .context("the consumer does not build from the tarballs, or its answers are wrong")?;
    let tree = ["tree", "--edges", "normal,build", "--target", "all", "--prefix", "none", "--format", "{p}"];
    let tree = String::from_utf8(Invocation::cargo(&tree).capture(&folder)?)?;
    let names = names(&tree);
    judge(&names)?;
    eprintln!("    {} crates in its tree: {}", names.len(), names.join(", "));
    Ok(())
}

/// Copies the consumer out of the workspace, with our lock file and the way to the tarballs.
fn place(root: &Path, folder: &Path) -> Result<()> {
    let source = root.join("xtask").join("consumer");
    let copy = |from: &Path, to: &str| -> Result<()> {
        fs::copy(from, folder.join(to)).with_context(|| from.display().to_string())?;
        Ok(())
    };
    for inner in ["src", ".cargo"] {
        fs::create_dir_all(folder.join(inner))?;
    }
    copy(&source.join("Cargo.toml"), "Cargo.toml")?;
    copy(&source.join("src").join("main.rs"), "src/main.rs")?;
    copy(&root.join("Cargo.lock"), "Cargo.lock")?;
    fs::write(
        folder.join(".cargo").join("config.toml"),
        format!("[patch.crates-io]\n{}", patches("../packaged/")),
    )?;
    Ok(())
}

/// The crates of a tree, each once, in order.
fn names(tree: &str) -> Vec<&str> {
    let mut names: Vec<&str> = tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn judge(names: &[&str]) -> Result<()> {
    let unwanted: Vec<&str> = names.iter().copied().filter(|name| UNWANTED.contains(name)).collect();
    if !unwanted.is_empty() {
        bail!("`halite` with the feature `cpu` alone brings {}", unwanted.join(", "));
    }
    match EXPECTED.iter().find(|expected| !names.contains(expected)) {
        Some(missing) => bail!("{missing} is not in the consumer's tree: {}", names.join(", ")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_unwanted_crate_in_the_tree_is_refused() {
        let good = "consumer v0.0.0 (/x)\nhalite v1.0.0\nhalite-cpu v1.0.0\nhalite-hal v1.0.0\n\
                    halite-kernels v1.0.0\nhalite-hal v1.0.0 (*)\n";
        assert_eq!(names(good).len(), 5);
        judge(&names(good)).unwrap();
        for unwanted in UNWANTED {
            let tree = format!("{good}{unwanted} v0.1.2 (*)\n");
            let error = judge(&names(&tree)).unwrap_err().to_string();
            assert!(error.ends_with(unwanted), "{error}");
        }
        let error = judge(&names("consumer v0.0.0\nhalite v1.0.0\n")).unwrap_err().to_string();
        assert!(error.starts_with("halite-cpu is not in"), "{error}");
    }
}
