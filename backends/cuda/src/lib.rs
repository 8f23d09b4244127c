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

mod activation;
mod attention;
mod cache;
mod collectives;
pub mod compile;
mod copy;
mod device;
pub mod driver;
mod embedding;
mod grouped;
mod kernels;
mod launch;
pub mod linear;
mod logits;
#[cfg(test)]
mod machine_code_tests;
mod memory;
mod mla;
mod moe;
mod norm;
mod options;
mod programs;
mod quantize;
mod room;
mod rope;
mod rows;
mod sampling;
mod stream;
mod support;
mod table;
#[cfg(test)]
mod testing;
mod top_k;

pub use attention::CudaAttentionPlan;
pub use cache::{CudaKvCache, CudaSlots};
pub use collectives::CudaCommunicator;
pub use device::Cuda;
pub use embedding::CudaPoolingPlan;
pub use linear::{CudaLoraPlan, CudaPacked};
pub use logits::CudaLogitsPlan;
pub use memory::CudaBuffer;
pub use mla::{CudaMlaPacked, CudaMlaPlan};
pub use moe::CudaMoePlan;
pub use options::{Driver, Options};
pub use programs::programs;
pub use rope::CudaRopePlan;
pub use sampling::{CudaSamplingPlan, CudaVerifyPlan};
pub use stream::{CudaEvent, CudaGraph, CudaPending, CudaStream};
