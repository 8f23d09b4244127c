//! Workers that wait for the next job awake.
//!
//! A decode step forks some 150 times for 10 to 100 µs of work, a few µs apart. Waking a sleeping worker takes as long
//! as the work; a worker that spins for the next job takes under a microsecond. So workers spin for a while after a job
//! and only then sleep.
//!
//! A job is one closure that the caller and every worker call; it claims tasks until there are none. The caller never
//! waits for a worker that has not begun: when its own call returns, all tasks are claimed, it closes the job, and waits
//! only for those inside. A worker that wakes late, because another program has its core, finds the job closed.

use std::{
    any::Any,
    cell::UnsafeCell,
    io,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc, Mutex, PoisonError, TryLockError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// How long a worker spins for the next job. Longer than the gaps within a step, shorter than anybody notices.
const SPIN: Duration = Duration::from_micros(200);

/// On lines of their own, so that workers which poll one do not slow down writes to another.
#[repr(align(128))]
struct Line<T>(T);

type Job = *const (dyn Fn() + Sync);

struct Shared {
    /// Twice the number of jobs so far, plus 1 while the last one is open; [`STOPPED`] at the end.
    state: Line<AtomicU64>,
    /// Workers that may be calling the job.
    inside: Line<AtomicUsize>,
    /// Written only while no job is open and nobody is inside.
    job: UnsafeCell<Option<Job>>,
    /// What a worker's call panicked with.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

const STOPPED: u64 = u64::MAX;

// SAFETY: `job` is the only part that is not `Sync` by itself. It is read by workers that are inside an open job and
// written by the caller while none is, as `Team::run` explains.
unsafe impl Sync for Shared {}
// SAFETY: the pointer is only ever called while the closure it points to is borrowed by `Team::run`.
unsafe impl Send for Shared {}

struct Worker {
    handle: Option<JoinHandle<()>>,
    asleep: Arc<Line<AtomicBool>>,
}

/// Some workers.
pub(crate) struct Team {
    shared: Arc<Shared>,
    workers: Vec<Worker>,
    /// Held while a job runs: a second caller does its work alone.
    busy: Mutex<()>,
}

impl Team {
    /// Starts `workers` threads.
    pub(crate) fn new(workers: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Line(AtomicU64::new(0)),
            inside: Line(AtomicUsize::new(0)),
            job: UnsafeCell::new(None),
            panic: Mutex::new(None),
        });
        // Made first: should a thread not start, dropping the team stops those that did.
        let mut team = Team { shared, workers: Vec::new(), busy: Mutex::new(()) };
        for index in 0..workers {
            let asleep = Arc::new(Line(AtomicBool::new(false)));
            let (shared, flag) = (Arc::clone(&team.shared), Arc::clone(&asleep));
            let handle = thread::Builder::new()
                .name(format!("halite-{index}"))
                .spawn(move || work(&shared, &flag.0))?;
            team.workers.push(Worker { handle: Some(handle), asleep });
        }
        Ok(team)
    }

    /// Calls `job` here, and on every worker that is free before this call of it returns; no more of them are woken
    /// than there are `tasks` for. When this returns nobody is calling it any more. A panic of any call is passed on.
    pub(crate) fn run(&self, tasks: usize, job: &(dyn Fn() + Sync)) {
        let _busy = match self.busy.try_lock() {
            Ok(busy) => busy,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another stream's operator, or one within a task of this one.
            Err(TryLockError::WouldBlock) => return job(),
        };
        // Where the caller's call panicked too, a worker's panic is still here: it is not this job's.
        self.shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        // SAFETY: only the lifetime changes. Workers call the pointer only between the opening below and the end of
        // `closing`, for which `job` is borrowed.
        let erased = unsafe { std::mem::transmute::<&(dyn Fn() + Sync), Job>(job) };
        // SAFETY: no job is open and nobody is inside: the last holder of `busy` closed its job and waited.
        unsafe { *self.shared.job.get() = Some(erased) };
        let closing = Closing(&self.shared);
        // SeqCst: a worker is either seen asleep below, or sees this before it sleeps.
        self.shared.state.0.fetch_add(1, Ordering::SeqCst);
        for worker in self.workers.iter().take(tasks.saturating_sub(1)) {
            if worker.asleep.0.load(Ordering::SeqCst)
                && let Some(handle) = &worker.handle
            {
                handle.thread().unpark();
            }
        }
        job();
        drop(closing);
        let panic = self.shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

/// Closes the open job when dropped, also when the caller's own call panics.
struct Closing<'a>(&'a Shared);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        // SeqCst: a worker that comes in either sees the job closed, or is seen inside here.
        self.0.state.0.fetch_add(1, Ordering::SeqCst);
        let mut spins = 0u32;
        while self.0.inside.0.load(Ordering::SeqCst) != 0 {
            spins = spins.wrapping_add(1);
            // With more threads than cores, whoever is inside may need this one to get on.
            if spins.is_multiple_of(256) { thread::yield_now() } else { std::hint::spin_loop() }
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.state.0.store(STOPPED, Ordering::SeqCst);
        for worker in &mut self.workers {
            if let Some(handle) = worker.handle.take() {
                handle.thread().unpark();
                // A worker catches its jobs' panics, so it has none of its own to pass on.
                let _ = handle.join();
            }
        }
    }
}

