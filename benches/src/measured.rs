//! One measurement: criterion's, told as a rate and as a share of the ceiling that binds it.

use crate::{
    devices::{Clocked, Machine},
    work::Work,
};
use criterion::{BenchmarkGroup, Criterion, measurement::WallTime};
use halite_hal::{Event, Result, Stream};
use std::time::{Duration, Instant};

/// How long the device's own clock is read, where it has one.
const ON_DEVICE: f64 = 0.1;

/// Whether this is a measurement: without `--bench`, criterion only tries each benchmark once.
pub fn measuring() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// The measurements of one operator on one device.
pub struct Group<'c> {
    criterion: BenchmarkGroup<'c, WallTime>,
    machine: Machine,
}

impl<'c> Group<'c> {
    pub(crate) fn new(criterion: &'c mut Criterion, operator: &str, device: &str, machine: Machine) -> Self {
        let mut group = criterion.benchmark_group(format!("{operator}/{device}"));
        group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_millis(1200));
        group.sample_size(20);
        Group { criterion: group, machine }
    }

    /// Measures `step`, which queues its work on `stream`, under `id`, and says what share of the device's ceiling it
    /// reaches. Times are those of work done, not of work queued.
    ///
    /// # Errors
    /// That of the first step that fails.
    pub fn measure<S: Clocked>(
        &mut self,
        id: &str,
        work: Work,
        stream: &mut S,
        mut step: impl FnMut(&mut S) -> Result<()>,
    ) -> Result<()> {
        let mut outcome = Ok(());
        let mut best = f64::INFINITY;
        self.criterion.throughput(work.throughput());
        self.criterion.bench_function(id, |bencher| {
            bencher.iter_custom(|iterations| {
                let mut note = |done: Result<()>| {
                    if outcome.is_ok() {
                        outcome = done;
                    }
                };
                let start = Instant::now();
                for _ in 0..iterations {
                    note(step(stream));
                }
                note(done(stream));
                let time = start.elapsed();
                best = best.min(time.as_secs_f64() / iterations.max(1) as f64);
                time
            });
        });
        outcome?;
        // A filter may have left it out.
        if measuring() && best.is_finite() {
            println!("    {}", self.machine.bound(work).told(best));
            if let Some(told) = on_device(stream, step, best)? {
                println!("    {told}");
            }
        }
        Ok(())
    }
}

/// Waits until all that was queued is done.
fn done(stream: &mut impl Stream) -> Result<()> {
    stream.submit()?.wait()
}

/// What a device that works by itself says of a step: how often it was launched, and how long it worked.
fn on_device<S: Clocked>(
    stream: &mut S,
    mut step: impl FnMut(&mut S) -> Result<()>,
    seconds: f64,
) -> Result<Option<String>> {
    let Some(before) = stream.launches() else { return Ok(None) };
    let steps = (ON_DEVICE / seconds).clamp(1.0, 1000.0) as u32;
    let time = stream.time_on_device(|stream| (0..steps).try_for_each(|_| step(stream)))?;
    let launches = stream.launches().map_or(0, |after| after - before) as f64 / f64::from(steps);
    let clock = match time {
        Some(time) => format!("{:.1} µs", 1e6 * time.as_secs_f64() / f64::from(steps)),
        None => "no timestamps".to_owned(),
    };
    Ok(Some(format!("on the device {clock}, {launches} launches")))
}
