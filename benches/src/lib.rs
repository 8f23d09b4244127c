//! What the benchmarks share: the devices to measure, data, and the ceilings of the machine.
//!
//! `cargo bench -p halite-bench -- cpu` measures the CPU backend, each tier that the machine has, and
//! `cargo bench -p halite-bench --no-default-features --features wgpu -- wgpu` the wgpu backend, each adapter or the one
//! that `HALITE_WGPU_ADAPTER` gives the number of. Each benchmark checks an answer first, then prints criterion's times and
//! a line with the rate and its share of the ceiling that binds it; where work is queued, also the launches of a step and
//! the time by the device's own clock.

pub mod ceilings;
mod devices;
mod measured;
mod work;

#[cfg(feature = "wgpu")]
pub use devices::adapters;
pub use devices::{Bench, Clocked, Measured, for_each_device};
pub use measured::{Group, measuring};
pub use work::{Product, Work};

/// Weights and caches that are used in turn: more than a cache holds, so that a decode step finds them as cold as a model's
/// layers would be.
const COLD_BYTES: usize = 256 << 20;

/// How many sets of `bytes` make each cold when its turn comes; no more than 64, which small ones are cold enough with. For a
/// try, two: enough to take turns.
pub fn cold_copies(bytes: usize) -> usize {
    COLD_BYTES.div_ceil(bytes.max(1)).clamp(1, if measured::measuring() { 64 } else { 2 })
}

/// Tokens of a prompt: for a try, an eighth of them, since software adapters take seconds for whole ones.
pub fn prompt(tokens: usize) -> usize {
    if measured::measuring() { tokens } else { (tokens / 8).max(1) }
}

/// Values in [-1, 1), the same in every run.
pub fn values(count: usize) -> Vec<f32> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        })
        .collect()
}

/// The first element of an answer, against what it should be.
///
/// # Panics
/// Where they differ by more than `tolerance`.
pub fn check_first(answer: &[f32], expected: f64, tolerance: f64) {
    let got = answer.first().map_or(f64::NAN, |&first| f64::from(first));
    assert!((got - expected).abs() <= tolerance, "{got} instead of {expected}");
}
