//! The text cut into tokens.

use super::error::{Problem, Result};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name: `mov`, `%r1`, `$L__BB0_2`, `_`.
    Word,
    /// `.u32`: a directive, a modifier or a part; the token's text has no dot.
    Dot,
    /// A number, in any notation, without its sign.
    Number,
    /// A string; the token's text has no quotes.
    Text,
    /// Any other character that PTX uses.
    Mark(u8),
    /// The end of the text.
    End,
}

/// A piece of the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'t> {
    pub kind: Kind,
    /// Its first byte.
    pub at: usize,
    /// Its line, from 1.
    pub line: u32,
    pub text: &'t str,
}

/// All tokens of `text`; the last one is the end.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>> {
    let bytes = text.as_bytes();
    let (mut found, mut at, mut line) = (Vec::with_capacity(text.len() / 4), 0, 1);
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let run = |from: usize, goes_on: fn(u8) -> bool| {
        from + bytes.get(from..).map_or(0, |rest| rest.iter().take_while(|&&b| goes_on(b)).count())
    };
    while at < bytes.len() {
        let first = byte(at);
        let (kind, from, to) = match first {
            b'\n' => {
                line += 1;
                at += 1;
                continue;
            }
            _ if first.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'/' if byte(at + 1) == b'/' => {
                at = run(at, |b| b != b'\n');
                continue;
            }
            b'/' if byte(at + 1) == b'*' => {
                let rest = text.get(at + 2..).unwrap_or_default();
                let Some(length) = rest.find("*/") else {
                    return Err(Problem::new(at, "the comment's end", "the text's end"));
                };
                line += rest.bytes().take(length).fold(0, |lines, b| lines + u32::from(b == b'\n'));
                at += length + 4;
                continue;
            }
            b'"' => {
                let to = run(at + 1, |b| b != b'"' && b != b'\n');
                if byte(to) != b'"' {
                    return Err(Problem::new(at, "a string's end in its line", "the line's end"));
                }
                (Kind::Text, at + 1, to)
            }
            b'.' if in_name(byte(at + 1)) => (Kind::Dot, at + 1, modifier_end(bytes, at + 1)),
            b'0'..=b'9' => (Kind::Number, at, number_end(bytes, at)),
            _ if in_name(first) || (first == b'%' && in_name(byte(at + 1))) => {
                (Kind::Word, at, run(at + 1, in_name))
            }
            b'{' | b'}' | b'[' | b']' | b'(' | b')' | b'<' | b'>' | b',' | b';' | b':' | b'=' | b'+'
            | b'-' | b'!' | b'~' | b'@' | b'|' | b'*' => (Kind::Mark(first), at, at + 1),
            _ => {
                let character = text.get(at..).and_then(|rest| rest.chars().next()).unwrap_or('?');
                return Err(Problem::quoted(at, "a character that PTX uses", character.escape_debug()));
            }
        };
        found.push(Token { kind, at, line, text: text.get(from..to).unwrap_or_default() });
        at = to + usize::from(kind == Kind::Text);
    }
    found.push(Token { kind: Kind::End, at: text.len(), line, text: "" });
    Ok(found)
}

fn in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

/// A modifier may have `::` within it: `.L2::128B`.
fn modifier_end(bytes: &[u8], from: usize) -> usize {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let mut at = from;
    loop {
        if in_name(byte(at)) {
            at += 1;
        } else if byte(at) == b':' && byte(at + 1) == b':' && in_name(byte(at + 2)) {
            at += 3;
        } else {
            return at;
        }
    }
}

/// A number goes on over letters (`0f3F800000`, `8U`), a point, and the sign of an exponent.
fn number_end(bytes: &[u8], from: usize) -> usize {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let prefixed = byte(from) == b'0' && byte(from + 1).is_ascii_alphabetic();
    let mut at = from;
    loop {
        let sign = matches!(byte(at), b'+' | b'-') && !prefixed && matches!(byte(at - 1), b'e' | b'E');
        if byte(at).is_ascii_alphanumeric() || (byte(at) == b'.' && !prefixed) || (sign && at > from) {
            at += 1;
        } else {
            return at;
        }
    }
}
