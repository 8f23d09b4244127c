//! What the benchmarks share: the devices to measure, and data.
//!
//! `cargo bench -p halite-bench -- cpu` measures the CPU backend, each tier that the machine has. Criterion prints the
//! throughput: `elem/s` are multiply-adds (two operations each), `B/s` are bytes of weights or of KV.

use halite_kernels::Backend;

/// Something to run on each device: closures cannot be generic.
pub trait OnDevice {
    /// Measures on `device`, which the benchmark's name calls `name`.
    fn run<B: Backend>(&mut self, name: &str, device: &B);
}

/// Runs `bench` on every device that was compiled in and that the machine has.
pub fn for_each_device(bench: &mut impl OnDevice) {
    #[cfg(feature = "cpu")]
    for tier in halite_cpu::Tier::available() {
        match halite_cpu::Cpu::new(halite_cpu::Options::default().tier(tier)) {
            Ok(device) => bench.run(&format!("cpu/{tier}/{}-threads", device.threads()), &device),
            Err(error) => eprintln!("cpu/{tier}: not measured: {error}"),
        }
    }
    #[cfg(not(feature = "cpu"))]
    let _ = bench;
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
