//! A tokenizer from the files of a Hugging Face model folder.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use tokenizers::models::bpe::BPE;

use super::decoder::Decoder;
use super::error::{TextError, VocabularyFault as Fault};
use super::file_vocabulary::FileVocabulary;
use super::normalize::Normalizer;
use super::pattern::Clock;
use super::pipeline::Pipeline;
use super::post_processor::PostProcessor;
use super::sentence_piece::{byte_of_token, has_all_bytes};
use super::special_token::{Matching, SpecialToken};
use super::special_tokens::SpecialTable;
use super::token_texts::TokenTexts;
use super::tokenizer::{Tokenizer, named_ends};
use super::tokenizer_config::TokenizerConfig;
use super::tokenizer_file::{AddedTokenSource, Merges, ModelSource, TokenizerFile};
use super::vocabulary::TokenKind;
use super::word_splitter::WordSplitter;
use crate::quoted::quoted;

/// The files of a model folder that make a tokenizer, as bytes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TokenizerFiles<'f> {
    /// `tokenizer.json`: the tokenizer itself.
    pub tokenizer: &'f [u8],
    /// `tokenizer_config.json`: which tokens begin and end a text, and further special ones.
    pub config: Option<&'f [u8]>,
    /// `special_tokens_map.json`: read for what the configuration leaves out.
    pub special_tokens_map: Option<&'f [u8]>,
}

impl<'f> TokenizerFiles<'f> {
    /// A `tokenizer.json` alone.
    pub fn new(tokenizer: &'f [u8]) -> Self {
        Self { tokenizer, config: None, special_tokens_map: None }
    }
}

impl Tokenizer {
    /// Builds the tokenizer of a model folder; [`read_folder`](super::read_folder) reads the files too.
    ///
    /// Byte-pair encoding is supported, byte-level or with bytes for what the vocabulary lacks. Token ids equal those
    /// of the Python package `tokenizers`, and [`encode_prompt`](Self::encode_prompt) adds what the file's
    /// post-processor adds: like `transformers` 5, whatever `add_bos_token` in the configuration says. Three things differ on purpose. A character that the vocabulary cannot write, which
    /// Python drops, becomes U+FFFD. Text never merges into a control token. Broken sequences of byte tokens
    /// (`<0xE4>`) decode to one U+FFFD for each maximal broken part, where Python writes one for each byte, whole
    /// characters among them included.
    ///
    /// # Errors
    /// [`TextError::File`] where a file is not of the expected form, with the place;
    /// [`TextError::UnsupportedTokenizer`], [`TextError::Pattern`] or [`TextError::Vocabulary`].
    pub fn from_files(files: TokenizerFiles<'_>) -> Result<Self, TextError> {
        let config = TokenizerConfig::read(files.config, files.special_tokens_map)?;
        let file = TokenizerFile::read(files.tokenizer)?;
        Self::from_sources(file, &config)
    }

    pub(super) fn from_sources(mut file: TokenizerFile, config: &TokenizerConfig) -> Result<Self, TextError> {
        let vocabulary = FileVocabulary::new(&mut file, config)?;
        let normalizer = Normalizer::new(file.normalizer.as_ref())?;
        let splitter = WordSplitter::new(file.pre_tokenizer.as_ref())?;
        let decoder = Decoder::new(file.decoder.as_ref())?;
        check_unknown(&file.model, &vocabulary, &splitter)?;

        let added = added_tokens(&vocabulary, &normalizer)?;
        let kinds = kinds(&file.model, &vocabulary, &splitter);
        let clock = Clock::start();
        let bytes = vocabulary.tokens.iter().map(|text| decoder.bytes(text, clock));
        let mut bytes = bytes.collect::<Result<Vec<_>, _>>()?;
        for (token, normal) in &added {
            let own = match normal.as_deref() {
                _ if token.kind == TokenKind::Control => Box::default(),
                Some(normal) => decoder.bytes(normal, clock)?,
                None => continue,
            };
            if let Some(bytes) = bytes.get_mut(token.id as usize) {
                *bytes = own;
            }
        }
        let (special, spaces) = (SpecialTable::new(added.clone()), SpecialTable::spaces(added));

        let id = |text: Option<&str>| -> Option<u32> {
            special.get(text?).map(|token| token.id).or_else(|| vocabulary.ids.get(text?).copied())
        };
        let (bos, eos) = (id(config.bos()), id(config.eos()));
        let post_processor = match &file.post_processor {
            Some(source) => source.build(vocabulary.tokens.len())?,
            None => PostProcessor::Around { before: Vec::new(), after: Vec::new() },
        };
        let ends: BTreeSet<u32> = eos.into_iter().chain(named_ends(&special)).collect();
        let texts = Arc::new(TokenTexts::new(bytes, kinds, decoder.first_space));
        let FileVocabulary { tokens, .. } = &vocabulary;
        let tokens = tokens.clone();
        let model = model(file.model, vocabulary)?;
        let pipeline = Pipeline::new(normalizer, splitter, model);
        Ok(Self { pipeline, special, spaces, texts, tokens, bos, eos, post_processor, ends })
    }
}

