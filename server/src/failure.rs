//! Errors as a person reads them.

use crate::output::{ReaderGone, harmless};
use std::io::Write;
use std::process::ExitCode;

/// Writes `error: ...` to standard error. A reader that had enough of standard output is no error.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if error.is::<ReaderGone>() {
        return ExitCode::SUCCESS;
    }
    // Without a standard error there is nobody to tell.
    _ = writeln!(std::io::stderr(), "error: {}", harmless(&text(error)));
    ExitCode::FAILURE
}

/// The error and its causes in one line; a cause whose text the error above it repeats is left out.
fn text(error: &anyhow::Error) -> String {
    let mut text = String::new();
    let mut last = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if last.contains(&cause) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&cause);
        last = cause;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn causes_are_joined_and_not_repeated() {
        let error = anyhow!("no such file").context("cannot open m.gguf: no such file").context("loading");
        assert_eq!(text(&error), "loading: cannot open m.gguf: no such file");
        assert_eq!(text(&anyhow!("alone")), "alone");
    }
}
