//! Executes PTX on the CPU, so that CUDA kernels are tested without a GPU.

mod arguments;
mod barrier;
mod block;
mod compute;
mod counters;
mod error;
mod fault;
pub mod ir;
mod launch;
mod machine;
mod memory;
mod options;
mod parse;
mod registers;
mod step;
mod warp;

pub use arguments::Arguments;
pub use counters::{Counters, GlobalCounts, LineCounts, SharedCounts};
pub use error::{Error, Faults};
pub use fault::{Access, Fault, FaultKind, Other, Place, Waiting, WaitingFor};
pub use machine::{LaunchShape, LoadedModule, Machine};
pub use options::{Checks, Options};
pub use parse::ParseError;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
