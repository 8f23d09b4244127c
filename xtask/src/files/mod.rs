//! The house checks: rules about files that no compiler knows.

mod allowed;
mod grid;
mod licences;
mod links;
mod list;
mod open_types;
mod rules;
mod rust_text;

use std::path::Path;

use anyhow::{Context, Result, bail};

use self::allowed::Allowed;
use crate::workspace::Workspace;

/// A place that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Path below the root, with `/` between folders.
    path: String,
    /// Line, from 1; none where the whole file is meant.
    line: Option<usize>,
    /// What is wrong and what to do.
    message: String,
}

/// Every file that is, or could be, committed, as its path below `root`.
pub(crate) fn all(root: &Path) -> Result<Vec<String>> {
    list::files(root)
}

/// Checks every file that is, or could be, committed.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let survey = survey(workspace.root(), allowed::UNSAFE)?;
    eprint!("{}", survey.sizes);
    for finding in &survey.findings {
        let line = finding.line.map(|line| format!(":{line}")).unwrap_or_default();
        eprintln!("    {}{line}: {}", finding.path, finding.message);
    }
    match survey.findings.len() {
        0 => Ok(()),
        count => bail!("{count} house rules are broken (listed above)"),
    }
}

/// What the checks found below a folder.
struct Survey {
    findings: Vec<Finding>,
    /// How large the source files are, for printing.
    sizes: String,
}

fn survey(root: &Path, allowed: &[Allowed]) -> Result<Survey> {
    let mut findings = Vec::new();
    let mut sources = Vec::new();
    let mut with_unsafe = Vec::new();
    let paths = all(root)?;
    let tree = links::Tree::new(&paths);
    findings.extend(licences::copies(root, &paths)?);
    findings.extend(grid::gaps(root, &paths)?);
    for path in paths {
        let size = std::fs::metadata(root.join(&path)).with_context(|| path.clone())?.len();
        findings.extend(rules::place(&path));
        findings.extend(rules::size(&path, size));
        if rules::is_source(&path) {
            sources.push((size, path.clone()));
        }
        if path.ends_with(".rs") {
            let text = std::fs::read_to_string(root.join(&path)).with_context(|| path.clone())?;
            let report = rules::rust(&path, &text, allowed);
            findings.extend(report.findings);
            findings.extend(links::comments(&path, &text, &tree));
            findings.extend(open_types::closed(&path, &text));
            if report.has_unsafe {
                with_unsafe.push(path);
            }
        } else if path.ends_with(".md") {
            let text = std::fs::read_to_string(root.join(&path)).with_context(|| path.clone())?;
            findings.extend(links::markdown(&path, &text, &tree));
        }
    }
    findings.extend(rules::stale(&with_unsafe, allowed));
    Ok(Survey { findings, sizes: rules::sizes(&mut sources) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[Allowed] = &[
        Allowed { path: "cpu/isa/", reason: "intrinsics" },
        Allowed { path: "engine/map.rs", reason: "memory maps" },
    ];

    /// Each fault is alone in its file; the clean files come close to one.
    #[test]
    fn one_fault_of_each_kind_in_a_tree_is_found_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("clean.rs", "//! todo!() and unsafe\nfn main() { println!(\"dbg!(x)\") }\n");
        write("cpu/isa/avx512.rs", "unsafe fn f() {}\n");
        write("data.bin", &"x".repeat(1024 * 1024));
        write("target/debug/output.rs", "unsafe { todo!() }\n");
        let clean = survey(root.path(), &LIST[..1]).unwrap();
        assert_eq!(clean.findings, []);
        assert_eq!(clean.sizes, "    0 of 2 source files (0 %) are over 10 KB\n");

        write("a.md", "[a](a.md)\n[b](b.md)\n");
        write("blob.json", &"x".repeat(1024 * 1024 + 1));
        write("example.rs", "/// ```ignore\n/// ```\nfn f() {}\n");
        write("hal/src/closed.rs", "// docs/gone.md\npub enum Closed {}\n");
        write("ignored.rs", "#[test]\n#[ignore]\nfn t() {}\n");
        write("long.wgsl", &"x".repeat(31 * 1024));
        write("server/main.rs", "fn main() {\n\n    unsafe { f() }\n}\n");
        write("unfinished.rs", "fn f() { todo!() }\n");
        let found = survey(root.path(), LIST).unwrap();
        let places: Vec<_> =
            found.findings.iter().map(|finding| (finding.path.as_str(), finding.line)).collect();
        let expected = [
            ("a.md", Some(2)),
            ("blob.json", None),
            ("example.rs", Some(1)),
            ("hal/src/closed.rs", Some(1)),
            ("hal/src/closed.rs", Some(2)),
            ("ignored.rs", Some(2)),
            ("long.wgsl", None),
            ("server/main.rs", Some(3)),
            ("unfinished.rs", Some(1)),
            ("engine/map.rs", None),
        ];
        assert_eq!(places, expected);
    }
}
