//! The ceilings of this machine as tables, the CPU's and the adapters': `cargo bench -p halite-bench --bench ceilings`.

use halite_bench::ceilings::Ceilings;
use std::time::Duration;

fn main() {
    let measuring = std::env::args().any(|argument| argument == "--bench");
    // For a try, every probe runs, and none of them takes no time.
    let time = measuring.then(|| Duration::from_millis(150));
    let ceilings = Ceilings::probe(time.unwrap_or(Duration::from_millis(1)));
    println!("{ceilings}");
    let arithmetic = [ceilings.int8, ceilings.bf16, ceilings.f32].into_iter().flatten();
    for rate in arithmetic.chain(ceilings.levels.map(|level| level.rate)) {
        assert!(is_rate(rate.one) && is_rate(rate.all), "{ceilings}");
    }
    #[cfg(feature = "wgpu")]
    for adapter in halite_bench::adapters() {
        let ceilings = halite_bench::ceilings::wgpu::AdapterCeilings::probe(adapter.index, time);
        println!("{ceilings}");
        assert!(ceilings.figures().into_iter().all(is_rate), "{ceilings}");
    }
}

fn is_rate(rate: f64) -> bool {
    rate.is_finite() && rate > 0.0
}
