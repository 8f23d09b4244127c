//! `halite serve`: a model behind OpenAI's HTTP interface.
//!
//! | file | what it does |
//! |---|---|
//! | [`request`] | bodies to checked requests; pure functions |
//! | `prompt` | requests to token ids |
//! | `engine_thread`, `job` | the one thread that owns the engine, and how others reach it |
//! | `answers`, `collect`, `stream` | tokens to text, in one piece or as server-sent events |
//! | `wire` | what is sent back |
//! | `routes`, `body`, `auth`, `request_log` | the HTTP side of a request |
//! | `connections`, `watched_stream`, `server` | listening, limits, stopping |
//!
//! The engine works on one thread and never waits for anybody: a request sends it its tokens and has a channel of its
//! own for what comes back. Bodies are parsed and tokenized elsewhere, so that a long prompt delays nobody's next token.
//! Whoever goes away, at whatever moment, drops a guard that cancels what was asked for.

mod answers;
mod auth;
mod body;
mod collect;
mod connections;
mod engine_thread;
mod error;
mod fields;
mod job;
mod limits;
mod prompt;
pub mod request;
mod request_log;
mod routes;
mod sampling_defaults;
mod server;
mod shared;
mod stream;
mod watched_stream;
mod wire;

pub use error::{ApiError, ErrorKind};
pub use limits::Limits;
pub use sampling_defaults::SamplingDefaults;
pub use server::{ServeOptions, Server};
