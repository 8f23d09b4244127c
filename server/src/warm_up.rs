//! What the first answer would have to wait for: a GPU's kernels are compiled when they are first used.

use crate::cli::Device;
use crate::progress::{Progress, Unit};
use anyhow::Context;
use halite_engine::Engine;

/// More rows than any kernel for few of them takes.
const MANY: usize = 64;

/// Computes both kinds of steps that answers are made of, many rows and one, where the device compiles.
pub(crate) fn warmed_up(mut engine: Engine, device: &Device, progress: &Progress) -> anyhow::Result<Engine> {
    let Device::Wgpu(device) = device else { return Ok(engine) };
    let _stage = progress.stage(
        "compiling kernels and trying them (kept for later starts, where the driver hands them over)",
        Unit::Runs,
        None,
    );
    let info = engine.describe();
    let room = info.context.min(info.kv_blocks * info.block_size);
    for tokens in [MANY, 2] {
        engine.score(&vec![0; tokens.min(room)]).context("the device fails the first steps")?;
    }
    device.save_pipelines();
    Ok(engine)
}
