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

/// A source with one place changed, of its own or of some headers: each is included by the source or by one before it.
#[cfg(feature = "interpreter")]
pub(crate) fn changed(
    file: &'static str,
    source: &crate::compile::Source,
    headers: &[(&str, &str)],
    from: &str,
    to: &str,
) -> &'static crate::compile::Source {
    let mut text = source.text.to_owned();
    for (name, header) in headers {
        let include = format!("#include \"{name}\"");
        assert!(text.contains(&include), "{name} is included");
        // What includes it again has it already.
        text = text.replacen(&include, &header.replace("#pragma once", ""), 1).replace(&include, "");
    }
    assert_eq!(text.matches(from).count(), 1, "the source has one {from:?}");
    Box::leak(Box::new(crate::compile::Source::new(file, text.replace(from, to).leak())))
}
