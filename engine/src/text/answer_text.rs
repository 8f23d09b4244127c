//! The text of an answer while it comes.

use super::error::TextError;
use super::stop_strings::StopMatcher;
use super::stream_decoder::StreamDecoder;
use super::tokenizer::Tokenizer;

/// Turns an answer's tokens into the text that may be shown, which ends before the first stop string.
///
/// ```
/// # use halite_engine::text::{AnswerText, Tokenizer, VocabularySource};
/// let tokens = ["a", "b", "c"].map(String::from).to_vec();
/// let tokenizer = Tokenizer::new(VocabularySource::new("gpt2", tokens))?;
/// let mut text = AnswerText::new(&tokenizer, &["bc"])?;
/// assert_eq!(text.push(0)?, "a");
/// assert_eq!(text.push(1)?, "");
/// assert_eq!(text.push(0)?, "ba");
/// assert_eq!(text.push(1)? + &text.push(2)?, "");
/// assert!(text.is_stopped());
/// # Ok::<(), halite_engine::text::TextError>(())
/// ```
#[derive(Clone, Debug)]
pub struct AnswerText {
    decoder: StreamDecoder,
    stops: StopMatcher,
}

impl AnswerText {
    /// The text of one answer, before its first token.
    ///
    /// # Errors
    /// As [`StopMatcher::new`].
    pub fn new(tokenizer: &Tokenizer, stop_strings: &[impl AsRef<str>]) -> Result<Self, TextError> {
        Ok(Self { decoder: tokenizer.stream_decoder(), stops: StopMatcher::new(stop_strings)? })
    }

    /// Takes the next token and returns the text that is certain now; often empty. An id outside the vocabulary spells
    /// nothing: output layers are padded, and any of their rows may be drawn.
    ///
    /// # Errors
    /// As [`StreamDecoder::push`], but for [`TextError::UnknownToken`].
    pub fn push(&mut self, token: u32) -> Result<String, TextError> {
        match self.decoder.push(token) {
            Err(TextError::UnknownToken { .. }) => Ok(String::new()),
            text => Ok(self.stops.push(&text?).text),
        }
    }

    /// Whether a stop string is complete: no text follows.
    pub fn is_stopped(&self) -> bool {
        self.stops.stopped().is_some()
    }

    /// Ends the answer and returns what was held back: an incomplete character, the beginning of a stop string.
    pub fn finish(mut self) -> String {
        let last = self.stops.push(&self.decoder.finish()).text;
        last + &self.stops.finish()
    }
}
