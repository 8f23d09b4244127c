//! Standard output, which carries results and nothing else.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};

/// Whoever read standard output has gone: there is nothing left to do, and nothing is wrong.
#[derive(Debug)]
pub(crate) struct ReaderGone;

impl std::fmt::Display for ReaderGone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("standard output was closed")
    }
}

impl std::error::Error for ReaderGone {}

/// Writes `text`, at once.
pub(crate) fn write(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(ReaderGone.into()),
        Err(error) => Err(anyhow::Error::from(error).context("cannot write to standard output")),
    }
}

/// Writes a value as JSON, in several lines.
pub(crate) fn write_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    write(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// Writes what a model said. On a terminal, control characters that it might steer the terminal with become U+FFFD.
pub(crate) fn write_answer(text: &str) -> anyhow::Result<()> {
    write(&if std::io::stdout().is_terminal() { harmless(text) } else { text.into() })
}

/// `text` without what a terminal would take for commands.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if text.contains(harmful) { text.replace(harmful, "\u{FFFD}").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_do_not_reach_a_terminal() {
        assert_eq!(harmless("a\u{1b}[31mb\u{9b}c\r\n\td"), "a\u{FFFD}[31mb\u{FFFD}c\u{FFFD}\n\td");
        assert!(matches!(harmless("é 한국어\n"), Cow::Borrowed(_)));
    }
}
