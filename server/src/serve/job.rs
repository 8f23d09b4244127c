//! Asking the engine's thread for answers, and taking the question back.

use super::error::ApiError;
use super::health::Health;
use halite_engine::{Finished, Request};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;

/// Names what one HTTP request asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct JobId(u64);

/// Something that happened to one answer of a job.
#[derive(Debug)]
pub(super) enum JobEvent {
    /// The answer got longer.
    Token {
        /// Which answer, in the order of the requests.
        choice: usize,
        token: u32,
    },
    /// The answer is complete.
    Finished { choice: usize, finished: Finished },
    /// The whole job has failed; nothing follows.
    Failed(ApiError),
}

/// What the engine's thread is asked for.
#[derive(Debug)]
pub(super) enum Command {
    Submit {
        id: JobId,
        requests: Vec<Request>,
        events: UnboundedSender<JobEvent>,
        admitted: oneshot::Sender<Result<(), ApiError>>,
    },
    Cancel(JobId),
    AbortAll(ApiError),
    Stop,
}

/// The way to the engine's thread. Clones lead to the same one.
#[derive(Clone, Debug)]
pub(super) struct EngineClient {
    commands: mpsc::Sender<Command>,
    health: Arc<Health>,
    next: Arc<AtomicU64>,
}

impl EngineClient {
    pub(super) fn new(commands: mpsc::Sender<Command>, health: Arc<Health>) -> Self {
        Self { commands, health, next: Arc::default() }
    }

    /// Asks for an answer to each of `requests`; all of them are admitted, or none.
    pub(super) async fn submit(&self, requests: Vec<Request>) -> Result<Job, ApiError> {
        self.health.status().check()?;
        let id = JobId(self.next.fetch_add(1, Ordering::Relaxed));
        let (events, receiver) = tokio::sync::mpsc::unbounded_channel();
        let (admitted, admission) = oneshot::channel();
        // From here on: whoever stops waiting, for the admission too, cancels the job.
        let guard = CancelOnDrop { id, commands: self.commands.clone() };
        let command = Command::Submit { id, requests, events, admitted };
        self.commands.send(command).map_err(|_| self.gone())?;
        admission.await.map_err(|_| self.gone())??;
        Ok(Job { events: receiver, health: Arc::clone(&self.health), _guard: guard })
    }

    /// Ends every job with this error.
    pub(super) fn abort_all(&self, error: ApiError) {
        _ = self.commands.send(Command::AbortAll(error));
    }

    /// Lets the thread end once nothing runs.
    pub(super) fn stop(&self) {
        _ = self.commands.send(Command::Stop);
    }

    fn gone(&self) -> ApiError {
        gone(&self.health)
    }
}

fn gone(health: &Health) -> ApiError {
    health.status().check().err().unwrap_or_else(ApiError::engine_gone)
}

/// Answers on their way. Dropping it cancels those that are not complete.
#[derive(Debug)]
pub(super) struct Job {
    events: UnboundedReceiver<JobEvent>,
    health: Arc<Health>,
    _guard: CancelOnDrop,
}

impl Job {
    /// The next event. A job whose engine vanished ends with [`JobEvent::Failed`].
    pub(super) async fn next(&mut self) -> JobEvent {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    pub(super) fn poll_next(&mut self, context: &mut std::task::Context<'_>) -> std::task::Poll<JobEvent> {
        let event = self.events.poll_recv(context);
        event.map(|event| event.unwrap_or_else(|| JobEvent::Failed(gone(&self.health))))
    }
}

#[derive(Debug)]
struct CancelOnDrop {
    id: JobId,
    commands: mpsc::Sender<Command>,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        // Without a thread there is nothing to cancel. A job that has ended is no longer known, which is fine.
        _ = self.commands.send(Command::Cancel(self.id));
    }
}
