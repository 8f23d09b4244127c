//! Bodies of requests to checked requests. Nothing here knows a model, a clock or a connection.
//!
//! A parameter that is not supported and would change the answer is refused by name; one that cannot is ignored; an
//! unknown one is refused, since nobody knows which it is. So no answer is other than what was asked for.

mod chat;
mod completion;
mod generation;
mod message;
mod tools;

pub use chat::{ChatRequest, parse_chat};
pub use completion::{CompletionPrompt, CompletionRequest, parse_completion};
pub use generation::{Generation, StreamOptions};

/// Fields of both kinds of request that do not change an answer.
const IGNORED: [&str; 7] = [
    "user",
    "metadata",
    "store",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
];
