//! The wgpu backend, judged on the adapter that it chooses.

use halite_hal::Result;
use halite_parity::parity_tests;
use halite_wgpu::{Options, Wgpu};
use std::sync::OnceLock;

/// One device for all tests: what one has compiled, the others need not.
fn device() -> Result<Wgpu> {
    static DEVICE: OnceLock<Result<Wgpu>> = OnceLock::new();
    DEVICE.get_or_init(|| Wgpu::new(Options::default())).clone()
}

parity_tests!(wgpu, device());
