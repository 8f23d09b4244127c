//! `halite serve`: a model behind OpenAI's HTTP interface.
//!
//! | file | what it does |
//! |---|---|
//! | [`request`] | bodies to checked requests; pure functions |
//! | `prompt` | requests to token ids |
//! | `engine_thread`, `job` | the one thread that owns the engine, and how others reach it |
//! | `answers`, `collect`, `stream` | tokens to text, in one piece or as server-sent events |
//! | `wire` | what is sent back |
//! | `routes`, `body`, `body_room`, `auth`, `request_log` | the HTTP side of a request |
//! | `app`, `health` | what all requests share: the model, its status and load |
//! | `connections`, `watched_stream`, `signals`, `server` | listening, limits, stopping |
//!
//! The engine works on one thread and never waits for anybody: a request sends it its tokens and has a channel of its
//! own for what comes back. Bodies are parsed and tokenized elsewhere, so that a long prompt delays nobody's next token.
//! Whoever goes away, at whatever moment, drops a guard that cancels what was asked for.

mod answers;
mod app;
mod auth;
mod body;
mod body_room;
mod collect;
mod connections;
mod engine_thread;
mod error;
mod fields;
mod health;
mod job;
mod limits;
mod prompt;
pub mod request;
mod request_log;
mod routes;
mod sampling_defaults;
mod server;
mod signals;
mod stream;
mod watched_stream;
mod wire;

pub use error::{ApiError, ErrorKind};
pub use limits::Limits;
pub use sampling_defaults::SamplingDefaults;
pub use server::{ServeOptions, Server};
