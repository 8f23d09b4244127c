//! The wgpu backend, judged on the adapter that it chooses.

use halite_hal::Result;
use halite_parity::parity_tests;
use halite_wgpu::{Options, Wgpu, adapters};
use std::sync::OnceLock;

/// One device for all tests: what one has compiled, the others need not. None where there is no adapter.
fn device() -> Result<Option<Wgpu>> {
    static DEVICE: OnceLock<Result<Option<Wgpu>>> = OnceLock::new();
    let there = || adapters().iter().any(|adapter| adapter.lacks.is_none());
    DEVICE.get_or_init(|| there().then(|| Wgpu::new(Options::default())).transpose()).clone()
}

parity_tests!(invariant wgpu, if_present device());
