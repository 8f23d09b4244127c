//! Finding control and user-defined tokens in text.

use std::collections::{BTreeSet, HashMap};

use super::vocabulary::TokenKind;

/// Whether the text of a special token becomes that token.
///
/// Text written by a person or a tool is encoded [`AsText`](Self::AsText): what looks like a control token there is
/// only characters, so nobody can end a turn or forge one by typing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecialTokens {
    /// Control and user-defined tokens are recognised. For text made by a template or by the program itself.
    Parse,
    /// Nothing is recognised. For text from outside.
    AsText,
}

/// A part of a text: between special tokens, or one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    Text(&'t str),
    Special { id: u32, text: &'t str },
}

/// The control and user-defined tokens of a vocabulary, for search.
#[derive(Debug, Default)]
pub(crate) struct SpecialTable {
    by_text: HashMap<Box<str>, (u32, TokenKind)>,
    /// For each first byte, the lengths in use, longest first. There are few, so a text is searched with a few
    /// lookups at each place where a special token may begin.
    lengths: HashMap<u8, Vec<usize>>,
}

impl SpecialTable {
    pub(crate) fn new<'a>(tokens: impl Iterator<Item = (&'a str, u32, TokenKind)>) -> Self {
        let mut table = Self::default();
        let mut lengths: HashMap<u8, BTreeSet<usize>> = HashMap::new();
        for (text, id, kind) in tokens {
            if let Some(&first) = text.as_bytes().first() {
                lengths.entry(first).or_default().insert(text.len());
                table.by_text.insert(text.into(), (id, kind));
            }
        }
        table.lengths = lengths.into_iter().map(|(b, set)| (b, set.into_iter().rev().collect())).collect();
        table
    }

    /// The longest special token at the start of `text`.
    pub(crate) fn at_start<'t>(&self, text: &'t str) -> Option<(&'t str, u32, TokenKind)> {
        let lengths = self.lengths.get(text.as_bytes().first()?)?;
        lengths.iter().find_map(|&len| {
            let candidate = text.get(..len)?;
            self.by_text.get(candidate).map(|&(id, kind)| (candidate, id, kind))
        })
    }

    /// Whether `text` is a proper beginning of a special token of a kind that `matches`.
    pub(crate) fn is_beginning_of_one(&self, text: &str, matches: impl Fn(TokenKind) -> bool) -> bool {
        if !text.as_bytes().first().is_some_and(|first| self.lengths.contains_key(first)) {
            return false;
        }
        let longer = |token: &str| token.len() > text.len() && token.starts_with(text);
        self.by_text.iter().any(|(token, &(_, kind))| matches(kind) && longer(token))
    }

    /// Length in bytes of the longest special token.
    pub(crate) fn longest(&self) -> usize {
        self.lengths.values().filter_map(|lengths| lengths.first()).copied().max().unwrap_or(0)
    }

    /// Cuts `text` at its special tokens: leftmost first, and of those that begin at one place the longest.
    pub(crate) fn split<'t>(&self, text: &'t str) -> Vec<Piece<'t>> {
        let mut pieces = Vec::new();
        let (mut start, mut at) = (0, 0);
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            if let Some((token, id, _)) = self.at_start(rest) {
                if start < at {
                    pieces.push(Piece::Text(&text[start..at]));
                }
                pieces.push(Piece::Special { id, text: token });
                at += token.len();
                start = at;
            } else {
                at += rest.chars().next().map_or(1, char::len_utf8);
            }
        }
        if start < text.len() {
            pieces.push(Piece::Text(&text[start..]));
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(tokens: &[&str]) -> SpecialTable {
        SpecialTable::new(tokens.iter().zip(0u32..).map(|(text, id)| (*text, id, TokenKind::Control)))
    }

    #[test]
    fn leftmost_then_longest() {
        let table = table(&["<a", "<a>", "a>b", "한"]);
        let special = |id, text| Piece::Special { id, text };
        assert_eq!(table.split("x<a>b"), [Piece::Text("x"), special(1, "<a>"), Piece::Text("b")]);
        assert_eq!(table.split("<a<a>"), [special(0, "<a"), special(1, "<a>")]);
        assert_eq!(table.split("글한글"), [Piece::Text("글"), special(3, "한"), Piece::Text("글")]);
        assert_eq!(table.split(""), []);
        assert_eq!(table.split("ha>"), [Piece::Text("ha>")]);
    }

    #[test]
    fn a_token_may_end_inside_a_character_of_the_text() {
        // "<é" is three bytes; "<한" is four: the lookup at length three must not cut the character.
        assert_eq!(table(&["<é"]).split("<한"), [Piece::Text("<한")]);
    }
}
