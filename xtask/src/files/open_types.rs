//! Public types that may grow: enums, and structs whose fields are all public, are `#[non_exhaustive]`.

use super::Finding;
use super::rust_text::{code_only, tokens};

/// The crates that people link.
const LIBRARIES: &[&str] =
    &["hal/src/", "kernels/src/", "backends/", "sim/", "halite/src/", "engine/src/", "tests/src/"];

/// Structs that callers write as literals, by name, and why they may not grow unseen. All that end in `Args` are too.
const LITERALS: &[(&str, &str)] = &[
    ("AttentionCapacity", "every limit is the caller's decision"),
    ("AttentionPart", "part of the arguments of a call"),
    ("AttentionState", "part of the arguments of a call"),
    ("AttentionStep", "arguments of a step"),
    ("BlockCopies", "arguments of a call"),
    ("BlockExport", "arguments of a call"),
    ("BlockImport", "arguments of a call"),
    ("BlockTransfer", "arguments of a call"),
    ("Epilogue", "part of the arguments of a call, with a default"),
    ("LaunchShape", "arguments of a launch"),
    ("LogitsStep", "arguments of a step"),
    ("MlaWeights", "arguments of packing"),
    ("LoraAdapter", "part of the arguments of a call"),
    ("LoraStep", "arguments of a step"),
    ("PoolingStep", "arguments of a step"),
    ("Positions", "arguments of a step"),
    ("Predicate", "an index"),
    ("Register", "an index"),
    ("SamplingStep", "arguments of a step"),
    ("SlotMapping", "arguments of a step"),
    ("SequencePart", "arguments of a step"),
    ("CosSin", "arguments of a step"),
    ("VerifyStep", "arguments of a step"),
    ("KnownFile", "a file's identity"),
    ("WheelMember", "a file's place"),
    ("Bound", "a value and its error"),
    ("Fault", "a text"),
    ("Test", "written by `parity_tests!` in other crates"),
    ("Adapter", "arguments of the oracle"),
    ("After", "arguments of the oracle"),
    ("Blocks", "arguments of the oracle"),
    ("Drafted", "arguments of the oracle"),
    ("Int8", "arguments of the oracle"),
    ("Integers", "arguments of the oracle"),
    ("Known", "arguments of the oracle"),
    ("Layer", "arguments of the oracle"),
    ("Network", "arguments of the oracle"),
    ("Outliers", "arguments of the oracle"),
    ("Partial", "a state of the oracle"),
    ("RowMemory", "made and taken apart by backends: floats, or integers"),
    ("RowScales", "arguments of the oracle"),
    ("Sequence", "arguments of the oracle"),
    ("Sorted", "an answer of the oracle"),
    ("State", "a state of the oracle"),
    ("Weights", "arguments of the oracle"),
];

/// Types of a Rust file that nobody could add to without breaking callers.
pub(super) fn closed(path: &str, text: &str) -> Vec<Finding> {
    if !LIBRARIES.iter().any(|library| path.starts_with(library)) || !path.contains("/src/") {
        return Vec::new();
    }
    let code = code_only(text);
    let tokens = tokens(&code);
    let words: Vec<&str> = tokens.iter().map(|&(_, word)| word).collect();
    let mut findings = Vec::new();
    let mut open = false;
    for (index, window) in words.windows(3).enumerate() {
        match window {
            ["[", "non_exhaustive", "]"] => open = true,
            ["pub", kind @ ("enum" | "struct"), name] => {
                let body = words.get(index + 3..).unwrap_or_default();
                let grows = *kind == "enum" || all_public(body);
                if grows && !open && !literal(name) {
                    let line = tokens.get(index).map(|&(line, _)| line);
                    let message = format!(
                        "`{name}` cannot grow: make it `#[non_exhaustive]` and give it a constructor, or list it with \
                         its reason in xtask/src/files/open_types.rs"
                    );
                    findings.push(Finding { path: path.to_owned(), line, message });
                }
                open = false;
            }
            [";" | "}", ..] => open = false,
            _ => {}
        }
    }
    findings
}

