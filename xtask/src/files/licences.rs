//! Each published crate carries the licences in its own folder, since its tarball ends there.

use std::path::Path;

use anyhow::{Context, Result};

use super::Finding;

/// The two texts of the root.
const TEXTS: &[&str] = &["LICENSE-MIT", "LICENSE-APACHE"];

/// Copies that differ from the root's. (They are no links: a checkout on Windows would make files of those.)
pub(super) fn copies(root: &Path, paths: &[String]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for text in TEXTS {
        let copies = paths.iter().filter(|path| path.ends_with(&format!("/{text}"))).map(String::as_str);
        let mut copies = copies.peekable();
        if copies.peek().is_none() {
            continue;
        }
        let ours = std::fs::read(root.join(text)).with_context(|| (*text).to_owned())?;
        for path in copies {
            if std::fs::read(root.join(path)).with_context(|| path.to_owned())? != ours {
                let message = format!("differs from {text} of the root: copy that one");
                findings.push(Finding { path: path.to_owned(), line: None, message });
            }
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_differs_is_found() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("hal")).unwrap();
        std::fs::create_dir(root.path().join("cpu")).unwrap();
        let mut paths = Vec::new();
        for (path, text) in [("LICENSE-MIT", "MIT"), ("hal/LICENSE-MIT", "MIT"), ("cpu/LICENSE-MIT", "mit")] {
            std::fs::write(root.path().join(path), text).unwrap();
            paths.push(path.to_owned());
        }
        let found = copies(root.path(), &paths).unwrap();
        assert_eq!(
            found.iter().map(|finding| finding.path.as_str()).collect::<Vec<_>>(),
            ["cpu/LICENSE-MIT"]
        );
        assert!(copies(root.path(), &["other.rs".to_owned()]).unwrap().is_empty());
    }
}
