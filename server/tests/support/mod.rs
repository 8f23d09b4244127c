//! What the tests of the program share.
#![allow(dead_code, reason = "each test binary uses its own part of it")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests: outside of test functions too"
)]

#[path = "../../../engine/tests/support/tiny_model.rs"]
pub(crate) mod tiny_model;

pub(crate) mod http;
pub(crate) mod serving;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;
use tiny_model::{TinyModel, VOCABULARY, Value};

/// The context of [`model`].
pub(crate) const CONTEXT: u32 = 256;

/// What a run of the program came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        let outcome =
            Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) };
        // Whatever happens: nobody wants to read Rust's own words for it, or bars in a file.
        for word in ["panicked", "RUST_BACKTRACE", "\u{1b}", "\r", "Error {", "Err("] {
            assert!(!outcome.stderr.contains(word), "{word:?} in {outcome:?}");
        }
        outcome
    }

    /// It went well: what it wrote to standard output.
    pub(crate) fn success(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// It went well, and said all of `parts` on standard error.
    pub(crate) fn said(self, parts: &[&str]) -> String {
        parts.iter().for_each(|part| assert!(self.stderr.contains(part), "{self:?} should say {part:?}"));
        self.success()
    }

    /// It failed with an error that names all of `parts`, and wrote no result.
    pub(crate) fn failure(self, parts: &[&str]) {
        assert_eq!(self.code, Some(1), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        let stderr = format!("\n{}", self.stderr);
        let (_, error) = stderr.split_once("\nerror: ").unwrap_or_else(|| panic!("no error in {self:?}"));
        parts.iter().for_each(|part| assert!(error.contains(part), "{error:?} should name {part:?}"));
    }

    /// The arguments were refused with a text that names all of `parts`.
    pub(crate) fn usage(self, parts: &[&str]) {
        assert_eq!(self.code, Some(2), "{self:?}");
        parts.iter().for_each(|part| assert!(self.stderr.contains(part), "{self:?} should name {part:?}"));
    }
}

/// A place of its own for a test, with a model that no other has.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file and returns its path.
    pub(crate) fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, contents).unwrap();
        shown(&path)
    }

    /// A tiny model whose answers never end by themselves; its text is of the characters `!` to `b`.
    pub(crate) fn model(&self) -> String {
        self.file("tiny.gguf", model().bytes())
    }

    /// A copy of a model folder among the engine's fixtures, with another `config.json` if `edit` makes one of it.
    pub(crate) fn folder(
        &self,
        name: &str,
        fixture: &str,
        edit: impl FnOnce(&mut serde_json::Value),
    ) -> String {
        let (from, to) = (fixture_folder(fixture), self.path(name));
        std::fs::create_dir(&to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
        let path = to.join("config.json");
        let mut config = json(&std::fs::read_to_string(&path).unwrap());
        edit(&mut config);
        std::fs::write(path, config.to_string()).unwrap();
        shown(&to)
    }

    /// The program, with an empty cache and nothing that could fetch a model.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("halite"));
        command.args(arguments).env_remove("RUST_LOG");
        command.env("HALITE_CACHE", self.path("cache")).env("PATH", self.path("no-programs"));
        // No hub but one that a test brings: nobody listens there.
        ["HF_TOKEN", "HF_HUB_CACHE", "HF_HUB_OFFLINE"].iter().for_each(|name| _ = command.env_remove(name));
        command.env("HF_HOME", self.path("huggingface")).env("HF_ENDPOINT", "http://127.0.0.1:1");
        command.current_dir(self.folder.path());
        command
    }

    pub(crate) fn halite(&self, arguments: &[&str]) -> Outcome {
        Outcome::of(self.command(arguments).output().unwrap())
    }
}

/// The program as the person who runs the tests has it: their own cache.
pub(crate) fn halite(arguments: &[&str]) -> Outcome {
    Outcome::of(halite_command(arguments).output().unwrap())
}

/// As [`halite`], not run yet.
pub(crate) fn halite_command(arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("halite"));
    command.args(arguments).env_remove("RUST_LOG");
    command
}

/// As [`model`], with a context in which an answer takes its time. Greedy answers never end: drawn ones may.
pub(crate) fn endless() -> TinyModel {
    let mut model = model();
    model.set("llama.context_length", Value::U32(1 << 20));
    model
}

/// See [`Place::model`].
pub(crate) fn model() -> TinyModel {
    let mut model = TinyModel::new(1);
    // The end token's logit is 0 then; another one's is above in practice.
    let table = model.tensors.get_mut("token_embd.weight").unwrap();
    let row = table.shape[1];
    table.values[(VOCABULARY - 1) * row..].fill(0.0);
    model.set("llama.context_length", Value::U32(CONTEXT));
    let template = "{% for message in messages %}{{ message.content }}!{% endfor %}";
    model.set("tokenizer.chat_template", Value::Str(template.to_owned()));
    model
}

/// A model folder among the engine's fixtures.
pub(crate) fn fixture_folder(name: &str) -> String {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("engine");
    shown(&engine.join("tests/fixtures/models").join(name))
}

pub(crate) fn shown(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// Parses what `--json` wrote.
pub(crate) fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
