//! What both kinds of request say about the answer.

use crate::serve::error::{ApiError, echo};
use crate::serve::fields::{Fields, string, wrong};
use crate::serve::limits::{MAX_CHOICES, MAX_LOGIT_BIASES, MAX_STOP_BYTES, MAX_STOPS};
use halite_engine::Penalties;
use serde_json::Value;
use std::collections::BTreeMap;

/// How answers are made: `None` where the request does not say.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Generation {
    /// Answers to each prompt, at least one.
    pub n: usize,
    /// The most tokens of each answer, at least one.
    pub max_tokens: Option<usize>,
    /// Texts that end an answer, none of them empty.
    pub stop: Vec<String>,
    /// 0 to 2; 0 is greedy.
    pub temperature: Option<f32>,
    /// 0 to 1.
    pub top_p: Option<f32>,
    /// Candidates kept; 0 for all.
    pub top_k: Option<u32>,
    /// 0 to 1.
    pub min_p: Option<f32>,
    /// OpenAI's two from -2 to 2, and the repetition penalty of other servers, from 0.01 to 100.
    pub penalties: Penalties,
    /// By token id, from -100 to 100.
    pub logit_bias: BTreeMap<u32, f32>,
    /// The same seed gives the same answer.
    pub seed: Option<u64>,
    /// Whether the answer is sent as it comes, and with what.
    pub stream: Option<StreamOptions>,
}

/// What a stream contains besides the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamOptions {
    /// A last chunk without choices and with the usage.
    pub include_usage: bool,
}

impl Generation {
    pub(super) fn take(fields: &mut Fields) -> Result<Self, ApiError> {
        let n = fields.integer("n", 1..=MAX_CHOICES as i64)?.unwrap_or(1);
        let max_tokens = max_tokens(fields)?;
        // -1 and 0 both keep all of them; servers differ in which one they take.
        let top_k = fields.integer("top_k", -1..=i64::from(u32::MAX))?;
        Ok(Self {
            n: n as usize,
            max_tokens,
            stop: fields.take("stop").map(stop).transpose()?.unwrap_or_default(),
            temperature: fields.number("temperature", 0.0..=2.0)?,
            top_p: fields.number("top_p", 0.0..=1.0)?,
            top_k: top_k.map(|k| u32::try_from(k).unwrap_or(0)),
            min_p: fields.number("min_p", 0.0..=1.0)?,
            penalties: penalties(fields)?,
            logit_bias: fields.take("logit_bias").map(logit_bias).transpose()?.unwrap_or_default(),
            seed: seed(fields)?,
            stream: stream(fields)?,
        })
    }
}

/// One limit under either name.
fn max_tokens(fields: &mut Fields) -> Result<Option<usize>, ApiError> {
    let mut limit = |name| fields.integer(name, 1..=i64::MAX);
    match (limit("max_tokens")?, limit("max_completion_tokens")?) {
        (Some(one), Some(other)) if one != other => Err(ApiError::parameter(
            "max_tokens",
            format!("`max_tokens` is {one} and `max_completion_tokens` is {other}; give one of them"),
        )),
        (one, other) => Ok(one.or(other).map(|limit| usize::try_from(limit).unwrap_or(usize::MAX))),
    }
}

fn stop(value: Value) -> Result<Vec<String>, ApiError> {
    let (texts, is_list) = match value {
        Value::Array(texts) => (texts, true),
        text => (vec![text], false),
    };
    if texts.len() > MAX_STOPS {
        let found = texts.len();
        return Err(ApiError::parameter("stop", format!("`stop` has {found} strings, at most {MAX_STOPS}")));
    }
    let checked = texts.into_iter().enumerate().map(|(index, text)| {
        let path = if is_list { format!("stop[{index}]") } else { "stop".to_owned() };
        match text {
            Value::String(text) if (1..=MAX_STOP_BYTES).contains(&text.len()) => Ok(text),
            Value::String(text) => {
                let found = text.len();
                let message = format!("`{path}` has {found} bytes; expected 1 to {MAX_STOP_BYTES}");
                Err(ApiError::parameter(path, message))
            }
            other if is_list => string(other, &path),
            other => Err(wrong(&path, "a string or an array of strings", &other)),
        }
    });
    checked.collect()
}

fn penalties(fields: &mut Fields) -> Result<Penalties, ApiError> {
    let none = Penalties::NONE;
    Ok(none
        .with_repetition(fields.number("repetition_penalty", 0.01..=100.0)?.unwrap_or(none.repetition))
        .with_presence(fields.number("presence_penalty", -2.0..=2.0)?.unwrap_or(none.presence))
        .with_frequency(fields.number("frequency_penalty", -2.0..=2.0)?.unwrap_or(none.frequency)))
}

/// An object of token ids, as JSON's keys are: as strings.
fn logit_bias(value: Value) -> Result<BTreeMap<u32, f32>, ApiError> {
    let Value::Object(biases) = value else {
        return Err(wrong("logit_bias", "an object of token ids and numbers", &value));
    };
    if biases.len() > MAX_LOGIT_BIASES {
        let found = biases.len();
        let message = format!("`logit_bias` has {found} tokens, at most {MAX_LOGIT_BIASES}");
        return Err(ApiError::parameter("logit_bias", message));
    }
    let mut found = BTreeMap::new();
    for (token, bias) in biases {
        let id = token.parse::<u32>().ok();
        let path = || format!("logit_bias[{}]", echo(&token));
        let bias = match bias.as_f64().filter(|bias| (-100.0..=100.0).contains(bias)) {
            Some(bias) => bias as f32,
            None => return Err(wrong(&path(), "a number from -100 to 100", &bias)),
        };
        // "7" and "07" are the same token, and there is no telling which was meant.
        if id.is_none_or(|id| found.insert(id, bias).is_some()) {
            let message = format!("`{}`: expected each token id once, as a string of digits", path());
            return Err(ApiError::parameter("logit_bias", message));
        }
    }
    Ok(found)
}

/// Any 64-bit integer, with a sign or without.
fn seed(fields: &mut Fields) -> Result<Option<u64>, ApiError> {
    let Some(value) = fields.take("seed") else { return Ok(None) };
    let seed = value.as_u64().or_else(|| value.as_i64().map(i64::cast_unsigned));
    seed.map(Some).ok_or_else(|| wrong("seed", "an integer of 64 bits", &value))
}

fn stream(fields: &mut Fields) -> Result<Option<StreamOptions>, ApiError> {
    let streams = fields.boolean("stream")?.unwrap_or(false);
    let options = fields.take("stream_options");
    if !streams {
        return match options {
            None => Ok(None),
            Some(_) => {
                let message = "`stream_options` goes with `stream`: true only";
                Err(ApiError::parameter("stream_options", message))
            }
        };
    }
    let mut found = StreamOptions::default();
    if let Some(options) = options {
        let mut options = Fields::of(options, "stream_options")?;
        found.include_usage = options.boolean("include_usage")?.unwrap_or(false);
        // Padding against guessing token lengths on the wire: for a server on the open internet.
        options.ignore(&["include_obfuscation"]);
        options.done()?;
    }
    Ok(Some(found))
}
