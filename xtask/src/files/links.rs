//! Relative links of Markdown pages, and documents that comments name.

use std::collections::BTreeSet;

use super::Finding;

/// Every file and folder of the tree, for looking up links.
pub(super) struct Tree(BTreeSet<String>);

impl Tree {
    pub(super) fn new(paths: &[String]) -> Self {
        let mut all = BTreeSet::new();
        for path in paths {
            all.insert(path.clone());
            all.extend(path.match_indices('/').map(|(at, _)| path[..at].to_owned()));
        }
        Self(all)
    }

    fn has(&self, path: &str) -> bool {
        path.is_empty() || self.0.contains(path)
    }
}

/// Links of a Markdown page to files that are not there.
pub(super) fn markdown(path: &str, text: &str, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for target in targets(line).filter(|target| is_relative(target)) {
            let file = target.split('#').next().unwrap_or_default();
            if !resolve(path, file).is_some_and(|place| tree.has(&place)) {
                findings.push(finding(path, index, format!("links to {target}, which is not there")));
            }
        }
    }
    findings
}

/// Documents and folders that a Rust file's comments name and that are not there.
pub(super) fn comments(path: &str, text: &str, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
        for word in comment.split(|c: char| !(c.is_alphanumeric() || "-_./".contains(c))) {
            let document = word.trim_end_matches('.');
            if document.starts_with("docs/") && document.ends_with(".md") && !tree.has(document) {
                findings.push(finding(path, index, format!("names {document}, which is not there")));
            }
        }
    }
    findings
}

fn finding(path: &str, index: usize, message: String) -> Finding {
    Finding { path: path.to_owned(), line: Some(index + 1), message }
}

/// What the links of a line point to: `[text](target)` and `[name]: target`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let reference =
        line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target.trim());
    inline.chain(reference)
}

fn is_relative(target: &str) -> bool {
    !(target.contains("://") || target.starts_with('#') || target.starts_with("mailto:"))
}

/// A link's place below the root; `None` where it leads out of it.
fn resolve(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.trim_end_matches('/').split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        Tree::new(&["README.md", "docs/a.md", "docs/b.md", "kernels/src/linear.rs"].map(str::to_owned))
    }

    fn lines(findings: Vec<Finding>) -> Vec<usize> {
        findings.iter().filter_map(|finding| finding.line).collect()
    }

    #[test]
    fn links_to_nothing_are_found() {
        let page = "[a](a.md) [r](../README.md#top)\n[c](c.md) and [a](a.md)\n[x]: ../x.md\n[b]: b.md\n\
                    [out](../../x)\n[web](https://x.org/y.md) [here](#x)\n[f](../kernels/src/)";
        assert_eq!(lines(markdown("docs/a.md", page, &tree())), [2, 3, 5]);
        let code = "```\n[c](c.md)\n```\n[c](c.md)\n";
        assert_eq!(lines(markdown("docs/a.md", code, &tree())), [4], "code is no link");
    }

    #[test]
    fn documents_named_in_comments_exist() {
        let code = "//! See docs/a.md.\n    // docs/gone.md has it\nlet x = \"docs/no.md\";\n/// (docs/b.md)";
        assert_eq!(lines(comments("hal/src/lib.rs", code, &tree())), [2]);
    }
}
