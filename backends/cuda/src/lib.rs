//! Halite's CUDA backend: kernels in CUDA C++, compiled for the GPU that is there when they are first used.
//!
//! What is here so far is what kernels stand on: [`compile`] makes them, [`driver`] runs them. Neither needs anything of
//! CUDA when this crate is built: NVRTC and the driver are looked for at run time, and what is missing is a typed error that
//! says what to do. **Nothing of it has run on a GPU yet.**
//!
//! ```no_run
//! use halite_cuda::compile::{Compiler, Options};
//! use halite_cuda::linear::int8;
//!
//! let compiler = Compiler::new(Options::default().cache("/var/cache/halite"));
//! let program = int8::program(int8::Tile::LARGE, int8::Out::BF16, int8::Alignment::Bytes16);
//! let cubin = compiler.cubin(&program, "sm_90a".parse()?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod compile;
pub mod driver;
pub mod linear;
#[cfg(test)]
mod machine_code_tests;
mod programs;
#[cfg(test)]
mod testing;

pub use programs::programs;
