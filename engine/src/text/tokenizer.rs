//! A model's tokenizer: text to token ids and back.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use tokenizers::models::bpe::{BPE, Vocab};

use super::byte_level::bytes_of_token;
use super::error::{TextError, VocabularyFault};
use super::normalize::{Normalizer, NormalizerSource};
use super::pattern::{Clock, PatternSource};
use super::pipeline::{Added, Pipeline};
use super::post_processor::PostProcessor;
use super::pre_tokenizer::PreTokenizer;
use super::sentence_piece::{self, SPACE};
use super::special_token::{SpecialToken, is_space};
use super::special_tokens::{SpecialTable, SpecialTokens};
use super::stream_decoder::StreamDecoder;
use super::token_texts::{FirstSpace, TokenTexts};
use super::vocabulary::{TokenKind, Vocabulary, VocabularySource};
use super::word_splitter::WordSplitter;
use crate::quoted::quoted;

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

/// A tokenizer made from a model file. Cheap to share behind an `Arc`; every method takes `&self`.
///
/// Byte-level vocabularies may lack single bytes (SmolLM2's lacks 21, some control characters among them). A
/// character with such a byte is encoded as U+FFFD, the replacement character: it neither vanishes nor turns into a
/// control token, and the model sees that something was there. If the replacement cannot be
/// written either, encoding is an error.
#[derive(Debug)]
pub struct Tokenizer {
    pub(super) pipeline: Pipeline,
    pub(super) special: SpecialTable,
    /// Those of them that are found in any text: user-defined runs of white space.
    pub(super) spaces: SpecialTable,
    pub(super) texts: Arc<TokenTexts>,
    /// As the vocabulary spells them; a hole in it is empty.
    pub(super) tokens: Vec<String>,
    pub(super) bos: Option<u32>,
    pub(super) eos: Option<u32>,
    pub(super) post_processor: PostProcessor,
    pub(super) ends: BTreeSet<u32>,
}

impl Tokenizer {
    /// Tokenizer models that can be built: values of `tokenizer.ggml.model`.
    pub const MODELS: &'static str = "gpt2, llama";

    /// Checks a GGUF file's vocabulary and builds its tokenizer.
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
        let pipeline = if is_byte_level { byte_level(&vocabulary)? } else { sentence_pieces(&vocabulary)? };

        let token_bytes = |(text, kind): (&String, &TokenKind)| -> Box<[u8]> {
            let own = || text.as_bytes().to_vec();
            let bytes = match kind {
                TokenKind::UserDefined if !is_byte_level => user_text(text).into_owned().into_bytes(),
                TokenKind::Control | TokenKind::UserDefined => own(),
                _ if is_byte_level => bytes_of_token(text),
                TokenKind::Byte => sentence_piece::byte_of_token(text).map_or_else(own, |byte| vec![byte]),
                _ => text.replace(SPACE, " ").into_bytes(),
            };
            bytes.into_boxed_slice()
        };
        let bytes = vocabulary.source.tokens.iter().zip(&vocabulary.kinds).map(token_bytes).collect();
        let added = vocabulary.added_tokens();
        let added = added.map(|(text, id, kind)| match kind {
            TokenKind::UserDefined if !is_byte_level => SpecialToken::new(&user_text(text), id, kind),
            _ => SpecialToken::new(text, id, kind),
        });
        let added: Vec<_> = added.map(|token| (token, None)).collect();
        let (special, spaces) = (SpecialTable::new(added.clone()), SpecialTable::spaces(added));

