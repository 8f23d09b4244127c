//! What a line means.

/// The commands, for those who ask.
pub(crate) const HELP: &str = "\
/help         this list
/reset        forget the conversation; the system message stays
/system TEXT  what the model is told before the conversation; without TEXT, nothing
/retry        answer the last message again
/save FILE    write the conversation to a new file, as JSON
/stats        tokens so far
/exit         leave, as Ctrl-D does
//TEXT        a message that begins with a slash
Ctrl-C        end the answer; what there is of it stays in the conversation";

/// A line that a person typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    Nothing,
    Say(&'a str),
    Help,
    Reset,
    /// Empty: no system message.
    System(&'a str),
    Retry,
    /// Empty: no file was named.
    Save(&'a str),
    Stats,
    Exit,
    Unknown(&'a str),
}

impl<'a> Line<'a> {
    pub(crate) fn parse(line: &'a str) -> Self {
        let line = line.trim();
        let Some(command) = line.strip_prefix('/') else {
            return if line.is_empty() { Self::Nothing } else { Self::Say(line) };
        };
        if command.starts_with('/') {
            return Self::Say(command);
        }
        let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let rest = rest.trim();
        match (word, rest) {
            ("help", "") => Self::Help,
            ("reset", "") => Self::Reset,
            ("system", text) => Self::System(text),
            ("retry", "") => Self::Retry,
            ("save", file) => Self::Save(file),
            ("stats", "") => Self::Stats,
            ("exit" | "quit", "") => Self::Exit,
            _ => Self::Unknown(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_begin_with_one_slash() {
        for (line, expected) in [
            ("  \t", Line::Nothing),
            (" hi there ", Line::Say("hi there")),
            ("/help", Line::Help),
            ("/help me", Line::Unknown("/help me")),
            ("/system  Be  brief. ", Line::System("Be  brief.")),
            ("/system", Line::System("")),
            ("/save a b.json", Line::Save("a b.json")),
            ("/exit ", Line::Exit),
            ("/", Line::Unknown("/")),
            ("/etc/passwd", Line::Unknown("/etc/passwd")),
            ("//etc/passwd", Line::Say("/etc/passwd")),
            ("1 / 2", Line::Say("1 / 2")),
        ] {
            assert_eq!(Line::parse(line), expected, "{line:?}");
        }
    }
}
