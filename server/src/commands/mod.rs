//! The commands, a file each: its arguments, and what it does.

pub(crate) mod bench;
pub(crate) mod chat;
pub(crate) mod devices;
pub(crate) mod inspect;
#[cfg(feature = "cuda")]
pub(crate) mod kernels;
pub(crate) mod perplexity;
pub(crate) mod prompt_text;
pub(crate) mod pull;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod token_lines;
pub(crate) mod tokenize;
