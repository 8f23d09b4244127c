//! The ceilings of this machine as a table: `cargo bench -p halite-bench --bench ceilings`.

use halite_bench::ceilings::Ceilings;
use std::time::Duration;

fn main() {
    if std::env::args().any(|argument| argument == "--bench") {
        println!("{}", Ceilings::of_this_machine());
        return;
    }
    // A try: every probe runs, and none of them takes no time.
    let ceilings = Ceilings::probe(Duration::from_millis(1));
    let arithmetic = [ceilings.int8, ceilings.bf16, ceilings.f32].into_iter().flatten();
    for rate in arithmetic.chain(ceilings.levels.map(|level| level.rate)) {
        assert!(
            rate.one.is_finite() && rate.one > 0.0 && rate.all.is_finite() && rate.all > 0.0,
            "{ceilings}"
        );
    }
}
