//! From a kernel's source to machine code.
//!
//! Sources are part of this crate. At first use NVRTC compiles one for the exact architecture of the device, and the result
//! is kept on disk; a folder made by [`precompile`] serves machines without NVRTC. PTX is made for the interpreter only: a
//! driver that compiles PTX itself would give other code than the one that was tested.

mod architecture;
mod compiler;
mod error;
mod folder;
mod image;
mod nvrtc;
mod precompile;
mod program;
mod source;

pub use architecture::Architecture;
pub use compiler::{Compiler, Options};
pub use error::CompileError;
pub use image::{Code, Image};
pub use nvrtc::{NvrtcVersion, nvrtc_version};
pub use precompile::{Precompiled, precompile};
pub use program::Program;
pub use source::Source;

#[cfg(test)]
pub(crate) use self::{
    nvrtc::{Output, compile},
    precompile::for_all,
};
