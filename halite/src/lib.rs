//! LLM inference kernels behind one hardware-abstraction layer: paged attention, W8A8 matrix products, and the operators
//! around them. The CPU backend is here, one for any GPU with Vulkan, Metal or Direct3D 12, and one in CUDA, which has run on no
//! GPU yet; the traits are made for Huawei Ascend too, with the same answers and the same errors on all of them.
//!
//! A device and a stream, once; then a linear layer, `[1, 3]` times `[2, 3]` transposed, in five lines:
//!
//! ```
//! # #[cfg(feature = "cpu")] {
//! use halite::{cpu::{Cpu, Options}, hal::{DType, Device, Tensor}, kernels::linear::*};
//!
//! let device = Cpu::new(Options::default())?;
//! let mut stream = device.stream()?;
//!
//! let spec = LinearSpec::float(3, 2, WeightFormat::F32);
//! let weights = device.linear_pack(&mut stream, HostWeights::F32(&[1., 0., 2., 0., 1., 0.]).check(&spec)?)?;
//! let x = Activations::Float(&Tensor::from_slice(&mut stream, &[1.0f32, 2.0, 3.0], &[1, 3])?);
//! let out = Tensor::new(&device, DType::F32, &[1, 2])?;
//! device.linear(&mut stream, LinearArgs { x, weights: &weights, epilogue: Epilogue::default(), out: &out }.check()?)?;
//!
//! assert_eq!(out.to_vec::<f32>(&mut stream)?, [7.0, 2.0]);
//! # }
//! # Ok::<(), halite::hal::Error>(())
//! ```
//!
//! `check` is where a wrong shape, type or overlap becomes a typed error with operator, argument, expected and got,
//! before any backend sees it. Code that is generic over [`kernels::Backend`] runs on every backend.
//!
//! # What to read next
//!
//! | to | read |
//! |---|---|
//! | see paged attention whole, with a ragged batch of prefill and decode | the example [`paged_attention`] |
//! | see a W8A8 layer whole, from float weights to a checked answer | the example [`w8a8_linear`] |
//! | see a mixture-of-experts layer whole, from the router to the experts' sum | the example [`fused_moe`] |
//! | know an operator's formula, shapes, units and errors | its module in [`kernels`] |
//! | choose threads and instruction set | [`cpu::Options`](https://docs.rs/halite-cpu/latest/halite_cpu/struct.Options.html) |
//! | choose a GPU | [`wgpu::adapters`](https://docs.rs/halite-wgpu/latest/halite_wgpu/fn.adapters.html), [`cuda::Options`](https://docs.rs/halite-cuda/latest/halite_cuda/struct.Options.html) |
//! | use arrays of `ndarray` | the feature `ndarray`, and [`hal::Tensor`] |
//! | know which bits are promised, and how INT8 rounds | [numerics] |
//! | write a backend and have it judged | [`halite-parity`] |
//! | run whole models: files, tokenizers, batching | [`halite-engine`] |
//!
//! [`paged_attention`]: https://github.com/halite-rs/halite/blob/main/halite/examples/paged_attention.rs
//! [`w8a8_linear`]: https://github.com/halite-rs/halite/blob/main/halite/examples/w8a8_linear.rs
//! [`fused_moe`]: https://github.com/halite-rs/halite/blob/main/halite/examples/fused_moe.rs
//! [numerics]: https://github.com/halite-rs/halite/blob/main/docs/numerics.md
//! [`halite-parity`]: https://docs.rs/halite-parity
//! [`halite-engine`]: https://docs.rs/halite-engine
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `cpu` (default) | the CPU backend, as `halite::cpu` |
//! | `wgpu` | the backend for GPUs, as `halite::wgpu`; it has run on software drivers only, never on a GPU |
//! | `cuda` | the backend for GPUs of NVIDIA's, as `halite::cuda`; it has run on an interpreter only, never on a GPU |
//! | `ascend` | the backend for Huawei's NPUs, as `halite::ascend`; it is being written, and has run on a stand-in for CANN only |
//! | `ndarray` | tensors to and from `ndarray` arrays |
//!
//! None brings a runtime, a server or a tokenizer: with `cpu` alone the whole tree is Halite's four crates,
//! `bytemuck`, `half`, `thiserror` and what these need.

pub use halite_hal as hal;
pub use halite_kernels as kernels;

/// The CPU backend.
#[cfg(feature = "cpu")]
pub use halite_cpu as cpu;

/// The backend for GPUs with Vulkan, Metal or Direct3D 12.
#[cfg(feature = "wgpu")]
pub use halite_wgpu as wgpu;

/// The backend for GPUs of NVIDIA's.
#[cfg(feature = "cuda")]
pub use halite_cuda as cuda;

/// The backend for Huawei's NPUs.
#[cfg(feature = "ascend")]
pub use halite_ascend as ascend;