/// Refuses a vocabulary that could not write every text.
fn check_unknown(
    model: &ModelSource,
    vocabulary: &FileVocabulary,
    splitter: &WordSplitter,
) -> Result<(), TextError> {
    if let Some(unk) = &model.unk_token
        && !vocabulary.ids.contains_key(unk)
    {
        return Err(TextError::file(format!("model.unk_token {} is not in the vocabulary", quoted(unk))));
    }
    let falls_back = model.byte_fallback == Some(true) && has_all_bytes(&vocabulary.ids);
    if !splitter.is_byte_level() && !falls_back && model.unk_token.is_none() {
        return Err(Fault::NoByteFallback.into());
    }
    Ok(())
}

fn kinds(model: &ModelSource, vocabulary: &FileVocabulary, splitter: &WordSplitter) -> Vec<TokenKind> {
    let falls_back = model.byte_fallback == Some(true);
    let kind = |text: &String| match text.as_str() {
        "" => TokenKind::Unused,
        text if falls_back && byte_of_token(text).is_some() => TokenKind::Byte,
        _ => TokenKind::Normal,
    };
    let mut kinds: Vec<TokenKind> = vocabulary.tokens.iter().map(kind).collect();
    let mut set = |id: u32, kind| {
        if let Some(slot) = kinds.get_mut(id as usize) {
            *slot = kind;
        }
    };
    for token in &vocabulary.added {
        set(token.id, if token.special { TokenKind::Control } else { TokenKind::UserDefined });
    }
    // Where everything has bytes, nothing is unknown, and the token may be there for another reason.
    let writes_all = splitter.is_byte_level() || (falls_back && has_all_bytes(&vocabulary.ids));
    if let Some(&id) =
        model.unk_token.as_ref().filter(|_| !writes_all).and_then(|unk| vocabulary.ids.get(unk))
    {
        set(id, TokenKind::Unknown);
    }
    kinds
}

/// The added tokens; those that are looked for in normalised text, with what they are there.
fn added_tokens(
    vocabulary: &FileVocabulary,
    normalizer: &Normalizer,
) -> Result<Vec<(SpecialToken, Option<String>)>, TextError> {
    let clock = Clock::start();
    let token = |source: &AddedTokenSource| {
        let kind = if source.special { TokenKind::Control } else { TokenKind::UserDefined };
        let mut token = SpecialToken::new(&source.content, source.id, kind);
        (token.lstrip, token.rstrip) = (source.lstrip, source.rstrip);
        token.single_word = source.single_word;
        token.is_piece = vocabulary.ids.contains_key(&source.content);
        if !source.normalized {
            return Ok((token, None));
        }
        token.matching = Matching::Normalized;
        let normal = normalizer.apply(&source.content, clock)?.into_owned();
        Ok((token, Some(normal)))
    };
    vocabulary.added.iter().map(token).collect()
}

/// The model, without the control tokens: no text can become one by merging.
fn model(source: ModelSource, vocabulary: FileVocabulary) -> Result<BPE, TextError> {
    let FileVocabulary { mut ids, added, .. } = vocabulary;
    let Merges(mut merges) = source.merges;
    for (rank, (left, right)) in merges.iter().enumerate() {
        let joined = [left.as_str(), right].concat();
        for token in [left, right, &joined] {
            if !ids.contains_key(token) {
                return Err(Fault::MergeToken { rank, token: quoted(token) }.into());
            }
        }
    }
    let keeps = |text: &String| source.unk_token.as_ref() != Some(text);
    let control = added.iter().filter(|token| token.special).map(|token| &token.content);
    let control: HashSet<&String> = control.filter(|text| keeps(text) && ids.contains_key(*text)).collect();
    ids.retain(|text, _| !control.contains(text));
    if !control.is_empty() {
        merges.retain(|(left, right)| {
            let parts = [left, right, &[left.as_str(), right].concat()];
            parts.iter().all(|text| ids.contains_key(*text))
        });
    }
    let mut builder = BPE::builder()
        .vocab_and_merges(ids.into_iter().collect::<tokenizers::models::bpe::Vocab>(), merges)
        .fuse_unk(source.fuse_unk == Some(true))
        .byte_fallback(source.byte_fallback == Some(true))
        .ignore_merges(source.ignore_merges == Some(true));
    if let Some(unk) = source.unk_token {
        builder = builder.unk_token(unk);
    }
    builder.build().map_err(|e| TextError::Tokenizer(e.to_string()))
}
