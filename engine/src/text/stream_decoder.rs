//! Decoding one token at a time.

use std::sync::Arc;

use super::error::TextError;
use super::token_texts::{FirstSpace, TokenTexts};

/// Turns an answer's tokens into text as they come.
///
/// A character may be spread over several tokens. Its bytes are held back until it is complete, so that no piece
/// ends inside a character. All pieces and the last one from [`finish`](Self::finish), put together, equal
/// [`Tokenizer::decode`](super::Tokenizer::decode) of all tokens: bytes that can no longer become a character are
/// U+FFFD, one for each maximal broken part, as [`String::from_utf8_lossy`] does it.
///
/// ```
/// # use halite_engine::text::{Tokenizer, VocabularySource};
/// // The two bytes of "é" in the byte-level alphabet.
/// let tokenizer = Tokenizer::new(VocabularySource::new("gpt2", vec!["Ã".into(), "©".into()]))?;
/// let mut decoder = tokenizer.stream_decoder();
/// assert_eq!(decoder.push(0)?, "");
/// assert_eq!(decoder.push(1)?, "é");
/// assert_eq!(decoder.push(0)?, "");
/// assert_eq!(decoder.finish(), "\u{FFFD}");
/// # Ok::<(), halite_engine::text::TextError>(())
/// ```
#[derive(Clone, Debug)]
pub struct StreamDecoder {
    texts: Arc<TokenTexts>,
    /// Bytes of a character that is not complete: three at most.
    held: Vec<u8>,
    first: FirstSpace,
}

impl StreamDecoder {
    pub(crate) fn new(texts: Arc<TokenTexts>) -> Self {
        let first = texts.first_space();
        Self { texts, held: Vec::new(), first }
    }

    /// Takes the next token and returns the text that is certain now; often empty.
    ///
    /// # Errors
    /// [`TextError::UnknownToken`] for an id outside the vocabulary; the decoder goes on as if it had not come.
    pub fn push(&mut self, id: u32) -> Result<String, TextError> {
        self.first.append(self.texts.bytes(id)?, &mut self.held);

        let mut text = String::new();
        let mut done = 0;
        for chunk in self.held.utf8_chunks() {
            text.push_str(chunk.valid());
            done += chunk.valid().len();
            let invalid = chunk.invalid();
            let is_last = done + invalid.len() == self.held.len();
            if invalid.is_empty() || (is_last && may_become_a_char(invalid)) {
                break;
            }
            text.push(char::REPLACEMENT_CHARACTER);
            done += invalid.len();
        }
        self.held.drain(..done);
        Ok(text)
    }

    /// Ends the answer and returns what was held back. Nothing is lost: an incomplete character is U+FFFD.
    pub fn finish(self) -> String {
        String::from_utf8_lossy(&self.held).into_owned()
    }
}

/// Whether more bytes can make a character of `bytes`, the broken end of a text.
fn may_become_a_char(bytes: &[u8]) -> bool {
    // `error_len` is None exactly where the input ended too early.
    std::str::from_utf8(bytes).is_err_and(|e| e.valid_up_to() == 0 && e.error_len().is_none())
}
