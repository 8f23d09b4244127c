//! The CUDA backend, judged on the interpreter: the PTX of every kernel, with all checks on. It needs NVRTC, and no GPU.

use halite_cuda::{Cuda, Options, compile::nvrtc_version, driver::Interpreter};
use halite_hal::Result;
use halite_parity::parity_tests;

/// A device for each group, so that a kernel which does something wrong is the loss of its own group only. Compiled kernels
/// are kept on disk: nobody compiles what another group has. None where NVRTC is missing.
fn device() -> Result<Option<Cuda>> {
    if nvrtc_version().is_none() {
        eprintln!(
            "NVRTC was not found, which makes PTX of kernels: `cargo xtask cuda` brings it and runs these tests"
        );
        return Ok(None);
    }
    let kept = concat!(env!("CARGO_TARGET_TMPDIR"), "/cuda-kernels");
    Cuda::new(Options::default().interpreter(Interpreter::default()).cache(kept)).map(Some)
}

parity_tests!(cuda, if_present device());
