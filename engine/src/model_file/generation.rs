//! `generation_config.json`: how the model's makers sample from it, and what ends an answer.

use super::json::JsonObject;
use crate::Result;
use crate::quoted::quoted;
use std::path::Path;

const FILE: &str = "generation_config.json";

/// How the model's makers sample from it. `None`: they do not say.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct GenerationDefaults {
    /// As in [`SamplingParams`](crate::SamplingParams); 0 where they do not sample.
    pub temperature: Option<f32>,
    /// As in [`SamplingParams`](crate::SamplingParams).
    pub top_k: Option<u32>,
    /// As in [`SamplingParams`](crate::SamplingParams).
    pub top_p: Option<f32>,
    /// As in [`SamplingParams`](crate::SamplingParams).
    pub min_p: Option<f32>,
}

impl GenerationDefaults {
    /// Reads the file; a folder without it says nothing.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let Some(json) = JsonObject::open(folder, FILE)? else { return Ok(Self::default()) };
        let number = |name: &str, low: f32, high: f32| -> Result<Option<f32>> {
            match json.opt_f32(name)? {
                Some(value) if !(low..=high).contains(&value) => {
                    Err(json.wrong(name, &format!("{low} to {high}"), value).into())
                }
                value => Ok(value),
            }
        };
        let greedy = json.opt_bool("do_sample")? == Some(false);
        let temperature = number("temperature", 0.0, 100.0)?;
        let top_k = json.opt_u64("top_k")?.map(|top_k| u32::try_from(top_k).unwrap_or(u32::MAX));
        Ok(Self {
            temperature: if greedy { Some(0.0) } else { temperature },
            top_k,
            top_p: number("top_p", 0.0, 1.0)?,
            min_p: number("min_p", 0.0, 1.0)?,
        })
    }
}

/// The tokens that `eos_token_id` names, a number or a list, in `generation_config.json` and in `config.json`.
pub(super) fn end_tokens(folder: &Path, config: &JsonObject) -> Result<Vec<u32>> {
    let mut ids = tokens(config)?;
    if let Some(generation) = JsonObject::open(folder, FILE)? {
        ids.extend(tokens(&generation)?);
    }
    Ok(ids)
}

fn tokens(json: &JsonObject) -> Result<Vec<u32>> {
    const KEY: &str = "eos_token_id";
    let Some(value) = json.get(KEY) else { return Ok(Vec::new()) };
    let ids = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let id = |value: &serde_json::Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    let ids: Option<Vec<u32>> = ids.iter().map(id).collect();
    Ok(ids.ok_or_else(|| json.wrong(KEY, "a token id or a list of them", quoted(&value.to_string())))?)
}
