//! A vocabulary as a model file gives it, and the checks it must pass.

use std::collections::{HashMap, HashSet};

use super::error::{TextError, VocabularyFault as Fault};
use crate::quoted::quoted;

/// Most tokens accepted. The largest vocabularies in use have about 262,000.
pub(crate) const MAX_TOKENS: usize = 1 << 22;
/// Most merges accepted.
pub(crate) const MAX_MERGES: usize = 1 << 23;
/// Longest token accepted, in bytes. The longest in use are runs of a few hundred spaces or dashes.
pub(crate) const MAX_TOKEN_BYTES: usize = 4096;
/// Most text accepted in all tokens together, in bytes.
pub(crate) const MAX_TOTAL_BYTES: usize = 1 << 27;

/// A tokenizer's vocabulary, as read from a model file; nothing in it has been checked yet.
///
/// Field names follow the GGUF keys below `tokenizer.ggml.`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct VocabularySource {
    /// `model`: "gpt2" for byte-level BPE, "llama" for SentencePiece with scores.
    pub model: String,
    /// `pre`: how text is cut into words before merging; see [`super::PreTokenizer`]. None means "default".
    pub pre: Option<String>,
    /// `tokens`: the text of each token, by id.
    pub tokens: Vec<String>,
    /// `merges`: pairs of tokens separated by a space, most important first ("gpt2" only).
    pub merges: Vec<String>,
    /// `scores`: log-probability of each token ("llama" only).
    pub scores: Vec<f32>,
    /// `token_type`: see [`TokenKind`]; empty means that all tokens are normal.
    pub token_types: Vec<i32>,
    /// `bos_token_id`: begin of sequence.
    pub bos: Option<u32>,
    /// `eos_token_id`: end of sequence.
    pub eos: Option<u32>,
    /// `eot_token_id`: end of a turn, where it differs from `eos`.
    pub eot: Option<u32>,
    /// `unknown_token_id`.
    pub unk: Option<u32>,
    /// `add_bos_token`: whether prompts begin with `bos`. None: no for "gpt2", yes for "llama".
    pub add_bos: Option<bool>,
    /// `add_space_prefix`: whether text gets a leading space ("llama" only). None: yes.
    pub add_space_prefix: Option<bool>,
}

impl VocabularySource {
    /// A vocabulary of `tokens` for the tokenizer `model`, everything else absent.
    pub fn new(model: impl Into<String>, tokens: Vec<String>) -> Self {
        Self { model: model.into(), tokens, ..Self::default() }
    }
}

/// What a token is for, from `tokenizer.ggml.token_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenKind {
    /// 1: a piece of text.
    Normal,
    /// 2: stands for what the vocabulary cannot write.
    Unknown,
    /// 3: steers the model (end of turn, begin of sequence); never part of an answer's text.
    Control,
    /// 4: added by a person, matched as a whole.
    UserDefined,
    /// 5: a hole in the vocabulary.
    Unused,
    /// 6: one byte, written `<0x41>`.
    Byte,
}

impl TokenKind {
    fn from_gguf(id: usize, found: i32) -> Result<Self, Fault> {
        Ok(match found {
            1 => Self::Normal,
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            5 => Self::Unused,
            6 => Self::Byte,
            _ => return Err(Fault::TokenType { id, found }),
        })
    }

    /// Whether the token is matched as a whole where special tokens are parsed.
    pub fn is_added(self) -> bool {
        matches!(self, Self::Control | Self::UserDefined)
    }
}

/// A vocabulary that passed the checks: ids are unique by text and every special id exists.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    pub(crate) source: VocabularySource,
    pub(crate) kinds: Vec<TokenKind>,
    pub(crate) ids: HashMap<String, u32>,
}

impl Vocabulary {
    pub(crate) fn check(source: VocabularySource) -> Result<Self, TextError> {
        let tokens = source.tokens.len();
        if tokens == 0 {
            return Err(Fault::Empty.into());
        }
        limit("tokens", tokens, MAX_TOKENS)?;
        limit("merges", source.merges.len(), MAX_MERGES)?;
        same_length("token types", source.token_types.len(), tokens)?;
        same_length("scores", source.scores.len(), tokens)?;
        if let Some(id) = source.tokens.iter().position(|t| t.len() > MAX_TOKEN_BYTES) {
            let found = source.tokens[id].len();
            return Err(Fault::TokenTooLong { id, found, limit: MAX_TOKEN_BYTES }.into());
        }
        // No overflow: at most 2^22 tokens of 2^12 bytes.
        limit("bytes of token text", source.tokens.iter().map(String::len).sum(), MAX_TOTAL_BYTES)?;
        for (what, id) in [("bos", source.bos), ("eos", source.eos), ("eot", source.eot), ("unk", source.unk)]
        {
            if let Some(id) = id.filter(|&id| id as usize >= tokens) {
                return Err(Fault::SpecialId { what, id, tokens }.into());
            }
        }

        let kinds = if source.token_types.is_empty() {
            vec![TokenKind::Normal; tokens]
        } else {
            let typed = source.token_types.iter().enumerate();
            typed.map(|(id, &found)| TokenKind::from_gguf(id, found)).collect::<Result<_, _>>()?
        };

        let mut ids = HashMap::with_capacity(tokens);
        for ((second, text), kind) in (0u32..).zip(&source.tokens).zip(&kinds) {
            if text.is_empty() && kind.is_added() {
                return Err(Fault::EmptySpecialToken { id: second }.into());
            }
            if let Some(first) = ids.insert(text.clone(), second) {
                return Err(Fault::DuplicateToken { first, second, text: quoted(text) }.into());
            }
        }
        Ok(Self { source, kinds, ids })
    }

    /// The merges as pairs, each checked to join two tokens into a third.
    pub(crate) fn merge_pairs(&self) -> Result<Vec<(String, String)>, TextError> {
        let mut seen = HashSet::with_capacity(self.source.merges.len());
        let mut pairs = Vec::with_capacity(self.source.merges.len());
        for (rank, text) in self.source.merges.iter().enumerate() {
            let form = || Fault::MergeForm { rank, text: quoted(text) };
            let (left, right) = text.split_once(' ').ok_or_else(form)?;
            if left.is_empty() || right.is_empty() || right.contains(' ') {
                return Err(form().into());
            }
            if !seen.insert(text.as_str()) {
                return Err(Fault::DuplicateMerge { rank, text: quoted(text) }.into());
            }
            let joined = [left, right].concat();
            for token in [left, right, joined.as_str()] {
                if !self.ids.contains_key(token) {
                    return Err(Fault::MergeToken { rank, token: quoted(token) }.into());
                }
            }
            pairs.push((left.to_owned(), right.to_owned()));
        }
        Ok(pairs)
    }

    /// Text and id of every control and user-defined token.
    pub(crate) fn added_tokens(&self) -> impl Iterator<Item = (&str, u32, TokenKind)> {
        let tokens = self.source.tokens.iter().zip(&self.kinds).zip(0u32..);
        tokens.filter(|((_, kind), _)| kind.is_added()).map(|((text, kind), id)| (text.as_str(), id, *kind))
    }
}

/// Refuses more than is accepted.
pub(crate) fn limit(what: &'static str, found: usize, limit: usize) -> Result<(), Fault> {
    if found > limit { Err(Fault::TooMany { what, found, limit }) } else { Ok(()) }
}

fn same_length(what: &'static str, found: usize, tokens: usize) -> Result<(), Fault> {
    if found != 0 && found != tokens { Err(Fault::LengthMismatch { what, found, tokens }) } else { Ok(()) }
}
