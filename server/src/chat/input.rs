//! Lines from a person at a terminal, or from anywhere else.

use anyhow::{Context, bail};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use std::io::{BufRead, ErrorKind, IsTerminal, Read, StdinLock};

use crate::progress::line;

const PROMPT: &str = "> ";
/// Longer lines fit no context, and would only fill the memory.
const LONGEST: u64 = 16 << 20;

/// Where lines come from.
pub(crate) enum Input {
    /// A terminal, with editing and the lines of this session to go back to. None of them is stored.
    Terminal(Box<DefaultEditor>),
    /// A pipe or a file, without any decoration.
    Lines(StdinLock<'static>),
}

impl Input {
    pub(crate) fn open() -> anyhow::Result<Self> {
        if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
            let editor = DefaultEditor::new().context("cannot use this terminal")?;
            return Ok(Self::Terminal(Box::new(editor)));
        }
        Ok(Self::Lines(std::io::stdin().lock()))
    }

    /// Whether there is a person to greet.
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal(_))
    }

    /// The next line; `None` at the end.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<String>> {
        match self {
            Self::Terminal(editor) => loop {
                match editor.readline(PROMPT) {
                    Ok(text) => {
                        // A line that cannot be kept for going back to is still a line.
                        _ = editor.add_history_entry(&*text);
                        return Ok(Some(text));
                    }
                    Err(ReadlineError::Interrupted) => line("(Ctrl-D or /exit leaves)"),
                    // A slip of the keyboard is no reason to lose the conversation.
                    Err(ReadlineError::Io(error)) if error.kind() == ErrorKind::InvalidData => {
                        line("(that was not UTF-8, and is forgotten)");
                    }
                    Err(ReadlineError::Eof) => return Ok(None),
                    Err(error) => return Err(error).context("cannot read from the terminal"),
                }
            },
            Self::Lines(lines) => {
                let mut bytes = Vec::new();
                let read = lines.take(LONGEST).read_until(b'\n', &mut bytes);
                if read.context("cannot read from standard input")? == 0 {
                    return Ok(None);
                }
                if bytes.len() as u64 == LONGEST && bytes.last() != Some(&b'\n') {
                    bail!("a line on standard input has more than {LONGEST} bytes");
                }
                String::from_utf8(bytes).context("a line on standard input is not UTF-8").map(Some)
            }
        }
    }
}
