//! How a `tokenizer.json` turns tokens back into text, token by token.
//!
//! Only decoders are accepted under which the text of an answer is the texts of its tokens put together (but for a
//! space at the very beginning), since an answer is streamed as it comes.

use std::borrow::Cow;

use serde::Deserialize;

use super::byte_level::bytes_of_token;
use super::error::TextError;
use super::pattern::{Clock, Pattern, PatternSource};
use super::sentence_piece::{SPACE, byte_of_token};
use super::token_texts::FirstSpace;

/// Most steps.
const MAX_STEPS: usize = 32;
/// Longest text that replaces other text, in bytes.
const MAX_CONTENT_BYTES: usize = 64;

/// The decoder as `tokenizer.json` describes it.
#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(crate) enum DecoderSource {
    Sequence {
        decoders: Vec<DecoderSource>,
    },
    ByteLevel {},
    ByteFallback {},
    Fuse {},
    Replace {
        pattern: PatternSource,
        content: String,
    },
    Strip {
        content: char,
        start: usize,
        stop: usize,
    },
    Metaspace {
        #[serde(default = "space")]
        replacement: char,
        add_prefix_space: Option<bool>,
        prepend_scheme: Option<String>,
    },
}

fn space() -> char {
    SPACE
}

/// The steps that give a token's text.
#[derive(Debug)]
pub(crate) struct Decoder {
    replace: Vec<(Pattern, String)>,
    bytes: Bytes,
    fused: bool,
    pub(crate) first_space: FirstSpace,
    steps: usize,
}

/// What a token's text says about bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bytes {
    /// Nothing: it is text.
    Text,
    /// `<0x41>` is a byte.
    Fallback,
    /// Every character is a byte.
    Level,
}

impl Decoder {
    pub(crate) fn new(source: Option<&DecoderSource>) -> Result<Self, TextError> {
        let source = source.ok_or_else(|| wrong("there is none; expected one such as ByteLevel"))?;
        let first_space = FirstSpace::Keep;
        let mut decoder =
            Self { replace: Vec::new(), bytes: Bytes::Text, fused: false, first_space, steps: 0 };
        decoder.add(source)?;
        Ok(decoder)
    }

    fn add(&mut self, source: &DecoderSource) -> Result<(), TextError> {
        use DecoderSource as Source;
        if let Source::Sequence { decoders } = source {
            return decoders.iter().try_for_each(|decoder| self.add(decoder));
        }
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(wrong("more than 32 steps"));
        }
        let is_text = self.bytes == Bytes::Text && !self.fused;
        match source {
            Source::Sequence { .. } => {}
            Source::ByteLevel {} if is_text => (self.bytes, self.fused) = (Bytes::Level, true),
            Source::ByteFallback {} if is_text => self.bytes = Bytes::Fallback,
            Source::Fuse {} => self.fused = true,
            Source::Replace { pattern, content } if is_text && content.len() <= MAX_CONTENT_BYTES => {
                self.replace.push((Pattern::new(pattern)?, content.clone()));
            }
            Source::Metaspace { replacement, add_prefix_space, prepend_scheme } if is_text => {
                let pattern = PatternSource::String(replacement.to_string());
                self.replace.push((Pattern::new(&pattern)?, " ".into()));
                if *add_prefix_space != Some(false) && prepend_scheme.as_deref() != Some("never") {
                    self.first_space = FirstSpace::StripFirstToken;
                }
            }
            Source::Strip { start: 0, stop: 0, .. } => {}
            Source::Strip { content: ' ', start: 1, stop: 0 } if self.fused => {
                self.first_space = FirstSpace::Strip;
            }
            Source::Strip { .. } => return Err(wrong("expected Strip to take one space after Fuse")),
            _ => {
                return Err(wrong(
                    "expected Replace steps, then ByteFallback, Fuse and Strip; or ByteLevel alone",
                ));
            }
        }
        Ok(())
    }

    /// The bytes that a token stands for.
    pub(crate) fn bytes(&self, token: &str, clock: Clock) -> Result<Box<[u8]>, TextError> {
        let mut text = Cow::Borrowed(token);
        for (pattern, content) in &self.replace {
            let cuts = pattern.find(&text, clock)?;
            if cuts.iter().any(|(_, is_match)| *is_match) {
                let part = |&((start, end), is_match): &((usize, usize), bool)| {
                    if is_match { content.as_str() } else { text.get(start..end).unwrap_or_default() }
                };
                text = cuts.iter().map(part).collect::<String>().into();
            }
        }
        let bytes = match self.bytes {
            Bytes::Text => text.as_bytes().to_vec(),
            Bytes::Fallback => {
                byte_of_token(&text).map_or_else(|| text.as_bytes().to_vec(), |byte| vec![byte])
            }
            Bytes::Level => bytes_of_token(&text),
        };
        Ok(bytes.into_boxed_slice())
    }
}

fn wrong(reason: &str) -> TextError {
    TextError::file(format!("decoder: {reason}"))
}
