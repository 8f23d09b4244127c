//! Halite's wgpu backend: kernels in WGSL for any GPU with Vulkan, Metal or Direct3D 12.
//!
//! An operator has one Rust file, which checks nothing again (`halite-kernels` did) and describes its dispatches, and its
//! WGSL beside it. Work is queued: a stream is an encoder with one open compute pass, and only who reads back waits.
//!
//! ```no_run
//! use halite_hal::{Device, Tensor};
//! use halite_wgpu::{Options, Wgpu};
//!
//! let gpu = Wgpu::new(Options::default())?;
//! let mut stream = gpu.stream()?;
//! let x = Tensor::from_slice(&mut stream, &[1.0f32, 2.0, 3.0], &[1, 3])?;
//! assert_eq!(x.to_vec::<f32>(&mut stream)?, [1.0, 2.0, 3.0]);
//! # Ok::<(), halite_hal::Error>(())
//! ```

mod activation;
mod adapter;
mod attention;
mod bindings;
mod cache;
mod collectives;
mod copy;
mod declarations;
mod device;
mod embedding;
mod failure;
mod grouped;
mod kernel;
mod launch;
mod linear;
mod logits;
mod memory;
mod mla;
mod moe;
mod norm;
mod operand;
mod pipeline_cache;
#[cfg(test)]
mod prelude_tests;
mod quantize;
mod read_back;
mod room;
mod rope;
mod rows;
mod sampling;
mod self_test;
mod staging;
mod stream;
mod support;
mod table;
#[cfg(test)]
mod testing;
mod timing;
mod top_k;

pub use adapter::{AdapterReport, adapters};
pub use attention::WgpuAttentionPlan;
pub use cache::{WgpuKvCache, WgpuSlots};
pub use collectives::WgpuCommunicator;
pub use device::{Options, Wgpu};
pub use embedding::WgpuPoolingPlan;
pub use linear::{WgpuLoraPlan, WgpuPacked};
pub use logits::WgpuLogitsPlan;
pub use memory::WgpuBuffer;
pub use mla::{WgpuMlaPacked, WgpuMlaPlan};
pub use moe::WgpuMoePlan;
pub use read_back::ReadBack;
pub use rope::WgpuRopePlan;
pub use sampling::{WgpuSamplingPlan, WgpuVerifyPlan};
pub use stream::{WgpuEvent, WgpuStream};
