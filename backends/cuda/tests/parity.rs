//! The CUDA backend, judged on the interpreter: the PTX of every kernel, with all checks on.

use halite_cuda::{Cuda, Options, compile::nvrtc_version, driver::Interpreter};
use halite_hal::Result;
use halite_kernels::{
    Support,
    attention::{Attention, AttentionSpec},
    cache::KvSpec,
    grouped::Grouped,
    linear::LinearSpec,
};
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

parity_tests!(
    invariant cuda,
    without [
        "attention", "grouped", "mla", "moe/experts", "moe/formats", "moe/functions", "moe/local_ranges", "moe/sums",
        "invariance/attention", "invariance/mla", "invariance/moe"
    ]
    if_present device()
);

/// What is not judged is refused, by the plainest spec of each family. Whoever writes one takes it off both lists.
#[test]
fn what_is_not_judged_is_refused() -> Result<()> {
    let Some(cuda) = device()? else { return Ok(()) };
    let kv = KvSpec::new(1, 1, 32);
    for (family, support) in [
        ("attention", cuda.attention_supports(&AttentionSpec::causal(1, kv))),
        ("grouped", cuda.grouped_supports(&LinearSpec::w8a8(32, 32))),
    ] {
        assert!(matches!(support, Support::No(_)), "{family}: {support:?}");
    }
    Ok(())
}
