//! Text out of a model file, made safe to print.

use std::fmt::Display;

/// Shown at most, in characters.
const LIMIT: usize = 80;

/// What is kept of the two ends of a message, in characters.
const ENDS: [usize; 2] = [200, 100];

/// A parser's message, which may repeat any length of the file: without its middle where it is long. What is wrong stands
/// at its beginning, and where at its end.
pub(crate) fn shortened(message: impl Display) -> String {
    let message = message.to_string();
    let [head, tail] = ENDS;
    let count = message.chars().count();
    if count <= head + tail {
        return message;
    }
    let characters = || message.chars();
    characters().take(head).chain(" ... ".chars()).chain(characters().skip(count - tail)).collect()
}

/// `text` for a message: in quotation marks, control characters escaped, cut to a readable length.
pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{:?}...", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_keep_both_ends() {
        assert_eq!(shortened("é".repeat(300)), "é".repeat(300));
        let long = shortened(format!("wrong: {} at line 7", "é".repeat(100_000)));
        assert_eq!(long.chars().count(), 305);
        assert!(long.starts_with("wrong: é") && long.contains("é ... é") && long.ends_with(" at line 7"));
    }
}
