//! What unit tests find on the machine.

/// Whether NVRTC is there. Without it a test is not run, which is a failure where `CI=true`.
pub(crate) fn nvrtc(test: &str) -> bool {
    let found = crate::compile::nvrtc_version().is_some();
    if !found {
        eprintln!("NOT RUN: {test}: NVRTC was not found (`cargo xtask cuda` brings it)");
        assert!(!std::env::var("CI").is_ok_and(|value| value == "true"), "not run although CI=true");
    }
    found
}

/// An interpreted device; none where NVRTC is missing, as above.
#[cfg(feature = "interpreter")]
pub(crate) fn cuda(test: &str) -> Option<crate::Cuda> {
    let options = crate::Options::default().interpreter(crate::driver::Interpreter::default());
    nvrtc(test).then(|| crate::Cuda::new(options).unwrap())
}