impl std::fmt::Debug for Team {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Team of {} workers", self.workers.len())
    }
}

/// A worker's life.
fn work(shared: &Shared, asleep: &AtomicBool) {
    let mut done = 0;
    loop {
        let open = wait(shared, asleep, done);
        if open == STOPPED {
            return;
        }
        done = open;
        shared.inside.0.fetch_add(1, Ordering::SeqCst);
        if shared.state.0.load(Ordering::SeqCst) == open {
            // SAFETY: the job is open and this worker is inside: the caller neither writes the pointer nor lets go of
            // the closure before `inside` is 0 again.
            let job = unsafe { (*shared.job.get()).map(|job| &*job) };
            if let Some(job) = job
                && let Err(panic) = catch_unwind(AssertUnwindSafe(job))
            {
                *shared.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
            }
        }
        shared.inside.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits for a job other than `done`, first awake, then asleep; returns the state that opened it.
fn wait(shared: &Shared, asleep: &AtomicBool, done: u64) -> u64 {
    let next = |state: u64| state == STOPPED || (state & 1 == 1 && state != done);
    let mut since: Option<Instant> = None;
    loop {
        for _ in 0..64 {
            let state = shared.state.0.load(Ordering::Acquire);
            if next(state) {
                return state;
            }
            std::hint::spin_loop();
        }
        if since.get_or_insert_with(Instant::now).elapsed() < SPIN {
            continue;
        }
        asleep.store(true, Ordering::SeqCst);
        // SeqCst, see `Team::run`. Parking returns at once where the caller unparked meanwhile.
        if !next(shared.state.0.load(Ordering::SeqCst)) {
            thread::park();
        }
        asleep.store(false, Ordering::SeqCst);
        since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_waits_for_those_inside() {
        let team = Team::new(3).unwrap();
        for round in 0..2000usize {
            let next = AtomicUsize::new(0);
            let sum = AtomicUsize::new(0);
            team.run(usize::MAX, &|| {
                loop {
                    let task = next.fetch_add(1, Ordering::Relaxed);
                    if task >= 16 {
                        break;
                    }
                    sum.fetch_add(task + round, Ordering::Relaxed);
                }
            });
            assert_eq!(sum.into_inner(), 120 + 16 * round);
            if round % 500 == 0 {
                // Long enough for the workers to fall asleep.
                thread::sleep(4 * SPIN);
            }
        }
    }

    #[test]
    fn callers_do_not_wait_for_each_other() {
        let team = Team::new(1).unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let calls = AtomicUsize::new(0);
                        // A job within a job: the inner one runs alone.
                        team.run(usize::MAX, &|| {
                            team.run(usize::MAX, &|| _ = calls.fetch_add(1, Ordering::Relaxed))
                        });
                        assert!((1..=2).contains(&calls.into_inner()));
                    }
                });
            }
        });
    }

    #[test]
    fn panics_are_passed_on_and_the_team_works_on() {
        let team = Team::new(2).unwrap();
        for _ in 0..50 {
            let panics = catch_unwind(AssertUnwindSafe(|| team.run(usize::MAX, &|| panic!("a task failed"))));
            assert!(panics.is_err());
            let calls = AtomicUsize::new(0);
            team.run(usize::MAX, &|| _ = calls.fetch_add(1, Ordering::Relaxed));
            assert!(calls.into_inner() >= 1);
        }
    }

    #[test]
    fn a_panic_of_a_worker_reaches_the_caller() {
        let team = Team::new(1).unwrap();
        let caller = thread::current().id();
        let failed = AtomicBool::new(false);
        let panics = catch_unwind(AssertUnwindSafe(|| {
            team.run(usize::MAX, &|| {
                if thread::current().id() == caller {
                    // Stay until the worker has failed.
                    while !failed.load(Ordering::SeqCst) {
                        thread::yield_now();
                    }
                } else {
                    failed.store(true, Ordering::SeqCst);
                    panic!("the worker failed");
                }
            });
        }));
        let panic = panics.unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"the worker failed"));
    }

    #[test]
    fn a_panic_does_not_outlive_its_job() {
        let team = Team::new(1).unwrap();
        let failed = AtomicBool::new(false);
        let caller = thread::current().id();
        let panics = catch_unwind(AssertUnwindSafe(|| {
            team.run(usize::MAX, &|| {
                if thread::current().id() != caller {
                    failed.store(true, Ordering::SeqCst);
                }
                // Both calls fail, the worker's too.
                while !failed.load(Ordering::SeqCst) {
                    thread::yield_now();
                }
                panic!("a task failed");
            });
        }));
        assert!(panics.is_err());
        let next = catch_unwind(AssertUnwindSafe(|| team.run(usize::MAX, &|| ())));
        assert!(next.is_ok(), "the panic of a job before came out of this one");
    }
}
