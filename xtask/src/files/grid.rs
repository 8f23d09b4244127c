//! The grid of the house: a family of operators has its file in every room and its row in every table.

use std::path::Path;

use anyhow::{Context, Result};

use super::Finding;

const FAMILIES: &str = "kernels/src/lib.rs";
const BENCHES: &str = "benches/Cargo.toml";

/// Folders with a file or a folder for each family.
const ROOMS: &[&str] =
    &["backends/cpu/src", "backends/wgpu/src", "backends/ascend/src", "tests/src", "tests/tests/faults"];

/// Files that name each family, and how: `NAME` stands for it.
const TABLES: &[(&str, &str)] = &[
    (FAMILIES, "//! | [`NAME`] |"),
    ("tests/src/families.rs", " NAME:"),
    ("ARCHITECTURE.md", " NAME"),
    ("README.md", "| `NAME`:"),
];

/// Families that lack a file or a row, and benches that cargo does not know.
pub(super) fn gaps(root: &Path, paths: &[String]) -> Result<Vec<Finding>> {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).with_context(|| path.to_owned());
    let has = |path: &str| paths.iter().any(|known| known == path);
    let mut findings = Vec::new();
    let mut gap = |path: &str, message: String| {
        findings.push(Finding { path: path.to_owned(), line: None, message });
    };
    if has(FAMILIES) {
        let library = read(FAMILIES)?;
        for family in library.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')) {
            for room in ROOMS {
                let (file, folder) = (format!("{room}/{family}.rs"), format!("{room}/{family}/"));
                if !paths.iter().any(|path| *path == file || path.starts_with(&folder)) {
                    gap(&file, format!("missing: `{family}` is a family in {FAMILIES}"));
                }
            }
            for (table, row) in TABLES {
                let row = row.replace("NAME", family);
                if !read(table)?.lines().any(|line| names(line, &row)) {
                    gap(table, format!("has no `{}`: `{family}` is a family in {FAMILIES}", row.trim()));
                }
            }
        }
    }
    if has(BENCHES) {
        let manifest = read(BENCHES)?;
        for path in paths {
            let bench =
                path.strip_prefix("benches/").filter(|name| name.ends_with(".rs") && !name.contains('/'));
            if let Some(bench) = bench
                && !manifest.contains(&format!("path = \"{bench}\""))
            {
                gap(path, format!("runs only with a `[[bench]]` of its own in {BENCHES}"));
            }
        }
    }
    Ok(findings)
}

/// Whether the row stands in a line, and not as the beginning of a longer name.
fn names(line: &str, row: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(row).any(|(at, _)| !line[at + row.len()..].starts_with(goes_on))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_family_lacks_is_found() {
        let root = tempfile::tempdir().unwrap();
        let files = [
            (
                FAMILIES,
                "//! | [`norm`] | rows |\n//! | [`rope`] | turns |\nmod check;\npub mod norm;\npub mod rope;\n",
            ),
            ("backends/cpu/src/norm.rs", ""),
            ("backends/cpu/src/rope/mod.rs", ""),
            ("backends/wgpu/src/norm.rs", ""),
            ("backends/wgpu/src/rope.rs", ""),
            ("backends/ascend/src/norm.rs", ""),
            ("backends/ascend/src/rope/mod.rs", ""),
            ("tests/src/norm.rs", ""),
            ("tests/src/rope.rs", ""),
            ("tests/src/families.rs", "            norm: edges;\n            ropes: edges;\n"),
            ("tests/tests/faults/norm.rs", ""),
            ("ARCHITECTURE.md", "| norm, ropes | `kernels/src/<name>.rs` |\n"),
            ("README.md", "| `norm`: RMS |\n| `rope`: half-split |\n"),
            (BENCHES, "path = \"norm.rs\"\n"),
            ("benches/norm.rs", ""),
            ("benches/rope.rs", ""),
            ("benches/src/lib.rs", ""),
        ];
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let paths = files.map(|(path, _)| path.to_owned());
        let found = gaps(root.path(), &paths).unwrap();
        let places: Vec<&str> = found.iter().map(|finding| finding.path.as_str()).collect();
        let expected =
            ["tests/tests/faults/rope.rs", "tests/src/families.rs", "ARCHITECTURE.md", "benches/rope.rs"];
        assert_eq!(places, expected);
        assert!(gaps(root.path(), &["other.rs".to_owned()]).unwrap().is_empty());
    }
}
