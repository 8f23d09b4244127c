//! What the first answer would have to wait for: a GPU's kernels are compiled when they are first used.

use crate::cli::Device;
use crate::progress::{Progress, Unit};
use anyhow::Context;
use halite_engine::Engine;

/// More rows than any kernel for few of them takes.
const MANY: usize = 64;

/// Computes both kinds of steps that answers are made of, many rows and one, where the device compiles.
pub(crate) fn warmed_up(mut engine: Engine, device: &Device, progress: &Progress) -> anyhow::Result<Engine> {
    let title = match device {
        Device::Cpu(_) => return Ok(engine),
        #[cfg(feature = "wgpu")]
        Device::Wgpu(_) => {
            "compiling kernels and trying them (kept for later starts, where the driver hands them over)"
        }
        // Where steps are what takes long, a kernel is compiled when an answer needs it.
        #[cfg(feature = "cuda")]
        Device::Cuda(device) if device.is_interpreted() => return Ok(engine),
        #[cfg(feature = "cuda")]
        Device::Cuda(_) => "compiling kernels and trying them (kept for later starts)",
    };
    let _stage = progress.stage(title, Unit::Runs, None);
    let info = engine.describe();
    let room = info.context.min(info.kv_blocks * info.block_size);
    for tokens in [MANY, 2] {
        engine.score(&vec![0; tokens.min(room)]).context("the device fails the first steps")?;
    }
    #[cfg(feature = "wgpu")]
    if let Device::Wgpu(device) = device {
        device.save_pipelines();
    }
    Ok(engine)
}
