//! A model's tokenizer: text to token ids and back.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::{
    DecoderWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper, TokenizerImpl,
};

use super::byte_level::{bytes_of_token, char_of_byte};
use super::error::{TextError, VocabularyFault};
use super::pre_tokenizer::PreTokenizer;
use super::sentence_piece::{self, SPACE};
use super::special_tokens::{Piece, SpecialTable, SpecialTokens};
use super::stream_decoder::StreamDecoder;
use super::vocabulary::{TokenKind, Vocabulary, VocabularySource};
use crate::quoted::quoted;

type Pipeline =
    TokenizerImpl<BPE, NormalizerWrapper, PreTokenizerWrapper, PostProcessorWrapper, DecoderWrapper>;

/// Longest text encoded in one call, in bytes. The `tokenizers` crate needs about 100 bytes of memory for each.
const MAX_TEXT_BYTES: usize = 16 << 20;

/// Names under which model files mark the end of an answer besides `eos` and `eot`.
const END_NAMES: &[&str] = &[
    "<|endoftext|>",
    "<|im_end|>",
    "<|end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "<EOT>",
];

/// Written for a character that has a byte without a token.
const REPLACEMENT: &str = "\u{FFFD}";

/// How a vocabulary spells text.
#[derive(Debug)]
enum Spelling {
    /// Bytes in the byte-level alphabet; `known` has the bytes with a token.
    ByteLevel { pre: PreTokenizer, known: Box<[bool; 256]> },
    /// Characters, a space as U+2581, other bytes as `<0x41>`.
    SentencePiece { space_prefix: bool },
}

/// What decoding needs; shared with the decoders of running requests.
#[derive(Debug)]
pub(crate) struct TokenTexts {
    bytes: Vec<Box<[u8]>>,
    kinds: Vec<TokenKind>,
    /// Whether the first space of a text belongs to the vocabulary's spelling and not to the text.
    pub(crate) strip_first_space: bool,
}

impl TokenTexts {
    /// The bytes of a token's text; those of control tokens are empty, as they are no part of an answer.
    pub(crate) fn bytes(&self, id: u32) -> Result<&[u8], TextError> {
        let unknown = TextError::UnknownToken { id, vocabulary: self.bytes.len() };
        match (self.bytes.get(id as usize), self.kinds.get(id as usize)) {
            (Some(_), Some(TokenKind::Control)) => Ok(&[]),
            (Some(bytes), Some(_)) => Ok(bytes),
            _ => Err(unknown),
        }
    }
}

/// A tokenizer made from a model file's vocabulary. Cheap to share behind an `Arc`; every method takes `&self`.
///
/// Byte-level vocabularies may lack single bytes (SmolLM2's lacks 21, some control characters among them). A
/// character with such a byte is encoded as U+FFFD, the replacement character: it neither vanishes nor turns into a
/// control token, and the model sees that something was there. If the replacement cannot be
/// written either, encoding is an error.
#[derive(Debug)]
pub struct Tokenizer {
    pipeline: Pipeline,
    spelling: Spelling,
    special: SpecialTable,
    texts: Arc<TokenTexts>,
    /// As the vocabulary spells them.
    tokens: Vec<String>,
    bos: Option<u32>,
    eos: Option<u32>,
    add_bos: bool,
    ends: BTreeSet<u32>,
}

impl Tokenizer {
    /// Tokenizer models that can be built: values of `tokenizer.ggml.model`.
    pub const MODELS: &'static str = "gpt2, llama";

