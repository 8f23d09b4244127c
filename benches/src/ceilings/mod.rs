//! What this machine can do at most: multiply-adds of each type, and bytes read from each level of memory, by one core and
//! by all. A kernel's speed is told as a share of these, measured in the same run.

mod bandwidth;
#[cfg(not(target_arch = "x86_64"))]
mod elsewhere;
#[cfg(feature = "wgpu")]
pub mod wgpu;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(not(target_arch = "x86_64"))]
use elsewhere as arithmetic;
#[cfg(target_arch = "x86_64")]
use x86 as arithmetic;

use std::{
    fmt,
    sync::{Barrier, OnceLock},
    thread,
    time::{Duration, Instant},
};

/// How long one figure is measured; each is the median of three.
const LONG: Duration = Duration::from_millis(150);

/// A rate: operations or bytes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// By one core while the others idle.
    pub one: f64,
    /// By all cores together.
    pub all: f64,
}

/// The ceilings; `None` where this machine has no such instruction.
#[derive(Clone, Copy, Debug)]
pub struct Ceilings {
    /// Operations of INT8 products with i32 sums a second; a multiply-add is two.
    pub int8: Option<Rate>,
    /// Operations of BF16 products with F32 sums.
    pub bf16: Option<Rate>,
    /// Operations of F32 multiply-adds.
    pub f32: Option<Rate>,
    /// Bytes read a second from each level of memory, nearest first.
    pub levels: [Level; 4],
}

/// A level of memory.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// `L1`, `L2`, `L3` or `memory`.
    pub name: &'static str,
    /// Bytes that it holds for one core, or for all where it is shared.
    pub size: usize,
    /// Bytes a second.
    pub rate: Rate,
}

impl Ceilings {
    /// Measures, once a process: some ten seconds.
    pub fn of_this_machine() -> &'static Self {
        static CEILINGS: OnceLock<Ceilings> = OnceLock::new();
        CEILINGS.get_or_init(|| {
            eprintln!("probing the ceilings of this machine");
            Self::probe(LONG)
        })
    }

    /// Measures each figure for `time`.
    pub fn probe(time: Duration) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let rate = |work: &(dyn Fn() -> f64 + Sync)| Rate {
            one: median_rate(1, time, work),
            all: median_rate(cores, time, work),
        };
        Ceilings {
            int8: arithmetic::int8().map(|work| rate(&work)),
            bf16: arithmetic::bf16().map(|work| rate(&work)),
            f32: arithmetic::f32().map(|work| rate(&work)),
            levels: bandwidth::levels().map(|(name, size, set)| Level {
                name,
                size,
                rate: bandwidth::rate(set, cores, time),
            }),
        }
    }

    /// The nearest level of memory that holds `bytes`.
    pub fn level(&self, bytes: usize) -> &Level {
        self.levels.iter().find(|level| bytes <= level.size).unwrap_or(&self.levels[3])
    }
}

impl fmt::Display for Ceilings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| ceiling | one core | all cores |\n|---|---|---|")?;
        for (name, rate) in [("INT8", self.int8), ("BF16", self.bf16), ("F32", self.f32)] {
            match rate {
                Some(Rate { one, all }) => {
                    writeln!(f, "| {name}, GOP/s | {:.0} | {:.0} |", one / 1e9, all / 1e9)?;
                }
                None => writeln!(f, "| {name}, GOP/s | no such instruction | |")?,
            }
        }
        for Level { name, rate: Rate { one, all }, .. } in &self.levels {
            writeln!(f, "| {name}, GB/s read | {:.1} | {:.1} |", one / 1e9, all / 1e9)?;
        }
        Ok(())
    }
}

/// Units a second of `work`, a call of which returns its units, by so many threads at once.
fn median_rate(threads: usize, time: Duration, work: &(dyn Fn() -> f64 + Sync)) -> f64 {
    let mut rates: Vec<f64> = (0..3).map(|_| rate_once(threads, time, work)).collect();
    rates.sort_by(f64::total_cmp);
    rates[1]
}

fn rate_once(threads: usize, time: Duration, work: &(dyn Fn() -> f64 + Sync)) -> f64 {
    let start_line = Barrier::new(threads);
    let run = || {
        work();
        start_line.wait();
        let (start, mut units) = (Instant::now(), 0.0);
        while start.elapsed() < time {
            units += work();
        }
        units / start.elapsed().as_secs_f64()
    };
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        run() + others.into_iter().map(|other| other.join().unwrap_or(0.0)).sum::<f64>()
    })
}
