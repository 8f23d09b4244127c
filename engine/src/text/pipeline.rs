//! From text to token ids: find added tokens, normalise, cut into words, merge.

use std::borrow::Cow;

use tokenizers::Model as _;
use tokenizers::models::bpe::BPE;

use super::byte_level::char_of_byte;
use super::error::TextError;
use super::normalize::Normalizer;
use super::pattern::Clock;
use super::special_token::Matching;
use super::special_tokens::SpecialTable;
use super::word_splitter::WordSplitter;

/// Written for a character that has a byte without a token.
const REPLACEMENT: &str = "\u{FFFD}";

/// The bytes that a byte-level vocabulary has a token for.
type KnownBytes = Box<[bool; 256]>;

#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) normalizer: Normalizer,
    splitter: WordSplitter,
    /// For a byte-level vocabulary that lacks bytes.
    known: Option<KnownBytes>,
    /// Without the control tokens, so that no text merges into one.
    model: BPE,
}

/// How added tokens are found in a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Added<'t> {
    pub(crate) table: &'t SpecialTable,
    /// A character that keeps text from matching, and is no part of it; see [`super::encode_chat`].
    pub(crate) mark: Option<char>,
}

impl Pipeline {
    pub(crate) fn new(normalizer: Normalizer, splitter: WordSplitter, model: BPE) -> Self {
        let has = |byte| model.token_to_id(char_of_byte(byte).encode_utf8(&mut [0; 4])).is_some();
        let known = splitter.is_byte_level().then(|| {
            // `byte` is below 256.
            Box::new(std::array::from_fn(|byte| has(byte as u8)))
        });
        let known = known.filter(|known: &KnownBytes| known.contains(&false));
        Self { normalizer, splitter, known, model }
    }

    pub(crate) fn token_to_id(&self, token: &str) -> Option<u32> {
        self.model.token_to_id(token)
    }

    /// Appends the ids of `text`.
    pub(crate) fn encode(&self, text: &str, added: Added<'_>, ids: &mut Vec<u32>) -> Result<(), TextError> {
        let clock = Clock::start();
        let Added { table, mark } = added;
        for stretch in table.find(text, Matching::Raw) {
            let Some(token) = stretch.token else {
                let (piece, first) =
                    (text.get(stretch.start..stretch.end).unwrap_or_default(), stretch.start == 0);
                self.encode_piece(piece, first, table, mark, clock, ids)?;
                continue;
            };
            ids.push(token.id);
        }
        Ok(())
    }

    /// Appends the ids of a piece without tokens that are found in the text as given.
    fn encode_piece(
        &self,
        piece: &str,
        first: bool,
        table: &SpecialTable,
        mark: Option<char>,
        clock: Clock,
        ids: &mut Vec<u32>,
    ) -> Result<(), TextError> {
        if !table.has(Matching::Normalized) {
            let piece = without(mark, Cow::Borrowed(piece));
            let normal = self.normalizer.apply(&piece, clock)?;
            return self.merge(normal, first, clock, ids);
        }
        let normal = self.normalizer.apply(piece, clock)?;
        for stretch in table.find(&normal, Matching::Normalized) {
            let Some(token) = stretch.token else {
                let text = normal.get(stretch.start..stretch.end).unwrap_or_default();
                let text = without(mark, Cow::Borrowed(text));
                self.merge(text, first && stretch.start == 0, clock, ids)?;
                continue;
            };
            ids.push(token.id);
        }
        Ok(())
    }

    /// Appends the ids of normalised text.
    fn merge(
        &self,
        text: Cow<'_, str>,
        first: bool,
        clock: Clock,
        ids: &mut Vec<u32>,
    ) -> Result<(), TextError> {
        if text.is_empty() {
            return Ok(());
        }
        let text = match &self.known {
            Some(known) => replace_unknown(text, known)?,
            None => text,
        };
        for (word, _) in self.splitter.cut(text, first, clock)? {
            let tokens = self.model.tokenize(&word).map_err(|e| TextError::Tokenizer(e.to_string()))?;
            ids.extend(tokens.iter().map(|token| token.id));
        }
        Ok(())
    }
}

fn without(mark: Option<char>, text: Cow<'_, str>) -> Cow<'_, str> {
    match mark.filter(|&mark| text.contains(mark)) {
        Some(mark) => Cow::Owned(text.replace(mark, "")),
        None => text,
    }
}

fn missing_byte(c: char, known: &[bool; 256]) -> Option<u8> {
    c.encode_utf8(&mut [0; 4]).bytes().find(|&byte| !known[usize::from(byte)])
}

/// Writes U+FFFD for every character that has a byte without a token.
fn replace_unknown<'t>(text: Cow<'t, str>, known: &[bool; 256]) -> Result<Cow<'t, str>, TextError> {
    let unknown = text.chars().find_map(|c| Some((c, missing_byte(c, known)?)));
    let Some((character, byte)) = unknown else { return Ok(text) };
    if REPLACEMENT.bytes().any(|byte| !known[usize::from(byte)]) {
        return Err(TextError::Unencodable { character, byte });
    }
    let replace = |c| if missing_byte(c, known).is_some() { char::REPLACEMENT_CHARACTER } else { c };
    Ok(text.chars().map(replace).collect())
}
