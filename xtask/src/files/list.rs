//! Which files the checks look at.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};

use crate::command::Invocation;

/// Folders that hold no source, for checkouts without git.
const BUILD_OUTPUT: &[&str] = &["target", ".git", ".cache"];

/// Paths below `root`, sorted, `/` between folders: what git tracks or would add, else every file.
pub(super) fn files(root: &Path) -> Result<Vec<String>> {
    let mut paths = match git(root) {
        Ok(paths) => paths,
        Err(error) => {
            eprintln!("    git cannot list the files ({error:#}); looking at all of them");
            let mut paths = Vec::new();
            walk(root, "", &mut paths)?;
            paths
        }
    };
    paths.sort();
    paths.dedup();
    Ok(paths)
}

fn git(root: &Path) -> Result<Vec<String>> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Invocation::new("git", &arguments, "install git").capture(root)?;
    let listed = String::from_utf8(output).context("a file's name is not valid UTF-8")?;
    let mut paths = Vec::new();
    for path in listed.split('\0').filter(|path| !path.is_empty()) {
        match std::fs::symlink_metadata(root.join(path)) {
            Ok(entry) if entry.is_file() => paths.push(path.to_owned()),
            Ok(_) => {}
            // Still in git's index, deleted in the working tree.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| path.to_owned()),
        }
    }
    Ok(paths)
}

fn walk(folder: &Path, prefix: &str, paths: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type()?;
        if kind.is_file() {
            paths.push(format!("{prefix}{name}"));
        } else if kind.is_dir() && !BUILD_OUTPUT.contains(&name.as_str()) {
            walk(&entry.path(), &format!("{prefix}{name}/"), paths)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_git_every_file_outside_the_build_output_is_seen() {
        let root = tempfile::tempdir().unwrap();
        for path in ["a.rs", "deep/er/b.rs", "deep/target/c.rs", "target/debug/d.rs", ".git/config"] {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        assert_eq!(files(root.path()).unwrap(), ["a.rs", "deep/er/b.rs"]);
    }

    #[test]
    fn with_git_new_files_count_and_ignored_or_deleted_ones_do_not() {
        let root = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| Invocation::new("git", arguments, "install git").capture(root.path());
        git(&["init"]).unwrap();
        for (name, text) in [(".gitignore", "ignored.rs\n"), ("tracked.rs", ""), ("gone.rs", "")] {
            std::fs::write(root.path().join(name), text).unwrap();
        }
        git(&["add", "."]).unwrap();
        std::fs::remove_file(root.path().join("gone.rs")).unwrap();
        std::fs::write(root.path().join("ignored.rs"), "").unwrap();
        std::fs::write(root.path().join("new.rs"), "").unwrap();
        assert_eq!(files(root.path()).unwrap(), [".gitignore", "new.rs", "tracked.rs"]);
    }
}
