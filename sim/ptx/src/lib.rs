//! Executes PTX on the CPU, so that CUDA kernels are tested without a GPU.

#[allow(dead_code, reason = "the machine that calls it follows")]
mod compute;
pub mod ir;
mod parse;
#[allow(dead_code, reason = "the machine that calls it follows")]
mod registers;

pub use parse::ParseError;
