//! One measurement: criterion's, told as a rate and as a share of the ceiling that binds it.

use crate::ceilings::{Ceilings, Rate};
use criterion::{BenchmarkGroup, Criterion, Throughput, measurement::WallTime};
use halite_hal::Result;
use std::time::{Duration, Instant};

/// What one call does, by which its speed is told.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// Multiply-adds of INT8.
    Int8(u64),
    /// Multiply-adds of F32, whatever the storage.
    F32(u64),
    /// Bytes read and written, which lie where a set of `resident` bytes lies.
    Bytes {
        /// Bytes a call moves.
        moved: u64,
        /// Bytes that all calls together go through.
        resident: u64,
    },
}

impl Work {
    /// Bytes that every call finds where the one before left them.
    pub fn bytes(moved: u64) -> Self {
        Work::Bytes { moved, resident: moved }
    }

    fn throughput(self) -> Throughput {
        match self {
            Work::Int8(products) | Work::F32(products) => Throughput::Elements(products),
            Work::Bytes { moved, .. } => Throughput::Bytes(moved),
        }
    }

    /// Units of the ceiling, the ceiling, its name and the unit's.
    fn ceiling(self, ceilings: &Ceilings) -> (f64, Option<Rate>, &'static str, &'static str) {
        match self {
            Work::Int8(products) => (2.0 * products as f64, ceilings.int8, "INT8", "GOP/s"),
            Work::F32(products) => (2.0 * products as f64, ceilings.f32, "F32", "GOP/s"),
            Work::Bytes { moved, resident } => {
                let level = ceilings.level(resident as usize);
                (moved as f64, Some(level.rate), level.name, "GB/s")
            }
        }
    }
}

/// The measurements of one operator on one device.
pub struct Group<'c> {
    criterion: BenchmarkGroup<'c, WallTime>,
    on_cpu: bool,
}

impl<'c> Group<'c> {
    pub(crate) fn new(criterion: &'c mut Criterion, operator: &str, device: &str) -> Self {
        let mut group = criterion.benchmark_group(format!("{operator}/{device}"));
        group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_millis(1200));
        group.sample_size(20);
        Group { criterion: group, on_cpu: device.starts_with("cpu/") }
    }

    /// Measures `step` under `id`, and on the CPU says what share of the machine's ceiling it reaches.
    ///
    /// # Errors
    /// That of the first step that fails.
    pub fn measure(&mut self, id: &str, work: Work, mut step: impl FnMut() -> Result<()>) -> Result<()> {
        let mut outcome = Ok(());
        let mut best = f64::INFINITY;
        self.criterion.throughput(work.throughput());
        self.criterion.bench_function(id, |bencher| {
            bencher.iter_custom(|iterations| {
                let start = Instant::now();
                for _ in 0..iterations {
                    if let Err(error) = step()
                        && outcome.is_ok()
                    {
                        outcome = Err(error);
                    }
                }
                let time = start.elapsed();
                best = best.min(time.as_secs_f64() / iterations.max(1) as f64);
                time
            });
        });
        outcome?;
        // Without it criterion only tries each benchmark once.
        let measuring = std::env::args().any(|argument| argument == "--bench");
        // A filter may have left it out.
        if measuring && self.on_cpu && best.is_finite() {
            let (units, ceiling, name, unit) = work.ceiling(Ceilings::of_this_machine());
            let rate = units / best / 1e9;
            match ceiling {
                Some(Rate { all, .. }) => {
                    let (share, all) = (100.0 * rate / (all / 1e9), all / 1e9);
                    println!(
                        "    at best {rate:.1} {unit}, {share:.0} % of what {name} gives all cores ({all:.0})"
                    );
                }
                None => println!("    at best {rate:.1} {unit}; this machine has no ceiling of {name}"),
            }
        }
        Ok(())
    }
}
