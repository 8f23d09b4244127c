//! Text out of a model file, made safe to print.

/// Shown at most, in characters.
const LIMIT: usize = 80;

/// `text` for a message: in quotation marks, control characters escaped, cut to a readable length.
pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{:?}...", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}