        let Vocabulary { source, kinds, .. } = vocabulary;
        let ends = source.eos.into_iter().chain(source.eot).chain(named_ends(&special)).collect();
        let prefix_space = !is_byte_level && source.add_space_prefix.unwrap_or(true);
        let first_space = if prefix_space { FirstSpace::Strip } else { FirstSpace::Keep };
        let add_bos = source.add_bos.unwrap_or(!is_byte_level);
        Ok(Self {
            pipeline,
            special,
            spaces,
            texts: Arc::new(TokenTexts::new(bytes, kinds, first_space)),
            tokens: source.tokens,
            bos: source.bos,
            eos: source.eos,
            post_processor: PostProcessor::Begin(source.bos.filter(|_| add_bos)),
            ends,
        })
    }

    /// The same with more tokens after which an answer is over, such as those of `generation_config.json`.
    #[must_use]
    pub fn with_end_tokens(mut self, ids: impl IntoIterator<Item = u32>) -> Self {
        self.ends.extend(ids);
        self
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
        let table = match special {
            SpecialTokens::Parse => &self.special,
            SpecialTokens::AsText => &self.spaces,
        };
        let mut ids = Vec::with_capacity(text.len() / 3);
        self.pipeline.encode(text, Added { table, mark: None }, &mut ids)?;
        Ok(ids)
    }

    /// Encodes a whole prompt: as [`encode`](Self::encode), with what the model wants round a text. That is the
    /// begin-of-sequence token where the text does not bring it, for a GGUF file; what its post-processor adds, for a
    /// `tokenizer.json`.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn encode_prompt(&self, text: &str, special: SpecialTokens) -> Result<Vec<u32>, TextError> {
        Ok(self.post_processor.prompt(self.encode(text, special)?))
    }

    /// Encodes what a chat template wrote. Nothing with `mark` in it is a special token, and `mark` vanishes.
    pub(crate) fn encode_chat(&self, text: &str, mark: char) -> Result<Vec<u32>, TextError> {
        let mut ids = Vec::with_capacity(text.len() / 3);
        self.pipeline.encode(text, Added { table: &self.special, mark: Some(mark) }, &mut ids)?;
        Ok(self.post_processor.chat(ids))
    }

    /// The text of `ids`, without control tokens. Bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// [`TextError::UnknownToken`] for an id outside the vocabulary.
    pub fn decode(&self, ids: &[u32]) -> Result<String, TextError> {
        let mut bytes = Vec::with_capacity(ids.len() * 4);
        let mut first = self.texts.first_space();
        for &id in ids {
            first.append(self.texts.bytes(id)?, &mut bytes);
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A decoder that takes one token at a time, for one answer.
    pub fn stream_decoder(&self) -> StreamDecoder {
        StreamDecoder::new(Arc::clone(&self.texts))
    }

    /// Number of tokens. A model's logits may have more columns than this (padding); those are no tokens.
    pub fn vocab_size(&self) -> usize {
        self.tokens.len()
    }

    /// A token as the vocabulary spells it; `None` for an id outside it, or for a hole in it.
    pub fn token(&self, id: u32) -> Option<&str> {
        self.tokens.get(id as usize).map(String::as_str).filter(|token| !token.is_empty())
    }

    /// The id of a token, by the vocabulary's spelling.
    pub fn token_id(&self, token: &str) -> Option<u32> {
        self.special.get(token).map(|token| token.id).or_else(|| self.pipeline.token_to_id(token))
    }

    /// The bytes a token adds to a text: none for a control token.
    pub fn token_bytes(&self, id: u32) -> Result<&[u8], TextError> {
        self.texts.bytes(id)
    }

    /// What a token is for.
    pub fn token_kind(&self, id: u32) -> Option<TokenKind> {
        self.texts.kind(id)
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

    /// The text as the model's normalizer leaves it.
    pub(crate) fn normalised<'t>(&self, text: &'t str) -> Result<Cow<'t, str>, TextError> {
        self.pipeline.normalizer.apply(text, Clock::start())
    }

    pub(crate) fn special(&self) -> &SpecialTable {
        &self.special
    }
}

/// A SentencePiece vocabulary's user-defined token as a text has it. Old files spell runs of spaces as pieces do.
fn user_text(token: &str) -> Cow<'_, str> {
    if is_space(token) { Cow::Owned(token.replace(SPACE, " ")) } else { Cow::Borrowed(token) }
}

/// The control and user-defined tokens whose names say that they end an answer.
pub(super) fn named_ends(special: &SpecialTable) -> impl Iterator<Item = u32> + '_ {
    END_NAMES.iter().filter_map(|name| special.get(name)).map(|token| token.id)
}

fn byte_level(vocabulary: &Vocabulary) -> Result<Pipeline, TextError> {
    let pre = PreTokenizer::from_name(vocabulary.source.pre.as_deref())?;
    let builder = BPE::builder().ignore_merges(pre.ignores_merges());
    let bpe = builder.vocab_and_merges(vocab(vocabulary), vocabulary.merge_pairs()?).build();
    let bpe = bpe.map_err(|e| TextError::Tokenizer(e.to_string()))?;
    Ok(Pipeline::new(Normalizer::new(pre.normalizer().as_ref())?, pre.splitter()?, bpe))
}

fn sentence_pieces(vocabulary: &Vocabulary) -> Result<Pipeline, TextError> {
    let unk = vocabulary.source.unk.and_then(|id| vocabulary.source.tokens.get(id as usize));
    if unk.is_none() && !sentence_piece::has_all_bytes(&vocabulary.ids) {
        return Err(VocabularyFault::NoByteFallback.into());
    }
    let merges = sentence_piece::merges_from_scores(vocabulary)?;
    let mut builder =
        BPE::builder().vocab_and_merges(vocab(vocabulary), merges).byte_fallback(true).fuse_unk(true);
    if let Some(unk) = unk {
        builder = builder.unk_token(unk.clone());
    }
    let bpe = builder.build().map_err(|e| TextError::Tokenizer(e.to_string()))?;
    let mut normalizer = Normalizer::default();
    if vocabulary.source.add_space_prefix.unwrap_or(true) {
        normalizer.add(&NormalizerSource::Prepend { prepend: SPACE.into() })?;
    }
    let pattern = PatternSource::String(" ".into());
    normalizer.add(&NormalizerSource::Replace { pattern, content: SPACE.into() })?;
    Ok(Pipeline::new(normalizer, WordSplitter::default(), bpe))
}

fn vocab(vocabulary: &Vocabulary) -> Vocab {
    vocabulary.ids.iter().map(|(text, &id)| (text.clone(), id)).collect()
}
