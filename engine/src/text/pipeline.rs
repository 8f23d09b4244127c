//! From text to token ids: normalise, cut into words, merge.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokenizers::models::bpe::BPE;
use tokenizers::{Model as _, NormalizedString, OffsetReferential, OffsetType, PreTokenizedString, Token};

use super::byte_level::char_of_byte;
use super::error::TextError;
use super::normalize::Normalizer;
use super::pattern::Clock;
use super::special_tokens::{Matching, SpecialTable};
use super::words::Words;

/// Written for a character that has a byte without a token.
const REPLACEMENT: &str = "\u{FFFD}";

/// The bytes that a byte-level vocabulary has a token for.
pub(crate) type KnownBytes = Box<[bool; 256]>;

#[derive(Debug)]
pub(crate) struct Pipeline {
    normalizer: Normalizer,
    words: Words,
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

type Piece = (NormalizedString, Option<Vec<Token>>);

impl Pipeline {
    pub(crate) fn new(normalizer: Normalizer, words: Words, model: BPE) -> Self {
        let has = |byte| model.token_to_id(char_of_byte(byte).encode_utf8(&mut [0; 4])).is_some();
        let known = words.is_byte_level().then(|| {
            // `byte` is below 256.
            Box::new(std::array::from_fn(|byte| has(byte as u8)))
        });
        let known = known.filter(|known: &KnownBytes| known.contains(&false));
        Self { normalizer, words, known, model }
    }

    pub(crate) fn token_to_id(&self, token: &str) -> Option<u32> {
        self.model.token_to_id(token)
    }

    /// Appends the ids of `text`.
    pub(crate) fn encode(
        &self,
        text: &str,
        added: Option<Added<'_>>,
        ids: &mut Vec<u32>,
    ) -> Result<(), TextError> {
        if text.is_empty() {
            return Ok(());
        }
        // The crate panics where its own bookkeeping of offsets goes wrong. Text and tokenizer come from outside, so
        // that may cost this one text, never the process.
        let tokenized = catch_unwind(AssertUnwindSafe(|| self.tokenize(text, added)));
        let tokenized = tokenized.map_err(|_| TextError::Tokenizer("it panicked".into()))?;
        let tokenized = tokenized.map_err(|e| match e.downcast::<TextError>() {
            Ok(error) => *error,
            Err(other) => TextError::Tokenizer(other.to_string()),
        })?;
        for (_, _, tokens) in tokenized.get_splits(OffsetReferential::Normalized, OffsetType::None) {
            ids.extend(tokens.iter().flatten().map(|token| token.id));
        }
        Ok(())
    }

    fn tokenize(&self, text: &str, added: Option<Added<'_>>) -> tokenizers::Result<PreTokenizedString> {
        let clock = Clock::start();
        let mut cut = PreTokenizedString::from(text);
        if let Some(Added { table, .. }) = added {
            cut.split(|_, piece| take_out(piece, table, Matching::Raw, false))?;
        }
        cut.split(|_, mut piece| {
            let table = added.map(|added| added.table).filter(|table| table.has(Matching::Normalized));
            let mark = added.and_then(|added| added.mark).filter(|&mark| piece.get().contains(mark));
            if let (Some(mark), None) = (mark, table) {
                piece.filter(|c| c != mark);
            }
            self.normalizer.apply(&mut piece, clock)?;
            let Some(table) = table else { return Ok(vec![(piece, None)]) };
            let verbatim = added.is_some_and(|added| added.mark.is_some());
            let mut pieces = take_out(piece, table, Matching::Normalized, verbatim)?;
            if let Some(mark) = mark {
                for (text, _) in pieces.iter_mut().filter(|(_, tokens)| tokens.is_none()) {
                    text.filter(|c| c != mark);
                }
            }
            Ok(pieces)
        })?;
        if let Some(known) = &self.known {
            cut.split(|_, mut piece| {
                replace_unknown(&mut piece, known)?;
                Ok([piece])
            })?;
        }
        self.words.cut(&mut cut, clock)?;
        cut.tokenize(|word| self.model.tokenize(word.get()))?;
        Ok(cut)
    }
}

/// Takes the added tokens out of a piece. `verbatim`: only where the text had them before it was normalised, so that
/// nothing but the token's own spelling, which is guarded, becomes the token.
fn take_out(
    piece: NormalizedString,
    table: &SpecialTable,
    matching: Matching,
    verbatim: bool,
) -> tokenizers::Result<Vec<Piece>> {
    use tokenizers::normalizer::Range;
    let found = table.find(piece.get(), matching);
    if found.iter().all(|found| found.token.is_none()) {
        return Ok(vec![(piece, None)]);
    }
    let slice = |start, end| {
        let cut = piece.slice(Range::Normalized(start..end));
        cut.ok_or_else(|| format!("cannot cut a text at bytes {start} to {end}"))
    };
    let pieces = found.into_iter().map(|found| {
        let text = slice(found.start, found.end)?;
        let id = found.token.filter(|token| !verbatim || text.get_original().contains(&*token.text));
        Ok((text, id.map(|token| vec![Token::new(token.id, String::new(), (0, 0))])))
    });
    pieces.collect()
}

fn missing_byte(c: char, known: &[bool; 256]) -> Option<u8> {
    c.encode_utf8(&mut [0; 4]).bytes().find(|&byte| !known[usize::from(byte)])
}

/// Writes U+FFFD for every character that has a byte without a token.
fn replace_unknown(text: &mut NormalizedString, known: &[bool; 256]) -> Result<(), TextError> {
    let unknown = text.get().chars().find_map(|c| Some((c, missing_byte(c, known)?)));
    let Some((character, byte)) = unknown else { return Ok(()) };
    if REPLACEMENT.bytes().any(|byte| !known[usize::from(byte)]) {
        return Err(TextError::Unencodable { character, byte });
    }
    text.map(|c| if missing_byte(c, known).is_some() { char::REPLACEMENT_CHARACTER } else { c });
    Ok(())
}