    /// Checks a vocabulary and builds its tokenizer.
    ///
    /// # Errors
    /// [`TextError::UnsupportedModel`], [`TextError::UnsupportedPreTokenizer`], or [`TextError::Vocabulary`] naming
    /// the first entry that is wrong.
    pub fn new(source: VocabularySource) -> Result<Self, TextError> {
        let is_byte_level = match source.model.as_str() {
            "gpt2" => true,
            "llama" => false,
            other => {
                let found = quoted(other);
                return Err(TextError::UnsupportedModel { found, supported: Self::MODELS });
            }
        };
        let vocabulary = Vocabulary::check(source)?;
        let (pipeline, spelling) =
            if is_byte_level { byte_level(&vocabulary)? } else { sentence_pieces(&vocabulary)? };

        let token_bytes = |(text, kind): (&String, &TokenKind)| -> Box<[u8]> {
            let own = || text.as_bytes().to_vec();
            let bytes = match (&spelling, kind) {
                (_, TokenKind::Control | TokenKind::UserDefined) => own(),
                (Spelling::ByteLevel { .. }, _) => bytes_of_token(text),
                (Spelling::SentencePiece { .. }, TokenKind::Byte) => {
                    sentence_piece::byte_of_token(text).map_or_else(own, |byte| vec![byte])
                }
                (Spelling::SentencePiece { .. }, _) => text.replace(SPACE, " ").into_bytes(),
            };
            bytes.into_boxed_slice()
        };
        let bytes = vocabulary.source.tokens.iter().zip(&vocabulary.kinds).map(token_bytes).collect();
        let special = SpecialTable::new(vocabulary.added_tokens());

        let Vocabulary { source, kinds, ids } = vocabulary;
        let mut ends: BTreeSet<u32> = source.eos.into_iter().chain(source.eot).collect();
        ends.extend(END_NAMES.iter().filter_map(|name| ids.get(*name)).filter(|&&id| {
            let kind = kinds.get(id as usize);
            kind.is_some_and(|kind| kind.is_added())
        }));
        let strip_first_space = matches!(spelling, Spelling::SentencePiece { space_prefix: true });
        Ok(Self {
            pipeline,
            spelling,
            special,
            texts: Arc::new(TokenTexts { bytes, kinds, strip_first_space }),
            tokens: source.tokens,
            bos: source.bos,
            eos: source.eos,
            add_bos: source.add_bos.unwrap_or(!is_byte_level),
            ends,
        })
    }

    /// Encodes `text` as it is: nothing is added before or after.
    ///
    /// # Errors
    /// [`TextError::TextTooLong`]; [`TextError::Unencodable`] if the vocabulary can write neither a character nor
    /// its replacement.
    pub fn encode(&self, text: &str, special: SpecialTokens) -> Result<Vec<u32>, TextError> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(TextError::TextTooLong { found: text.len(), limit: MAX_TEXT_BYTES });
        }
        let mut ids = Vec::with_capacity(text.len() / 3);
        match special {
            SpecialTokens::AsText => self.encode_text(text, &mut ids)?,
            SpecialTokens::Parse => {
                for piece in self.special.split(text) {
                    match piece {
                        Piece::Text(text) => self.encode_text(text, &mut ids)?,
                        Piece::Special { id, .. } => ids.push(id),
                    }
                }
            }
        }
        Ok(ids)
    }

    /// Encodes a whole prompt: as [`encode`](Self::encode), with the begin-of-sequence token in front where the model
    /// wants one and the text does not bring it.
    pub fn encode_prompt(&self, text: &str, special: SpecialTokens) -> Result<Vec<u32>, TextError> {
        let ids = self.encode(text, special)?;
        Ok(self.with_bos(ids))
    }

    pub(crate) fn with_bos(&self, mut ids: Vec<u32>) -> Vec<u32> {
        if let Some(bos) = self.bos.filter(|bos| self.add_bos && ids.first() != Some(bos)) {
            ids.insert(0, bos);
        }
        ids
    }

    /// Appends the ids of one stretch of ordinary text.
    pub(crate) fn encode_text(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), TextError> {
        if text.is_empty() {
            return Ok(());
        }
        let text: Cow<'_, str> = match &self.spelling {
            Spelling::ByteLevel { pre, known } => {
                let normalised = pre.normalise(text)?.map_or(Cow::Borrowed(text), Cow::Owned);
                match replace_unknown(&normalised, known)? {
                    Some(replaced) => Cow::Owned(replaced),
                    None => normalised,
                }
            }
            Spelling::SentencePiece { space_prefix } => {
                let prefix = if *space_prefix { " " } else { "" };
                Cow::Owned([prefix, text].concat().replace(' ', SPACE.encode_utf8(&mut [0; 4])))
            }
        };
        let encoding = self.pipeline.encode_fast(text.as_ref(), false);
        ids.extend_from_slice(encoding.map_err(|e| TextError::Tokenizer(e.to_string()))?.get_ids());
        Ok(())
    }

    /// The text of `ids`, without control tokens. Bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// [`TextError::UnknownToken`] for an id outside the vocabulary.
    pub fn decode(&self, ids: &[u32]) -> Result<String, TextError> {
        let mut bytes = Vec::with_capacity(ids.len() * 4);
        for &id in ids {
            bytes.extend_from_slice(self.texts.bytes(id)?);
        }
        let start = usize::from(self.texts.strip_first_space && bytes.first() == Some(&b' '));
        Ok(String::from_utf8_lossy(&bytes[start..]).into_owned())
    }

    /// A decoder that takes one token at a time, for one answer.
    pub fn stream_decoder(&self) -> StreamDecoder {
        StreamDecoder::new(Arc::clone(&self.texts))
    }

    /// Number of tokens. A model's logits may have more columns than this (padding); those are no tokens.
    pub fn vocab_size(&self) -> usize {
        self.tokens.len()
    }

    /// A token as the vocabulary spells it.
    pub fn token(&self, id: u32) -> Option<&str> {
        self.tokens.get(id as usize).map(String::as_str)
    }

    /// The id of a token, by the vocabulary's spelling.
    pub fn token_id(&self, token: &str) -> Option<u32> {
        self.pipeline.token_to_id(token)
    }

    /// The bytes a token adds to a text: none for a control token.
    pub fn token_bytes(&self, id: u32) -> Result<&[u8], TextError> {
        self.texts.bytes(id)
    }

    /// What a token is for.
    pub fn token_kind(&self, id: u32) -> Option<TokenKind> {
        self.texts.kinds.get(id as usize).copied()
    }

    /// Begin of sequence.
    pub fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// End of sequence.
    pub fn eos(&self) -> Option<u32> {
        self.eos
    }

    /// The tokens after which an answer is over: `eos`, `eot`, and the control tokens with a name that means it.
    pub fn end_tokens(&self) -> impl Iterator<Item = u32> + '_ {
        self.ends.iter().copied()
    }

    pub(crate) fn special(&self) -> &SpecialTable {
        &self.special
    }
}

