//! Halite's CPU backend.
//!
//! Every operator of `halite-kernels`, in five tiers chosen at run time: AVX-512 with VNNI, alone and with AMX, AVX2
//! with and without AVX-VNNI, and portable code. A kernel is written once, generic over the instruction set (see `simd`), so tiers differ
//! in instructions and in nothing else. The backend claims batch invariance: a row's bits do not depend on what else is
//! in the batch, on how a prompt was cut, or on the number of threads.
//!
//! ```
//! use halite_cpu::{Cpu, Options};
//! use halite_hal::{Device, Tensor};
//!
//! let cpu = Cpu::new(Options::default().threads(2))?;
//! let mut stream = cpu.stream()?;
//! let x = Tensor::from_slice(&mut stream, &[1.0f32, 2.0, 3.0], &[1, 3])?;
//! assert_eq!(x.to_vec::<f32>(&mut stream)?, [1.0, 2.0, 3.0]);
//! # Ok::<(), halite_hal::Error>(())
//! ```

mod activation;
mod aligned;
mod attention;
mod buffer;
mod cache;
mod collectives;
mod cost;
mod device;
mod embedding;
mod grouped;
mod linear;
mod logits;
mod mla;
mod moe;
mod norm;
mod quantize;
mod room;
mod rope;
mod row;
mod sampling;
mod simd;
mod slab;
mod stream;
mod support;
mod team;
mod threads;
mod top_k;
mod view;

pub use attention::CpuAttentionPlan;
pub use buffer::CpuBuffer;
pub use cache::{CpuKvCache, CpuSlots};
pub use collectives::CpuCommunicator;
pub use device::{Cpu, Options};
pub use embedding::CpuPoolingPlan;
pub use linear::{CpuLoraPlan, CpuPacked};
pub use logits::CpuLogitsPlan;
pub use mla::{CpuMlaPacked, CpuMlaPlan};
pub use moe::CpuMoePlan;
pub use rope::CpuRopePlan;
pub use sampling::{CpuSamplingPlan, CpuVerifyPlan};
pub use simd::Tier;
pub use stream::{CpuStream, Done, Ready};
pub use threads::MAX_THREADS;

use support::{float_only, unsupported};
