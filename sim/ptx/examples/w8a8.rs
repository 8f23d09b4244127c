//! Multiplies bytes with a pipelined kernel, and says how long the host takes for it, with and without checks.
//!
//! `cargo run --release -p halite-ptx --example w8a8`

use halite_ptx::ir::Module;
use halite_ptx::{Arguments, Checks, LaunchShape, Machine, Options};
use std::time::{Duration, Instant};

const KERNEL: &str = include_str!("w8a8.ptx");

/// Rows of x, rows of w, columns of both.
const SIZES: [usize; 3] = [256, 512, 1024];
/// Each way of checking is tried this often; the quickest counts.
const TRIES: usize = 5;

fn random(count: usize, seed: u32) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(count).collect()
}

fn dot(x: &[u8], w: &[u8]) -> i32 {
    x.iter().zip(w).map(|(&x, &w)| i32::from(x as i8) * i32::from(w as i8)).sum()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [m, n, k] = SIZES;
    let (x, w) = (random(m * k, 1), random(n * k, 2));
    let product = |i: usize| dot(&x[i / n * k..][..k], &w[i % n * k..][..k]);
    let expected: Vec<u8> = (0..m * n).flat_map(|i| product(i).to_le_bytes()).collect();
    let all = Checks::ALL;
    println!("{m} x {n} x {k}, {} host threads", Options::default().threads);
    for (name, checks) in [
        ("bounds, alignment, deadlocks", Checks::BOUNDS),
        ("and counters", Checks::BOUNDS.with_counters(true)),
        ("and uninitialised reads", Checks::BOUNDS.with_uninitialised(true)),
        ("and uninitialised reads, races", all.with_counters(false)),
        ("everything", all),
    ] {
        let mut machine = Machine::new(Options::default().with_checks(checks));
        let module = machine.load(Module::parse(KERNEL)?)?;
        let (x, w) = (machine.allocate_with(&x)?, machine.allocate_with(&w)?);
        let out = machine.allocate(expected.len() as u64)?;
        let arguments = Arguments::new().pointer(x).pointer(w).pointer(out).u32(n as u32).u32(k as u32 / 32);
        let grid = [n as u32 / 64, m as u32 / 32, 1];
        let shape = LaunchShape { grid, block: [64, 1, 1], dynamic_shared_bytes: 0 };
        let mut best = Duration::MAX;
        for _ in 0..TRIES {
            let start = Instant::now();
            machine.launch(&module, "product", shape, &arguments)?;
            best = best.min(start.elapsed());
        }
        let mut result = vec![0; expected.len()];
        machine.read(out, &mut result)?;
        if result != expected {
            return Err("the products are wrong".into());
        }
        let speed = 2.0 * (m * n * k) as f64 / best.as_secs_f64() / 1e9;
        println!("{name}: {:.1} ms, {speed:.2} GOP/s", best.as_secs_f64() * 1e3);
    }
    Ok(())
}
