//! The rules themselves, as functions of a path and a text.

use super::Finding;
use super::allowed::Allowed;
use super::rust_text::{code_only, tokens};

const KB: u64 = 1024;
/// Most source files stay below this.
const SMALL_SOURCE: u64 = 10 * KB;
/// Every source file stays below this.
const LARGEST_SOURCE: u64 = 30 * KB;
/// Every committed file stays below this: a clone carries it for ever.
const LARGEST_BLOB: u64 = 1024 * KB;

const SOURCES: &[&str] = &["rs", "wgsl", "cu", "cuh", "c", "h", "cpp", "py", "sh"];
const UNFINISHED: &[&str] = &["todo", "unimplemented", "dbg"];

/// True for files that people write and read as code.
pub(super) fn is_source(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').is_some_and(|(stem, extension)| !stem.is_empty() && SOURCES.contains(&extension))
}

/// What programs leave behind is committed nowhere.
pub(super) fn place(path: &str) -> Option<Finding> {
    let left = path.split('/').any(|folder| folder == "target");
    let message = "build output: take it out (`git rm -r --cached`), and see .gitignore".to_owned();
    left.then(|| Finding { path: path.to_owned(), line: None, message })
}

/// Made by a tool from another file, for which the limits are: nobody reads these.
const MADE: [&str; 1] = ["backends/ascend/src/abi/bindings.rs"];

/// The limits on a file's size in bytes.
pub(super) fn size(path: &str, size: u64) -> Option<Finding> {
    let message = if size > LARGEST_BLOB {
        format!(
            "{} KB; nothing over {} KB is committed: fetch it or generate it",
            size / KB,
            LARGEST_BLOB / KB
        )
    } else if is_source(path) && size > LARGEST_SOURCE && !MADE.contains(&path) {
        format!(
            "{} KB; a source file has one idea and at most {} KB: split it",
            size / KB,
            LARGEST_SOURCE / KB
        )
    } else {
        return None;
    };
    Some(Finding { path: path.to_owned(), line: None, message })
}

/// How many source files are small, and the largest of them.
pub(super) fn sizes(sources: &mut [(u64, String)]) -> String {
    sources.sort_by(|a, b| b.cmp(a));
    let large = sources.iter().filter(|(size, _)| *size > SMALL_SOURCE).count();
    let share = 100.0 * large as f64 / sources.len().max(1) as f64;
    let mut text = format!(
        "    {large} of {} source files ({share:.0} %) are over {} KB\n",
        sources.len(),
        SMALL_SOURCE / KB
    );
    for (size, path) in sources.iter().take(large) {
        text.push_str(&format!("      {:5.1} KB  {path}\n", *size as f64 / KB as f64));
    }
    text
}

/// What one Rust file says about itself.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) findings: Vec<Finding>,
    pub(super) has_unsafe: bool,
}

/// Unfinished code, ignored tests and unlisted `unsafe` in a Rust file.
pub(super) fn rust(path: &str, text: &str, allowed: &[Allowed]) -> Report {
    let code = code_only(text);
    let tokens = tokens(&code);
    let mut report = Report::default();
    let findings = &mut report.findings;
    let mut add = |line: usize, message: String| {
        findings.push(Finding { path: path.to_owned(), line: Some(line), message });
    };
    for (index, &(line, token)) in tokens.iter().enumerate() {
        if UNFINISHED.contains(&token) && calls_a_macro(tokens.get(index + 1..).unwrap_or_default()) {
            add(line, format!("`{token}!`: finish it or take it out"));
        }
        if token == "#" && ignores_a_test(tokens.get(index + 1..).unwrap_or_default()) {
            add(line, "an ignored test proves nothing: make it run everywhere or take it out".to_owned());
        }
        // Once a file: the list is of files.
        if token == "unsafe" && !report.has_unsafe {
            report.has_unsafe = true;
            if !allowed.iter().any(|entry| covers(entry, path)) {
                add(line, "`unsafe` outside the list in xtask/src/files/allowed.rs".to_owned());
            }
        }
    }
    for (index, line) in text.lines().enumerate() {
        if ignores_an_example(line) {
            add(
                index + 1,
                "an ignored example is not compiled: use `no_run`, or `text` if it is no Rust".to_owned(),
            );
        }
    }
    report
}

/// True if the tokens after a name make it a macro call; `name != x` is none.
fn calls_a_macro(tokens: &[(usize, &str)]) -> bool {
    matches!(tokens, [(_, "!"), (_, "(" | "[" | "{"), ..])
}

/// True if the tokens after a `#` are an attribute `ignore`, or a `cfg_attr` with it inside.
fn ignores_a_test(tokens: &[(usize, &str)]) -> bool {
    let mut tokens = tokens.iter().map(|&(_, token)| token);
    if tokens.next() != Some("[") {
        return false;
    }
    match tokens.next() {
        Some("ignore") => true,
        Some("cfg_attr") => {
            // The attribute ends where its brackets balance.
            let mut depth = 1_usize;
            tokens
                .take_while(|token| {
                    match *token {
                        "[" => depth += 1,
                        "]" => depth -= 1,
                        _ => {}
                    }
                    depth > 0
                })
                .any(|token| token == "ignore")
        }
        _ => false,
    }
}

/// True for the first line of a code block in a doc comment that rustdoc would ignore.
fn ignores_an_example(line: &str) -> bool {
    let line = line.trim_start();
    let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).unwrap_or_default();
    let tags = comment.trim_start().strip_prefix("```").unwrap_or_default();
    tags.split([',', ' ']).any(|tag| tag.trim().starts_with("ignore"))
}

