//! The text each token stands for.

use super::error::TextError;
use super::vocabulary::TokenKind;

/// What decoding needs; shared with the decoders of running requests.
#[derive(Debug)]
pub(crate) struct TokenTexts {
    bytes: Vec<Box<[u8]>>,
    kinds: Vec<TokenKind>,
    first_space: FirstSpace,
}

impl TokenTexts {
    /// Bytes and kinds by id; both have the same length.
    pub(crate) fn new(bytes: Vec<Box<[u8]>>, kinds: Vec<TokenKind>, first_space: FirstSpace) -> Self {
        Self { bytes, kinds, first_space }
    }

    /// The bytes of a token's text; those of control tokens are empty, as they are no part of an answer.
    pub(crate) fn bytes(&self, id: u32) -> Result<&[u8], TextError> {
        let unknown = TextError::UnknownToken { id, vocabulary: self.bytes.len() };
        match (self.bytes.get(id as usize), self.kind(id)) {
            (Some(_), Some(TokenKind::Control)) => Ok(&[]),
            (Some(bytes), Some(_)) => Ok(bytes),
            _ => Err(unknown),
        }
    }

    pub(crate) fn kind(&self, id: u32) -> Option<TokenKind> {
        self.kinds.get(id as usize).copied()
    }

    pub(crate) fn first_space(&self) -> FirstSpace {
        self.first_space
    }
}

/// What becomes of a space that belongs to the vocabulary's spelling and not to the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstSpace {
    /// There is none, or it has been dealt with.
    Keep,
    /// The text's first space goes.
    Strip,
    /// All spaces of the first token go.
    StripFirstToken,
}

impl FirstSpace {
    /// Appends a token's bytes to a text.
    pub(crate) fn append(&mut self, bytes: &[u8], text: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        match std::mem::replace(self, Self::Keep) {
            Self::Keep => text.extend_from_slice(bytes),
            Self::Strip => text.extend_from_slice(bytes.strip_prefix(b" ").unwrap_or(bytes)),
            Self::StripFirstToken => text.extend(bytes.iter().filter(|&&byte| byte != b' ')),
        }
    }
}
