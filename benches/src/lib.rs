//! What the benchmarks share: the devices to measure, data, and the ceilings of the machine.
//!
//! `cargo bench -p halite-bench -- cpu` measures the CPU backend, each tier that the machine has. Each benchmark checks an
//! answer first, then prints criterion's times and a line with the rate and its share of the ceiling that binds it.

pub mod ceilings;
mod measured;

pub use measured::{Group, Work};

use criterion::Criterion;
use halite_hal::{Error, Result};
use halite_kernels::Backend;

/// One operator's benchmarks: closures cannot be generic.
pub trait Bench {
    /// The operator's name.
    const OPERATOR: &'static str;

    /// Measures on `device`.
    ///
    /// # Errors
    /// What the device does not support, or a fault.
    fn run<B: Backend>(&self, group: &mut Group<'_>, device: &B) -> Result<()>;
}

/// Runs `bench` on every device that was compiled in and that the machine has.
///
/// # Panics
/// Where an operator fails for another reason than that the backend does not have it.
#[allow(clippy::panic, reason = "a benchmark that measures nothing must not pass for one")]
pub fn for_each_device(criterion: &mut Criterion, bench: &impl Bench) {
    #[cfg(feature = "cpu")]
    for tier in halite_cpu::Tier::available() {
        match halite_cpu::Cpu::new(halite_cpu::Options::default().tier(tier)) {
            Ok(device) => {
                let name = format!("cpu/{tier}/{}-threads", device.threads());
                run(criterion, bench, &name, &device);
            }
            Err(error) => panic!("cpu/{tier}: {error}"),
        }
    }
    #[cfg(not(feature = "cpu"))]
    let _ = (criterion, bench);
}

#[cfg(feature = "cpu")]
#[allow(clippy::panic, reason = "as above")]
fn run<T: Bench>(criterion: &mut Criterion, bench: &T, name: &str, device: &impl Backend) {
    match bench.run(&mut Group::new(criterion, T::OPERATOR, name), device) {
        Ok(()) => {}
        Err(error @ Error::Unsupported { .. }) => eprintln!("{}/{name}: not measured: {error}", T::OPERATOR),
        Err(error) => panic!("{}/{name}: {error}", T::OPERATOR),
    }
}

/// Weights and caches that are used in turn: more than a cache holds, so that a decode step finds them as cold as a model's
/// layers would be.
const COLD_BYTES: usize = 256 << 20;

/// How many sets of `bytes` make each cold when its turn comes; no more than 64, which small ones are cold enough with.
pub fn cold_copies(bytes: usize) -> usize {
    COLD_BYTES.div_ceil(bytes.max(1)).clamp(1, 64)
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
