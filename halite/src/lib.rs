//! LLM inference kernels behind one hardware-abstraction layer: paged attention, W8A8 matrix products, and the operators
//! around them. The CPU backend is here; the traits are made for wgpu, CUDA and Huawei Ascend too, with the same answers
//! and the same errors on all of them.
//!
//! ```
//! # #[cfg(feature = "cpu")] {
//! use halite::{cpu::{Cpu, Options}, hal::{DType, Device, Tensor}, kernels::linear::*};
//!
//! let device = Cpu::new(Options::default())?;
//! let mut stream = device.stream()?;
//! let spec = LinearSpec::float(3, 2, WeightFormat::F32);
//! let weights = device.linear_pack(&mut stream, HostWeights::F32(&[1., 0., 2., 0., 1., 0.]).check(&spec)?)?;
//! let x = Tensor::from_slice(&mut stream, &[1.0f32, 2.0, 3.0], &[1, 3])?;
//! let out = Tensor::new(&device, DType::F32, &[1, 2])?;
//! let (x, epilogue) = (Activations::Float(&x), Epilogue::default());
//! device.linear(&mut stream, LinearArgs { x, weights: &weights, epilogue, out: &out }.check()?)?;
//! assert_eq!(out.to_vec::<f32>(&mut stream)?, [7.0, 2.0]);
//! # }
//! # Ok::<(), halite::hal::Error>(())
//! ```
//!
//! Three layers, and nothing that serves requests (that is `halite-engine`):
//!
//! - [`hal`]: devices, streams, buffers, tensors, data types, errors.
//! - [`kernels`]: the operators' contracts, one module a family.
//! - the backends, one feature each: `cpu` (default).
//!
//! Code that is generic over [`kernels::Backend`] runs on all of them.

pub use halite_hal as hal;
pub use halite_kernels as kernels;

/// The CPU backend.
#[cfg(feature = "cpu")]
pub use halite_cpu as cpu;
