//! `halite kernels`: kernels compiled beforehand, for machines that have no compiler.

use crate::output;
use crate::progress::{Progress, Unit};
use clap::Args;
use halite_cuda::compile::{Architecture, precompile};
use std::path::PathBuf;

/// Programs between two marks of progress; they are compiled side by side.
const AT_ONCE: usize = 16;

/// Compile all CUDA kernels for one kind of GPU into a folder
///
/// Machines with such a GPU and this folder need no NVRTC. It needs NVRTC 12.8 or later here, in the library path, and no GPU.
#[derive(Debug, Args)]
pub(crate) struct PrecompileArgs {
    /// The GPU's architecture: sm_80, sm_89, sm_90a, sm_100a, sm_120a
    #[arg(long, value_name = "ARCH")]
    arch: Architecture,

    /// Where to write; what is there for other architectures stays
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

pub(crate) fn execute(args: &PrecompileArgs, progress: &Progress) -> anyhow::Result<()> {
    let programs = halite_cuda::programs();
    let title = format!("compiling {} programs for {}", programs.len(), args.arch);
    let mut stage = progress.stage(&title, Unit::Runs, Some(programs.len() as u64));
    let (mut done, mut bytes) = (0, 0);
    for some in programs.chunks(AT_ONCE) {
        let made = precompile(some, args.arch, &args.out)?;
        bytes += made.iter().map(|made| made.bytes).sum::<usize>();
        done += made.len() as u64;
        stage.set(done);
    }
    drop(stage);
    output::write(&format!("{done} programs for {}, {bytes} bytes, in {}\n", args.arch, args.out.display()))
}