/// Entries of the list that no file needs any more.
pub(super) fn stale(with_unsafe: &[String], allowed: &[Allowed]) -> Vec<Finding> {
    let unused = |entry: &&Allowed| !with_unsafe.iter().any(|path| covers(entry, path));
    let finding = |entry: &Allowed| Finding {
        path: entry.path.to_owned(),
        line: None,
        message: "holds no `unsafe`: take it off the list in xtask/src/files/allowed.rs".to_owned(),
    };
    allowed.iter().filter(unused).map(finding).collect()
}

fn covers(entry: &Allowed, path: &str) -> bool {
    if entry.path.ends_with('/') { path.starts_with(entry.path) } else { path == entry.path }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[Allowed] = &[
        Allowed { path: "cpu/src/isa/", reason: "intrinsics" },
        Allowed { path: "engine/src/map.rs", reason: "memory maps" },
    ];

    fn lines(text: &str) -> Vec<usize> {
        rust("a.rs", text, LIST).findings.iter().filter_map(|finding| finding.line).collect()
    }

    #[test]
    fn build_output_is_found_in_any_folder() {
        assert!(place("target/debug/a").is_some() && place("benches/target/criterion/a.json").is_some());
        assert_eq!(place("docs/target.md"), None);
    }

    #[test]
    fn sizes_are_limited_at_the_byte() {
        assert_eq!(size("a.rs", 30 * 1024), None);
        assert!(size("a.rs", 30 * 1024 + 1).unwrap().message.contains("split it"));
        assert!(size("kernel.wgsl", 40 * 1024).is_some());
        assert_eq!(size("golden.json", 1024 * 1024), None);
        assert!(size("golden.json", 1024 * 1024 + 1).unwrap().message.contains("fetch it"));
        assert!(size("a.rs", 2 * 1024 * 1024).is_some());
        assert!(
            MADE.iter().all(|path| size(path, 40 * 1024).is_none() && size(path, 2 * 1024 * 1024).is_some())
        );
    }

    #[test]
    fn sources_are_known_by_their_extension() {
        let sources = ["a.rs", "x.y/b.cu", "c.d.py"];
        let others = ["rs", ".rs", "x.rs/a", "Cargo.lock", "a.json", "a.rs.orig"];
        assert!(sources.iter().all(|path| is_source(path)));
        assert!(!others.iter().any(|path| is_source(path)));
    }

    #[test]
    fn the_share_of_large_sources_is_told() {
        let mut sources =
            vec![(1, "s.rs".to_owned()), (10_240, "edge.rs".to_owned()), (20_480, "l.rs".to_owned())];
        assert_eq!(
            sizes(&mut sources),
            "    1 of 3 source files (33 %) are over 10 KB\n       20.0 KB  l.rs\n"
        );
        assert_eq!(sizes(&mut []), "    0 of 0 source files (0 %) are over 10 KB\n");
    }

    #[test]
    fn unfinished_code_is_found_and_words_about_it_are_not() {
        assert_eq!(
            lines("fn a() { todo!() }\nfn b() { unimplemented ! (\"x\") }\nlet c = dbg![1];"),
            [1, 2, 3]
        );
        assert!(lines("// todo!()\nlet todo = \"dbg!(x)\";\nif todo != x {}\nmy_dbg!(1);").is_empty());
    }

    #[test]
    fn ignored_tests_are_found_in_every_form() {
        assert_eq!(lines("#[ignore]\n#[ignore = \"slow\"]\n#[cfg_attr(windows, ignore)]"), [1, 2, 3]);
        assert_eq!(lines("#[cfg_attr(all(a, b),\n  ignore = \"x\")]"), [1]);
        assert!(
            lines("#[cfg_attr(windows, path = \"x\")]\nfn ignore() {}\n// #[ignore]\n#[test]").is_empty()
        );
    }

    #[test]
    fn ignored_examples_are_found() {
        assert_eq!(lines("/// ```ignore\n/// x\n/// ```\n//! ```rust,ignore\n/// ```ignore-wasm"), [1, 4, 5]);
        assert!(lines("/// ```no_run\n/// ```text\n/// ```\n/// Do not ignore ```this```").is_empty());
    }

    #[test]
    fn unsafe_stands_only_where_the_list_has_it() {
        let text = "fn f() {\n    unsafe { g() }\n}";
        assert_eq!(lines(text), [2]);
        for path in ["cpu/src/isa/avx512/gemm.rs", "engine/src/map.rs"] {
            let report = rust(path, text, LIST);
            assert!(report.findings.is_empty() && report.has_unsafe, "{path}: {report:?}");
        }
        for path in ["cpu/src/isabel.rs", "engine/src/map.rs.rs", "deep/engine/src/map.rs"] {
            assert_eq!(rust(path, text, LIST).findings.len(), 1, "{path}");
        }
        let innocent = "#![forbid(unsafe_code)]\n// unsafe\nlet s = \"unsafe\";";
        let report = rust("a.rs", innocent, LIST);
        assert!(report.findings.is_empty() && !report.has_unsafe, "{report:?}");
    }

    #[test]
    fn an_entry_that_nobody_needs_is_reported() {
        let stale = stale(&["cpu/src/isa/avx512.rs".to_owned()], LIST);
        assert_eq!(
            stale.iter().map(|finding| finding.path.as_str()).collect::<Vec<_>>(),
            ["engine/src/map.rs"]
        );
    }
}
