//! A stream's thread and the tasks that wait for it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::error::{AICORE_EXCEPTION, Failure, lock};

/// Work of a stream; a captured one runs many times.
pub(crate) type Task = Arc<dyn Fn() -> Result<(), Failure> + Send + Sync>;

#[derive(Default)]
struct State {
    waiting: usize,
    /// The first failure; it stays, and no later task runs.
    failure: Option<Failure>,
    /// The stream is to end: whoever waits in it stops.
    abandoned: bool,
    /// A task waits for that end.
    stalled: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// A task, and whether it runs in a stream that has failed as well.
type Entry = (Task, bool);

/// Tasks in order, on a thread of their own.
pub(crate) struct Queue {
    shared: Arc<Shared>,
    sender: Mutex<Sender<Entry>>,
}

impl Queue {
    /// Starts the thread; it ends with the queue.
    pub(crate) fn start() -> Self {
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() });
        let (sender, receiver) = channel::<Entry>();
        let of_thread = shared.clone();
        std::thread::spawn(move || {
            for (task, always) in receiver {
                let idle = {
                    let state = lock(&of_thread.state);
                    (state.failure.is_some() && !always) || state.abandoned
                };
                let result = if idle { Ok(()) } else { run(&task) };
                let mut state = lock(&of_thread.state);
                state.waiting -= 1;
                if let Err(failure) = result {
                    // What reaches the device too late for a code of its own is an exception of its cores.
                    let code = if failure.code < 500_000 { AICORE_EXCEPTION } else { failure.code };
                    state.failure.get_or_insert(Failure::new(code, failure.text));
                }
                of_thread.changed.notify_all();
            }
        });
        Self { shared, sender: Mutex::new(sender) }
    }

    /// Puts a task at the end; a stream that has failed takes none.
    pub(crate) fn push(&self, task: Task) -> Result<(), Failure> {
        self.send(task, false)
    }

    /// The same for a task that others wait for: it runs even if one before it fails.
    pub(crate) fn push_mark(&self, task: Task) -> Result<(), Failure> {
        self.send(task, true)
    }

    fn send(&self, task: Task, always: bool) -> Result<(), Failure> {
        self.check()?;
        lock(&self.shared.state).waiting += 1;
        let gone = |_| Failure::new(AICORE_EXCEPTION, "the stream's thread has ended");
        lock(&self.sender).send((task, always)).map_err(gone)
    }

    /// The failure that stays, if there is one.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        lock(&self.shared.state).failure.clone().map_or(Ok(()), Err)
    }

    /// True if no task waits or runs.
    pub(crate) fn is_idle(&self) -> bool {
        lock(&self.shared.state).waiting == 0
    }

    /// Waits for all tasks, at most so long; false if time ran out.
    pub(crate) fn wait(&self, limit: Option<Duration>) -> bool {
        let end = limit.map(|limit| Instant::now() + limit);
        let mut state = lock(&self.shared.state);
        while state.waiting > 0 {
            let left =
                end.map_or(Duration::from_secs(3600), |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return false;
            }
            let woken = self.shared.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// A task that ends only when the stream does.
    pub(crate) fn stalled(&self) -> Task {
        let shared = self.shared.clone();
        lock(&shared.state).stalled = true;
        Arc::new(move || {
            let mut state = lock(&shared.state);
            while !state.abandoned {
                state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            Ok(())
        })
    }

    /// Ends after all tasks, or at once where one would never end.
    pub(crate) fn finish(&self) {
        if lock(&self.shared.state).stalled {
            self.abandon();
        }
        self.wait(None);
    }

    /// Ends: tasks that have not begun do not run.
    pub(crate) fn abandon(&self) {
        lock(&self.shared.state).abandoned = true;
        self.shared.changed.notify_all();
    }

    /// True once the stream is to end, for tasks that wait for something else.
    pub(crate) fn ending(&self) -> impl Fn() -> bool + Send + Sync + use<> {
        let shared = self.shared.clone();
        move || lock(&shared.state).abandoned
    }
}

fn run(task: &Task) -> Result<(), Failure> {
    let broken = |_| Failure::new(AICORE_EXCEPTION, "a fault of this library: its operator panicked");
    catch_unwind(AssertUnwindSafe(|| task())).map_err(broken)?
}
