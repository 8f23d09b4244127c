//! `tokenizer_config.json` and `special_tokens_map.json`: names of special tokens, and the chat template.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::error::TextError;
use super::tokenizer_file::AddedTokenSource;

/// The file's fields that matter here.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct TokenizerConfig {
    bos_token: Option<TokenName>,
    eos_token: Option<TokenName>,
    unk_token: Option<TokenName>,
    pad_token: Option<TokenName>,
    sep_token: Option<TokenName>,
    cls_token: Option<TokenName>,
    mask_token: Option<TokenName>,
    additional_special_tokens: Option<Vec<TokenName>>,
    extra_special_tokens: Option<Value>,
    added_tokens_decoder: Option<BTreeMap<u32, AddedTokenSource>>,
    pub(crate) chat_template: Option<TemplateSource>,
}

/// A token by its text, or with its flags.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum TokenName {
    Text(String),
    Token { content: String },
}

impl TokenName {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Token { content: text } => text,
        }
    }
}

/// One template, or several by name.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum TemplateSource {
    One(String),
    Several(Vec<NamedTemplate>),
}

/// A template by name.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct NamedTemplate {
    name: String,
    template: String,
}

impl TemplateSource {
    /// The template of that name, where there are several.
    pub(crate) fn named(&self, name: &str) -> Option<&str> {
        match self {
            Self::One(_) => None,
            Self::Several(list) => list.iter().find(|t| t.name == name).map(|t| t.template.as_str()),
        }
    }

    /// The template for a conversation without tools.
    pub(crate) fn default(&self) -> Option<&str> {
        match self {
            Self::One(template) => Some(template),
            Self::Several(_) => self.named("default"),
        }
    }
}

impl TokenizerConfig {
    /// Reads the file, and what it lacks from a `special_tokens_map.json`.
    pub(crate) fn read(config: Option<&[u8]>, map: Option<&[u8]>) -> Result<Self, TextError> {
        let mut merged = read(config, "tokenizer_config.json")?;
        let map = read(map, "special_tokens_map.json")?;
        let fill = |to: &mut Option<TokenName>, from| *to = to.take().or(from);
        fill(&mut merged.bos_token, map.bos_token);
        fill(&mut merged.eos_token, map.eos_token);
        fill(&mut merged.unk_token, map.unk_token);
        fill(&mut merged.pad_token, map.pad_token);
        fill(&mut merged.sep_token, map.sep_token);
        fill(&mut merged.cls_token, map.cls_token);
        fill(&mut merged.mask_token, map.mask_token);
        merged.additional_special_tokens = merged.additional_special_tokens.or(map.additional_special_tokens);
        Ok(merged)
    }

    /// Text of the begin-of-sequence token.
    pub(crate) fn bos(&self) -> Option<&str> {
        self.bos_token.as_ref().map(TokenName::text)
    }

    /// Text of the end-of-sequence token.
    pub(crate) fn eos(&self) -> Option<&str> {
        self.eos_token.as_ref().map(TokenName::text)
    }

    /// Added tokens with ids, most of which the tokenizer has too.
    pub(crate) fn added_tokens(&self) -> impl Iterator<Item = AddedTokenSource> {
        let tokens = self.added_tokens_decoder.iter().flatten();
        tokens.map(|(&id, token)| AddedTokenSource { id, ..token.clone() })
    }

    /// The texts of all tokens named as special.
    pub(crate) fn special(&self) -> impl Iterator<Item = &str> {
        let named = [
            &self.bos_token,
            &self.eos_token,
            &self.unk_token,
            &self.pad_token,
            &self.sep_token,
            &self.cls_token,
            &self.mask_token,
        ];
        let named = named.into_iter().flatten().chain(self.additional_special_tokens.iter().flatten());
        named.map(TokenName::text).chain(extra(self.extra_special_tokens.as_ref()))
    }
}

/// A list of tokens, or a map to tokens by a name of their use.
fn extra(tokens: Option<&Value>) -> impl Iterator<Item = &str> {
    let values: Vec<&Value> = match tokens {
        Some(Value::Array(items)) => items.iter().collect(),
        Some(Value::Object(fields)) => fields.values().collect(),
        _ => Vec::new(),
    };
    values.into_iter().filter_map(|value| value.as_str().or_else(|| value.get("content")?.as_str()))
}

fn read(json: Option<&[u8]>, file: &'static str) -> Result<TokenizerConfig, TextError> {
    let Some(json) = json else { return Ok(TokenizerConfig::default()) };
    serde_json::from_slice(json).map_err(|e| TextError::File { file, reason: crate::quoted::shortened(e) })
}
