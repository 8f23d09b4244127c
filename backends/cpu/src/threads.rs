//! The threads that share an operator's work.
//!
//! The caller works too: `n` threads are the caller and a team of `n - 1` workers. Tasks are claimed one by one, so that
//! a worker that wakes late, or a core that another program uses, costs the share it did not take and no more. Which
//! thread takes which task never changes a result.

use crate::{buffer::DEVICE, team::Team};
use halite_hal::{Error, Result};
use std::sync::{Mutex, PoisonError};

/// The most threads of a device; more than this are an oversight.
pub const MAX_THREADS: usize = 1024;

/// The caller and its workers.
#[derive(Debug)]
pub(crate) struct Threads {
    /// None where the caller works alone.
    team: Option<Team>,
    count: usize,
}

impl Threads {
    /// `count` threads, the caller's included; 0 counts as 1.
    pub(crate) fn new(count: usize) -> Result<Self> {
        let count = count.max(1);
        if count > MAX_THREADS {
            let (got, limit) = (count as u64, MAX_THREADS as u64);
            return Err(Error::Limit { operator: DEVICE, argument: "threads", got, limit });
        }
        let team = (count > 1).then(|| Team::new(count - 1)).transpose().map_err(|error| Error::Device {
            device: DEVICE.to_owned(),
            cause: format!("{count} threads could not be started: {error}"),
        })?;
        Ok(Threads { team, count })
    }

    /// Threads, the caller's included.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// How many of `units` go into one task, so that a task is worth claiming and every thread finds a few.
    ///
    /// `nanoseconds` is a unit's work, roughly: see [`cost`](crate::cost).
    pub(crate) fn units_per_task(&self, units: usize, nanoseconds: usize) -> usize {
        units_per_task(self.count, units, nanoseconds)
    }

    /// The most tasks that [`units_per_task`](Self::units_per_task) makes of `units` or fewer.
    pub(crate) fn most_tasks(&self, units: usize) -> usize {
        units.min(self.count * TASKS_A_THREAD)
    }

    /// Runs `task` on each item, each once, on any thread.
    pub(crate) fn each<T: Send>(
        &self,
        items: impl ExactSizeIterator<Item = T> + Send,
        task: impl Fn(T) + Sync,
    ) {
        let tasks = items.len();
        let items = Mutex::new(items);
        let claim = || {
            loop {
                // A task that panicked did so outside the lock: the iterator is whole.
                let item = items.lock().unwrap_or_else(PoisonError::into_inner).next();
                match item {
                    Some(item) => task(item),
                    None => break,
                }
            }
        };
        self.share(tasks, &claim);
    }

    /// `claim` on the caller, and on the workers where there is more than one task.
    fn share(&self, tasks: usize, claim: &(impl Fn() + Sync)) {
        match &self.team {
            Some(team) if tasks > 1 => team.run(tasks, claim),
            _ => claim(),
        }
    }
}

/// Nanoseconds of a task at least: a fork to workers that are awake takes under 1 µs, so below a few µs a task costs more
/// than it saves.
const WORTH_FORKING: usize = 2_000;

/// Tasks that each thread finds, so that one that comes late, or takes longer, costs a quarter of its share at most.
const TASKS_A_THREAD: usize = 4;

pub(crate) fn units_per_task(threads: usize, units: usize, nanoseconds: usize) -> usize {
    if threads == 1 || units.saturating_mul(nanoseconds) < 2 * WORTH_FORKING {
        return units.max(1);
    }
    let fair = units.div_ceil(threads * TASKS_A_THREAD);
    fair.max(WORTH_FORKING.div_ceil(nanoseconds.max(1))).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_task_runs_once() {
        for count in [0, 1, 2, 5] {
            let threads = Threads::new(count).unwrap();
            for tasks in [0, 1, 2, 3, 100] {
                let runs: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                threads.each(0..tasks, |i| _ = runs[i].fetch_add(1, Ordering::Relaxed));
                threads.each(runs.iter(), |run| _ = run.fetch_add(1, Ordering::Relaxed));
                assert!(
                    runs.iter().all(|run| run.load(Ordering::Relaxed) == 2),
                    "{count} threads, {tasks} tasks"
                );
            }
        }
    }

    #[test]
    fn too_many_threads_are_refused() {
        for count in [MAX_THREADS + 1, usize::MAX] {
            let error = Threads::new(count).unwrap_err();
            assert!(matches!(error, Error::Limit { argument: "threads", .. }), "{error}");
        }
    }

    #[test]
    fn small_work_stays_on_the_caller() {
        for (threads, units, nanoseconds, expected) in [
            // Nothing, one thread, and one unit.
            (4, 0, 0, 1),
            (4, 0, 100, 1),
            (1, 1000, 10_000, 1000),
            (4, 1, usize::MAX, 1),
            // Below 4 µs in all the caller does it alone.
            (4, 100, 0, 100),
            (4, 100, 39, 100),
            (4, 100, 40, 50),
            (2, 3_999, 1, 3_999),
            (2, 4_000, 1, 2_000),
            (2, 4_001, 1, 2_000),
            // Then a task is 2 µs at least,
            (2, 100, 41, 49),
            (4, 100, 285, 8),
            // until four a thread are longer.
            (4, 100, 286, 7),
            (4, 100, 1_999, 7),
            (2, 100, 1_999, 13),
            (4, 16, 2_000, 1),
            (4, 17, 2_000, 2),
            (4, 1 << 20, 576, 1 << 16),
            (4, 1 << 20, usize::MAX, 1 << 16),
            (64, 100, 10_000, 1),
        ] {
            let chosen = units_per_task(threads, units, nanoseconds);
            assert_eq!(chosen, expected, "{units} units of {nanoseconds} ns, {threads} threads");
            let most = units.min(threads * TASKS_A_THREAD);
            assert!(units.div_ceil(chosen) <= most, "{units} units in tasks of {chosen}, {threads} threads");
        }
        let threads = Threads::new(4).unwrap();
        assert_eq!(threads.units_per_task(100, 40), 50);
        assert_eq!(
            [0, 1, 15, 16, 17, usize::MAX].map(|units| threads.most_tasks(units)),
            [0, 1, 15, 16, 16, 16]
        );
    }
}
