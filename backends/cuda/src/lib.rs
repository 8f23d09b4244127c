//! Halite's CUDA backend: kernels in CUDA C++, compiled for the GPU that is there when they are first used.
//!
//! [`compile`] makes kernels, [`driver`] runs them, and [`Cuda`] is the device with its operators: each has a Rust file, which
//! checks nothing again (`halite-kernels` did) and describes its launches, and its CUDA beside it. Neither NVRTC nor the
//! driver is needed when this crate is built: they are looked for at run time, and what is missing is a typed error that says
//! what to do. With the feature `interpreter` a device needs no GPU: `halite-ptx` executes the kernels' PTX on the host, and
//! what a kernel does wrong is an error with its line. **Nothing of it has run on a GPU yet.**
//!
//! ```no_run
//! use halite_cuda::{Cuda, Options};
//! use halite_hal::{Device, Tensor};
//!
//! let gpu = Cuda::new(Options::default().cache("/var/cache/halite"))?;
//! let mut stream = gpu.stream()?;
//! let x = Tensor::from_slice(&mut stream, &[1.0f32, 2.0, 3.0], &[1, 3])?;
//! assert_eq!(x.to_vec::<f32>(&mut stream)?, [1.0, 2.0, 3.0]);
//! # Ok::<(), halite_hal::Error>(())
//! ```

mod activation;
mod attention;
mod cache;
mod collectives;
pub mod compile;
mod copy;
mod device;
pub mod driver;
mod element;
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