fn literal(name: &str) -> bool {
    name.ends_with("Args") || LITERALS.iter().any(|(known, _)| *known == name)
}

/// True if a struct whose name was just read has no private field: callers can write it as a literal.
fn all_public(after_name: &[&str]) -> bool {
    let Some(body) = fields_of(after_name) else { return true };
    let (mut depth, mut fresh, mut fields) = (0_usize, false, 0);
    let mut words = body.iter().peekable();
    while let Some(word) = words.next() {
        match *word {
            "{" | "(" | "[" | "<" => {
                depth += 1;
                fresh = depth == 1;
            }
            // The arrow of a function type closes nothing.
            "-" if words.peek() == Some(&&">") => drop(words.next()),
            "}" | ")" | "]" | ">" => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
            "," if depth == 1 => fresh = true,
            "#" => {}
            // A field begins: what restricts it (`pub(crate)`), or leaves it private, is not public.
            word if depth == 1 && fresh => {
                if word != "pub" || words.peek() == Some(&&"(") {
                    return false;
                }
                (fresh, fields) = (false, fields + 1);
            }
            _ => {}
        }
    }
    fields > 0
}

/// A struct's words from the bracket round its fields on, its type parameters skipped; `None` where it has no fields.
fn fields_of<'a>(after_name: &'a [&'a str]) -> Option<&'a [&'a str]> {
    let (mut depth, mut bounds) = (0_usize, false);
    for (index, &word) in after_name.iter().enumerate() {
        let arrow = index > 0 && after_name.get(index - 1) == Some(&"-");
        match word {
            "<" => depth += 1,
            ">" if !arrow => depth = depth.saturating_sub(1),
            "where" => bounds = true,
            "{" if depth == 0 => return after_name.get(index..),
            "(" if depth == 0 && !bounds => return after_name.get(index..),
            ";" if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let name = |finding: Finding| finding.message.split('`').nth(1).unwrap_or_default().to_owned();
        closed("hal/src/a.rs", text).into_iter().map(name).collect()
    }

    #[test]
    fn types_that_cannot_grow_are_found() {
        assert_eq!(names("pub enum A { B }"), ["A"]);
        assert_eq!(
            names("pub struct A { pub b: u8 }\npub struct C(pub u8);\npub struct D;"),
            ["A", "C", "D"]
        );
        assert_eq!(
            names("pub struct A<'a, T: Fn(u8) -> u8> {\n /// x\n #[b(c)] pub d: &'a [T], pub e: F<G, H> }"),
            ["A"]
        );
        assert_eq!(names("pub struct A<F> where F: Fn(u8) { pub f: F }"), ["A"]);
        let two = "#[non_exhaustive]\npub enum A { B }\npub enum C { D }";
        assert_eq!(names(two), ["C"], "an attribute holds for one item");
    }

    #[test]
    fn types_that_can_grow_and_private_ones_are_not() {
        for fine in [
            "#[derive(Debug)]\n#[non_exhaustive]\n#[repr(u8)]\npub enum A { B }",
            "#[non_exhaustive]\npub struct A { pub b: u8 }",
            "pub struct A { pub b: u8, c: Vec<(u8, u8)> }",
            "pub struct A { pub(crate) b: u8 }",
            "pub struct A(u8);",
            "pub struct A<F: Fn() -> u8>(F);",
            "pub(crate) enum A { B }",
            "enum A { B }",
            "pub struct LinearArgs { pub x: u8 }",
            "pub struct Epilogue { pub x: u8 }",
            "// pub enum A { B }\nlet s = \"pub enum A\";",
        ] {
            assert!(names(fine).is_empty(), "{fine}");
        }
        assert!(closed("server/src/a.rs", "pub enum A { B }").is_empty(), "a program, not a library");
        assert!(closed("tests/tests/a.rs", "pub enum A { B }").is_empty());
    }

    #[test]
    fn every_exception_has_its_reason() {
        assert!(LITERALS.iter().all(|(_, reason)| !reason.is_empty()));
    }
}
