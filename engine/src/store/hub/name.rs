//! Names of models on the hub.

use std::fmt;

use super::HubError;

/// The branch that is meant where none is named.
const DEFAULT_REVISION: &str = "main";

/// A model on the hub: a repository `ORG/NAME`, which revision of it, and for GGUF repositories which file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HubModel {
    repo: String,
    revision: String,
    file: Option<String>,
}

impl HubModel {
    /// Reads `ORG/NAME` or `ORG/NAME@REVISION`; the revision is a branch, a tag or a commit, `main` if not given.
    ///
    /// # Errors
    /// [`HubError::BadName`]. Names that end in `.gguf` are taken for paths.
    pub fn parse(text: &str) -> Result<Self, HubError> {
        let bad = |reason| HubError::BadName { asked: text.to_owned(), reason };
        let (repo, revision) = text.split_once('@').unwrap_or((text, DEFAULT_REVISION));
        let (org, name) = repo.split_once('/').ok_or_else(|| bad("expected ORG/NAME"))?;
        if !(is_name(org) && is_name(name)) || repo.len() > 96 {
            return Err(bad("expected ORG/NAME: letters, digits, '-', '_' and '.', at most 96 of them"));
        }
        if name.ends_with(".gguf") {
            return Err(bad("it is the name of a file"));
        }
        if !is_plain_path(revision) || !revision.chars().all(|c| is_name_char(c) || c == '/') {
            return Err(bad("the revision behind '@' is a branch, a tag or a commit"));
        }
        Ok(Self { repo: repo.to_owned(), revision: revision.to_owned(), file: None })
    }

    /// Asks for one GGUF file of the repository.
    ///
    /// # Errors
    /// [`HubError::BadFile`] if `file` is not the path of a `.gguf` file inside a repository.
    pub fn with_file(mut self, file: &str) -> Result<Self, HubError> {
        if !is_plain_path(file) || !file.ends_with(".gguf") {
            return Err(HubError::BadFile { file: file.to_owned() });
        }
        self.file = Some(file.to_owned());
        Ok(self)
    }

    /// The repository, `ORG/NAME`.
    pub fn repo(&self) -> &str {
        &self.repo
    }

    /// The branch, tag or commit.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// The GGUF file asked for.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }
}

impl fmt::Display for HubModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.repo)?;
        if self.revision == DEFAULT_REVISION { Ok(()) } else { write!(f, "@{}", self.revision) }
    }
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// The hub's own rules: what is no file name on some system is no name there either.
fn is_name(text: &str) -> bool {
    let ends = |text: &str| text.starts_with(['-', '.']) || text.ends_with(['-', '.']);
    !text.is_empty()
        && text.chars().all(is_name_char)
        && !ends(text)
        && !text.contains("--")
        && !text.contains("..")
}

/// True for a relative path that stays in its folder, on every system.
pub(super) fn is_plain_path(text: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && !part.starts_with('.') && part.len() <= 255;
    text.len() <= 1024
        && text.split('/').all(plain)
        && !text.contains(|c: char| c.is_control() || matches!(c, '\\' | ':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_printed() {
        for text in ["org/name", "Org-1/name_2.5-Instruct", "a/b@v1.0", "a/b@refs/pr/1", "a/b@0123abcd"] {
            assert_eq!(HubModel::parse(text).unwrap().to_string(), text);
        }
        let model = HubModel::parse("a/b@main").unwrap().with_file("Q4/b.gguf").unwrap();
        assert_eq!((model.repo(), model.revision(), model.file()), ("a/b", "main", Some("Q4/b.gguf")));
        assert_eq!(model.to_string(), "a/b");
    }

    #[test]
    fn names_that_are_none() {
        let long = format!("a/{}", "b".repeat(100));
        let names = [
            "",
            "a",
            "/a",
            "a/",
            "a/b/c",
            "./a",
            "../a",
            "a/..",
            "~/a",
            "a/.b",
            "a/b-",
            "a--b/c",
            "a b/c",
            "a/b.gguf",
            "a\\b",
            "a/b@",
            "a/b@..",
            "a/b@/x",
            "a/b@x//y",
            "a/b@x/../y",
            "a/b@a b",
            "a/b@a%2f",
            "a/b@a?b",
            "é/b",
            &long,
        ];
        for name in names {
            assert!(matches!(HubModel::parse(name), Err(HubError::BadName { .. })), "{name:?}");
        }
    }

    #[test]
    fn paths_that_leave_the_folder_are_refused() {
        for path in ["b.gguf", "Q4 K M/b.gguf", "a/b/c.gguf"] {
            assert!(is_plain_path(path), "{path:?}");
        }
        for path in ["", "/b", "../b", "a/../b", "a//b", "a/", ".b", "./b", "a\\b", "C:b", "a\0b", "a\nb"] {
            assert!(!is_plain_path(path), "{path:?}");
        }
        let model = || HubModel::parse("a/b").unwrap();
        assert!(model().with_file("../b.gguf").is_err() && model().with_file("b.bin").is_err());
    }
}
