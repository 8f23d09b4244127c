//! The adapter of unit tests.

use crate::{Options, Wgpu, adapters};

/// The adapter that is chosen by default. Without any, a test is not run, which is a failure where `CI=true`.
pub(crate) fn gpu(test: &str) -> Option<Wgpu> {
    if adapters().iter().any(|adapter| adapter.lacks.is_none()) {
        return Some(Wgpu::new(Options::default()).unwrap());
    }
    eprintln!("NOT RUN: {test}: this machine has no adapter that can be used");
    assert!(!std::env::var("CI").is_ok_and(|value| value == "true"), "not run although CI=true");
    None
}
