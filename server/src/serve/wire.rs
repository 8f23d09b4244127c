//! What is sent back, in OpenAI's form.

use serde::Serialize;
use serde_json::{Value, json};
use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

/// Tokens of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Usage {
    pub(super) prompt_tokens: usize,
    pub(super) completion_tokens: usize,
    pub(super) total_tokens: usize,
    pub(super) prompt_tokens_details: PromptTokensDetails,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct PromptTokensDetails {
    /// Found in the prefix cache.
    pub(super) cached_tokens: usize,
}

/// Which of the two interfaces is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Chat,
    Completion,
}

/// What all objects of one response say about it.
#[derive(Clone, Debug)]
pub(super) struct Envelope {
    pub(super) dialect: Dialect,
    pub(super) id: String,
    pub(super) created: u64,
    pub(super) model: String,
    pub(super) fingerprint: String,
}

impl Envelope {
    pub(super) fn new(dialect: Dialect, model: &str, fingerprint: &str) -> Self {
        let prefix = match dialect {
            Dialect::Chat => "chatcmpl",
            Dialect::Completion => "cmpl",
        };
        // The standard library seeds `RandomState` from the operating system.
        let state = RandomState::new();
        let id = format!("{prefix}-{:016x}{:016x}", state.hash_one(0u8), state.hash_one(1u8));
        Self { dialect, id, created: now(), model: model.to_owned(), fingerprint: fingerprint.to_owned() }
    }

    /// A whole response.
    pub(super) fn response(&self, choices: Vec<Value>, usage: Usage) -> Value {
        let object = match self.dialect {
            Dialect::Chat => "chat.completion",
            Dialect::Completion => "text_completion",
        };
        let mut response = self.object(object, choices);
        response["usage"] = json!(usage);
        response
    }

    /// One chunk of a stream; its usage, null in all but the last one, is there only where it was asked for.
    pub(super) fn chunk(&self, choices: Vec<Value>, usage: Option<Option<Usage>>) -> Value {
        let object = match self.dialect {
            Dialect::Chat => "chat.completion.chunk",
            Dialect::Completion => "text_completion",
        };
        let mut chunk = self.object(object, choices);
        if let Some(usage) = usage {
            chunk["usage"] = json!(usage);
        }
        chunk
    }

    /// An answer in a response.
    pub(super) fn choice(&self, index: usize, text: &str, finish_reason: &str) -> Value {
        match self.dialect {
            Dialect::Chat => json!({
                "index": index,
                "message": { "role": "assistant", "content": text, "refusal": null },
                "logprobs": null,
                "finish_reason": finish_reason,
            }),
            Dialect::Completion => {
                json!({ "index": index, "text": text, "logprobs": null, "finish_reason": finish_reason })
            }
        }
    }

    /// The beginning of a chat answer in a stream; continuations have none.
    pub(super) fn opening(&self, index: usize) -> Option<Value> {
        (self.dialect == Dialect::Chat).then(|| {
            let delta = json!({ "role": "assistant", "content": "", "refusal": null });
            json!({ "index": index, "delta": delta, "logprobs": null, "finish_reason": null })
        })
    }

    /// A piece of an answer in a stream.
    pub(super) fn delta(&self, index: usize, text: &str) -> Value {
        match self.dialect {
            Dialect::Chat => {
                let delta = json!({ "content": text });
                json!({ "index": index, "delta": delta, "logprobs": null, "finish_reason": null })
            }
            Dialect::Completion => {
                json!({ "index": index, "text": text, "logprobs": null, "finish_reason": null })
            }
        }
    }

    /// The end of an answer in a stream.
    pub(super) fn ending(&self, index: usize, finish_reason: &str) -> Value {
        match self.dialect {
            Dialect::Chat => {
                json!({ "index": index, "delta": {}, "logprobs": null, "finish_reason": finish_reason })
            }
            Dialect::Completion => {
                json!({ "index": index, "text": "", "logprobs": null, "finish_reason": finish_reason })
            }
        }
    }

    fn object(&self, object: &str, choices: Vec<Value>) -> Value {
        json!({
            "id": self.id,
            "object": object,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
            "choices": choices,
        })
    }
}

/// A model in a list of models.
pub(super) fn model(id: &str, created: u64, context: usize) -> Value {
    json!({
        "id": id,
        "object": "model",
        "created": created,
        "owned_by": "halite",
        "context_length": context,
    })
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
