//! Pre-tokenizers of GGUF files: how text is cut into words, by the name a file gives.
//!
//! The patterns are facts about published tokenizers: Llama 3 (Meta's `tokenizer.json`) and Qwen2 (Alibaba's
//! `tokenizer.json`), and GPT-2's, which `tokenizer.json` files mean too.

use super::error::TextError;
use super::normalize::NormalizerSource;
use super::word_splitter::{GPT2_PATTERN, WordSplitter};
use crate::quoted::quoted;

/// Up to three digits a word; contractions in any case; a line's breaks stay together.
const LLAMA3_PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// As Llama 3, but every digit is a word.
const QWEN2_PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// A family of pre-tokenizers. Several names in model files mean the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PreTokenizer {
    /// GPT-2's pattern: letters, digits and other signs apart, each with one leading space.
    Gpt2,
    /// Every digit alone, then GPT-2's pattern.
    DigitsThenGpt2,
    /// Llama 3's pattern; a word that is itself a token is not merged from parts.
    Llama3,
    /// Qwen2's pattern, on text in Unicode normal form C.
    Qwen2,
}

impl PreTokenizer {
    /// The names accepted in `tokenizer.ggml.pre` and what they mean.
    pub const NAMES: &[(&str, PreTokenizer)] = &[
        ("default", PreTokenizer::Gpt2),
        ("gpt-2", PreTokenizer::Gpt2),
        ("gpt2", PreTokenizer::Gpt2),
        ("smollm", PreTokenizer::DigitsThenGpt2),
        ("starcoder", PreTokenizer::DigitsThenGpt2),
        ("refact", PreTokenizer::DigitsThenGpt2),
        ("codeshell", PreTokenizer::DigitsThenGpt2),
        ("llama3", PreTokenizer::Llama3),
        ("llama-v3", PreTokenizer::Llama3),
        ("llama-bpe", PreTokenizer::Llama3),
        ("qwen2", PreTokenizer::Qwen2),
    ];

    /// Looks a name up; `None` means "default".
    pub fn from_name(name: Option<&str>) -> Result<Self, TextError> {
        let name = name.unwrap_or("default");
        match Self::NAMES.iter().find(|(known, _)| *known == name) {
            Some(&(_, pre)) => Ok(pre),
            None => Err(TextError::UnsupportedPreTokenizer {
                found: quoted(name),
                supported: Self::NAMES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// Whether a word that is itself a token is taken whole, whatever the merges say.
    pub(crate) fn ignores_merges(self) -> bool {
        self == Self::Llama3
    }

    /// What is done to the text first.
    pub(crate) fn normalizer(self) -> Option<NormalizerSource> {
        (self == Self::Qwen2).then_some(NormalizerSource::Nfc)
    }

    /// The steps, ending with the one that writes bytes in the byte-level alphabet.
    pub(crate) fn splitter(self) -> Result<WordSplitter, TextError> {
        let splitter = WordSplitter::default();
        let splitter = match self {
            Self::Gpt2 => splitter.split(GPT2_PATTERN)?,
            Self::DigitsThenGpt2 => splitter.digits()?.split(GPT2_PATTERN)?,
            Self::Llama3 => splitter.split(LLAMA3_PATTERN)?,
            Self::Qwen2 => splitter.split(QWEN2_PATTERN)?,
        };
        splitter.bytes()
    }
}
