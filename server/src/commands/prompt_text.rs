//! A text from the command line, from standard input or from a file.

use anyhow::{Context, bail};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Longer texts fit no context, and would only fill the memory.
const LONGEST: usize = 16 << 20;

/// The words joined by spaces, or standard input for a dash. `what` names the text in errors.
pub(crate) fn of_words(words: &[String], what: &str) -> anyhow::Result<String> {
    match words {
        [dash] if dash == "-" => read(std::io::stdin().lock(), &format!("{what} on standard input")),
        words => checked(words.join(" "), what),
    }
}

/// A file's text.
pub(crate) fn of_file(path: &Path, what: &str) -> anyhow::Result<String> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    read(file, &format!("{what} in {}", path.display()))
}

fn read(input: impl Read, what: &str) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    input.take(LONGEST as u64 + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {what}"))?;
    let text = String::from_utf8(bytes).with_context(|| format!("{what} is not UTF-8"))?;
    checked(text, what)
}

fn checked(text: String, what: &str) -> anyhow::Result<String> {
    if text.is_empty() {
        bail!("{what} is empty");
    }
    if text.len() > LONGEST {
        bail!("{what} has more than {LONGEST} bytes");
    }
    Ok(text)
}
