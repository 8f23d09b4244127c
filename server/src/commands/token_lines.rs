//! Files of token ids: one JSON array a line.

use anyhow::{Context, bail};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// One line's tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenLine {
    /// Its number in the file, from 1.
    pub(crate) number: usize,
    /// At least two.
    pub(crate) tokens: Vec<u32>,
}

/// Reads every line that is not blank.
///
/// # Errors
/// The file cannot be read, holds nothing, or a line is not an array of at least two token ids: by file and line.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<TokenLine>> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
    let mut lines = Vec::new();
    for (index, bytes) in BufReader::new(file).split(b'\n').enumerate() {
        let bytes = bytes.with_context(|| format!("cannot read {shown}"))?;
        let number = index + 1;
        if !bytes.trim_ascii().is_empty() {
            let tokens = parse(&bytes).with_context(|| format!("{shown}, line {number}"))?;
            lines.push(TokenLine { number, tokens });
        }
    }
    if lines.is_empty() {
        bail!("{shown} holds no tokens; expected one JSON array of token ids a line, such as [1, 42, 7]");
    }
    Ok(lines)
}

fn parse(line: &[u8]) -> anyhow::Result<Vec<u32>> {
    let value: Value = serde_json::from_slice(line).map_err(|error| {
        anyhow::anyhow!(
            "not JSON (column {}); expected an array of token ids, such as [1, 42, 7]",
            error.column()
        )
    })?;
    let Value::Array(elements) = value else {
        bail!("expected a JSON array of token ids, such as [1, 42, 7]");
    };
    let ids = elements.iter().enumerate().map(|(index, element)| {
        let id = element.as_u64().and_then(|id| u32::try_from(id).ok());
        id.with_context(|| format!("element {index} is {}, expected a token id, 0 or more", short(element)))
    });
    let tokens = ids.collect::<anyhow::Result<Vec<_>>>()?;
    if tokens.len() < 2 {
        bail!("{} tokens; at least 2 are needed, as the first one is not predicted", tokens.len());
    }
    Ok(tokens)
}

/// A value as text, cut to a readable length.
fn short(value: &Value) -> String {
    const SHOWN: usize = 40;
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read() {
        assert_eq!(parse(b" [0, 4294967295,7] \r").unwrap(), [0, u32::MAX, 7]);
    }

    #[test]
    fn what_is_no_list_of_ids_is_named() {
        let cases: [(&[u8], &str); 10] = [
            (b"hello", "not JSON"),
            (b"[1, 2", "not JSON"),
            (b"[1, 2] [3]", "not JSON"),
            (b"[1, \xff]", "not JSON"),
            (b"{\"a\": 1}", "expected a JSON array"),
            (b"[1, -5]", "element 1 is -5"),
            (b"[1.5, 2]", "element 0 is 1.5"),
            (b"[1, 4294967296]", "element 1 is 4294967296"),
            (b"[1, \"2\"]", "element 1 is \"2\""),
            (b"[1]", "1 tokens; at least 2"),
        ];
        for (line, expected) in cases {
            let error = format!("{:#}", parse(line).unwrap_err());
            assert!(error.contains(expected), "{error} should say {expected}");
        }
    }

    #[test]
    fn long_values_are_cut() {
        assert_eq!(short(&Value::String("é".repeat(100))).chars().count(), 43);
    }
}
