//! A control or user-defined token.

use super::sentence_piece::SPACE;
use super::vocabulary::TokenKind;

/// A token that is matched as a whole, and how. The flags mean what they mean to the `tokenizers` crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SpecialToken {
    pub(crate) text: Box<str>,
    pub(crate) id: u32,
    pub(crate) kind: TokenKind,
    /// Whether it was in the vocabulary from the beginning, as a piece of text, and not added to it later.
    pub(crate) is_piece: bool,
    /// Whether it is looked for before or after the text is normalised.
    pub(crate) matching: Matching,
    /// Takes the white space before it in.
    pub(crate) lstrip: bool,
    /// Takes the white space after it in.
    pub(crate) rstrip: bool,
    /// Not inside a word.
    pub(crate) single_word: bool,
}

/// When a token is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matching {
    /// In the text as given.
    Raw,
    /// In the normalised text; the token's own text is normalised too.
    Normalized,
}

impl SpecialToken {
    pub(crate) fn new(text: &str, id: u32, kind: TokenKind) -> Self {
        let text = text.into();
        Self {
            text,
            id,
            kind,
            is_piece: false,
            matching: Matching::Raw,
            lstrip: false,
            rstrip: false,
            single_word: false,
        }
    }

    /// Whether it is user-defined white space.
    pub(crate) fn is_user_space(&self) -> bool {
        self.kind == TokenKind::UserDefined && is_space(&self.text)
    }
}

/// Whether a text is white space, however a vocabulary may spell it.
pub(crate) fn is_space(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || c == SPACE)
}