fn byte_level(vocabulary: &Vocabulary) -> Result<(Pipeline, Spelling), TextError> {
    let pre = PreTokenizer::from_name(vocabulary.source.pre.as_deref())?;
    let known = Box::new(std::array::from_fn(|byte| {
        // `byte` is below 256 here.
        let mut buffer = [0; 4];
        vocabulary.ids.contains_key(&*char_of_byte(byte as u8).encode_utf8(&mut buffer))
    }));
    let builder = BPE::builder().ignore_merges(pre.ignores_merges());
    let bpe = builder.vocab_and_merges(vocab(vocabulary), vocabulary.merge_pairs()?).build();
    let mut pipeline = Pipeline::new(bpe.map_err(|e| TextError::Tokenizer(e.to_string()))?);
    pipeline.with_pre_tokenizer(Some(pre.build()?));
    Ok((pipeline, Spelling::ByteLevel { pre, known }))
}

fn sentence_pieces(vocabulary: &Vocabulary) -> Result<(Pipeline, Spelling), TextError> {
    let unk = vocabulary.source.unk.and_then(|id| vocabulary.source.tokens.get(id as usize));
    if unk.is_none() && !sentence_piece::has_all_bytes(vocabulary) {
        return Err(VocabularyFault::NoByteFallback.into());
    }
    let merges = sentence_piece::merges_from_scores(vocabulary)?;
    let mut builder =
        BPE::builder().vocab_and_merges(vocab(vocabulary), merges).byte_fallback(true).fuse_unk(true);
    if let Some(unk) = unk {
        builder = builder.unk_token(unk.clone());
    }
    let bpe = builder.build().map_err(|e| TextError::Tokenizer(e.to_string()))?;
    let space_prefix = vocabulary.source.add_space_prefix.unwrap_or(true);
    Ok((Pipeline::new(bpe), Spelling::SentencePiece { space_prefix }))
}

fn vocab(vocabulary: &Vocabulary) -> Vocab {
    vocabulary.ids.iter().map(|(text, &id)| (text.clone(), id)).collect()
}

fn missing_byte(c: char, known: &[bool; 256]) -> Option<u8> {
    c.encode_utf8(&mut [0; 4]).bytes().find(|&byte| !known[usize::from(byte)])
}

/// `text` with U+FFFD for every character that has a byte without a token; `None` if there is none.
fn replace_unknown(text: &str, known: &[bool; 256]) -> Result<Option<String>, TextError> {
    let Some((character, byte)) = text.chars().find_map(|c| Some((c, missing_byte(c, known)?))) else {
        return Ok(None);
    };
    if REPLACEMENT.bytes().any(|byte| !known[usize::from(byte)]) {
        return Err(TextError::Unencodable { character, byte });
    }
    let replace = |c| if missing_byte(c, known).is_some() { char::REPLACEMENT_CHARACTER } else { c };
    Ok(Some(text.chars().map(replace).collect()))
}
