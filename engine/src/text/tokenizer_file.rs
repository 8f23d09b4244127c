//! `tokenizer.json` as the `tokenizers` package writes it, read within bounds.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::decoding::DecoderSource;
use super::error::TextError;
use super::normalize::NormalizerSource;
use super::prompt_frame::PostProcessorSource;
use super::vocabulary::{MAX_MERGES, MAX_TOKENS};
use super::words::WordsSource;

/// Models that can be built: values of `model.type`.
const MODELS: &str = "BPE";

/// The parts of the file that matter here. Truncation and padding are for training.
#[derive(Debug, Deserialize)]
pub(crate) struct TokenizerFile {
    #[serde(default)]
    pub(crate) added_tokens: Vec<AddedTokenSource>,
    pub(crate) normalizer: Option<NormalizerSource>,
    pub(crate) pre_tokenizer: Option<WordsSource>,
    pub(crate) post_processor: Option<PostProcessorSource>,
    pub(crate) decoder: Option<DecoderSource>,
    pub(crate) model: ModelSource,
}

/// A token that is matched as a whole.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct AddedTokenSource {
    #[serde(default)]
    pub(crate) id: u32,
    pub(crate) content: String,
    #[serde(default)]
    pub(crate) single_word: bool,
    #[serde(default)]
    pub(crate) lstrip: bool,
    #[serde(default)]
    pub(crate) rstrip: bool,
    #[serde(default)]
    pub(crate) normalized: bool,
    #[serde(default)]
    pub(crate) special: bool,
}

/// The model: tokens and how they merge.
#[derive(Debug, Deserialize)]
pub(crate) struct ModelSource {
    #[serde(rename = "type")]
    kind: Option<String>,
    dropout: Option<f32>,
    pub(crate) unk_token: Option<String>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    #[serde(default)]
    pub(crate) fuse_unk: Option<bool>,
    #[serde(default)]
    pub(crate) byte_fallback: Option<bool>,
    #[serde(default)]
    pub(crate) ignore_merges: Option<bool>,
    pub(crate) vocab: Entries,
    #[serde(default)]
    pub(crate) merges: Merges,
}

impl TokenizerFile {
    /// Reads the file and refuses what cannot be built.
    pub(crate) fn read(json: &[u8]) -> Result<Self, TextError> {
        let file: Self =
            serde_json::from_slice(json).map_err(|e| TextError::file(crate::quoted::shortened(e)))?;
        let model = &file.model;
        let unsupported = |what: &'static str, found: String| {
            Err(TextError::UnsupportedTokenizer { what, found, supported: MODELS })
        };
        match model.kind.as_deref() {
            Some("BPE") | None => {}
            Some(other) => return unsupported("model.type", crate::quoted::quoted(other)),
        }
        if let Some(dropout) = model.dropout.filter(|&dropout| dropout != 0.0) {
            return unsupported("model.dropout", dropout.to_string());
        }
        for affix in [&model.continuing_subword_prefix, &model.end_of_word_suffix] {
            if let Some(affix) = affix.as_deref().filter(|affix| !affix.is_empty()) {
                return unsupported(
                    "model with a prefix or suffix for parts of words",
                    crate::quoted::quoted(affix),
                );
            }
        }
        Ok(file)
    }
}

/// The vocabulary, as listed.
#[derive(Debug, Default)]
pub(crate) struct Entries(pub(crate) Vec<(String, u32)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a map of at most {MAX_TOKENS} tokens to their ids")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            if entries.len() == MAX_TOKENS {
                return Err(A::Error::invalid_length(MAX_TOKENS + 1, &self));
            }
            entries.push(entry);
        }
        Ok(Entries(entries))
    }

    /// A list of scores, as Unigram has it. Its type is refused afterwards, by name.
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Entries, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Entries::default())
    }
}

/// The merges, most important first.
#[derive(Debug, Default)]
pub(crate) struct Merges(pub(crate) Vec<(String, String)>);

impl<'de> Deserialize<'de> for Merges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(MergesVisitor)
    }
}

struct MergesVisitor;

impl<'de> Visitor<'de> for MergesVisitor {
    type Value = Merges;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MAX_MERGES} merges")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Merges, A::Error> {
        let mut merges = Vec::new();
        while let Some(merge) = seq.next_element_seed(MergeSeed)? {
            if merges.len() == MAX_MERGES {
                return Err(A::Error::invalid_length(MAX_MERGES + 1, &self));
            }
            merges.extend(merge);
        }
        Ok(Merges(merges))
    }
}

/// One merge: `"a b"` or `["a", "b"]`; nothing for the comment that may head a list.
struct MergeSeed;

impl<'de> DeserializeSeed<'de> for MergeSeed {
    type Value = Option<(String, String)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for MergeSeed {
    type Value = Option<(String, String)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("two tokens, in a list or with a space between")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        if text.starts_with("#version") {
            return Ok(None);
        }
        let pair = text.split_once(' ').filter(|(_, right)| !right.contains(' '));
        let pair = pair.map(|(left, right)| (left.to_owned(), right.to_owned()));
        pair.map(Some)
            .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(&crate::quoted::quoted(text)), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let missing = |found| A::Error::invalid_length(found, &"two tokens");
        let left = seq.next_element()?.ok_or_else(|| missing(0))?;
        let right = seq.next_element()?.ok_or_else(|| missing(1))?;
        if seq.next_element::<IgnoredAny>()?.is_some() {
            return Err(missing(3));
        }
        Ok(Some((left, right)))
    }
}
