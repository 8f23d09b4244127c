//! The one thread that owns the engine: commands in, steps, events out. It waits for nobody but for work.

use super::error::ApiError;
use super::health::{Health, Status};
use super::job::{Command, EngineClient, JobEvent, JobId};
use halite_engine::{Engine, EngineError, Event, FinishReason, Request, RequestId};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::{Builder, JoinHandle};
use tokio::sync::mpsc::UnboundedSender;

/// Commands taken between two steps: a flood of them must not keep the others' answers waiting.
const COMMANDS_A_STEP: usize = 64;

/// Starts the thread.
pub(super) fn spawn(engine: Engine, health: &Arc<Health>) -> io::Result<(EngineClient, JoinHandle<()>)> {
    let (sender, commands) = channel();
    let client = EngineClient::new(sender, Arc::clone(health));
    health.publish(&engine);
    let of_thread = Arc::clone(health);
    let run = move || {
        // However the thread ends: if nobody had asked for it, everybody shall know.
        let _watch = FailedUnlessStopping(Arc::clone(&of_thread));
        EngineThread { engine, health: of_thread, jobs: HashMap::new(), owners: BTreeMap::new() }
            .run(&commands);
    };
    let thread = Builder::new().name("engine".to_owned()).spawn(run)?;
    Ok((client, thread))
}

struct FailedUnlessStopping(Arc<Health>);

impl Drop for FailedUnlessStopping {
    fn drop(&mut self) {
        if self.0.status() != Status::Stopping {
            tracing::error!("the engine's thread has ended; no request can be served any more");
            self.0.advance(Status::Failed);
        }
    }
}

struct EngineThread {
    engine: Engine,
    health: Arc<Health>,
    jobs: HashMap<JobId, JobState>,
    /// The job and the answer that each request of the engine belongs to.
    owners: BTreeMap<RequestId, (JobId, usize)>,
}

struct JobState {
    events: UnboundedSender<JobEvent>,
    /// Those that have not ended.
    requests: Vec<RequestId>,
}

/// Nothing will come any more.
struct Stopped;

impl EngineThread {
    fn run(mut self, commands: &Receiver<Command>) {
        while self.take_commands(commands).is_ok() {
            let outcome = self.engine.step();
            // Before anybody hears of the step: who has its answer finds the room free that it took.
            self.health.publish(&self.engine);
            match outcome {
                Ok(events) => events.into_iter().for_each(|event| self.deliver(event)),
                Err(error) => self.recover(&error),
            }
        }
    }

    /// Takes what has come; waits for something if there is nothing to compute.
    fn take_commands(&mut self, commands: &Receiver<Command>) -> Result<(), Stopped> {
        for _ in 0..COMMANDS_A_STEP {
            let command = if self.engine.is_idle() {
                self.health.publish(&self.engine);
                commands.recv().map_err(|_| Stopped)?
            } else {
                match commands.try_recv() {
                    Ok(command) => command,
                    Err(TryRecvError::Empty) => return Ok(()),
                    Err(TryRecvError::Disconnected) => return Err(Stopped),
                }
            };
            match command {
                Command::Submit { id, requests, events, admitted } => {
                    let outcome = self.admit(id, requests, events);
                    // Nobody waiting for it any more has sent a cancellation after it.
                    _ = admitted.send(outcome);
                }
                Command::Cancel(id) => self.end(id, None),
                Command::AbortAll(error) => self.abort_all(&error),
                Command::Stop => return Err(Stopped),
            }
        }
        Ok(())
    }

    /// Admits all requests of a job, or none.
    fn admit(
        &mut self,
        id: JobId,
        requests: Vec<Request>,
        events: UnboundedSender<JobEvent>,
    ) -> Result<(), ApiError> {
        let mut added = Vec::with_capacity(requests.len());
        for (choice, request) in requests.into_iter().enumerate() {
            match self.engine.add(request) {
                Ok(request) => {
                    self.owners.insert(request, (id, choice));
                    added.push(request);
                }
                Err(error) => {
                    added.into_iter().for_each(|request| self.forget(request));
                    return Err(ApiError::from(&error));
                }
            }
        }
        self.jobs.insert(id, JobState { events, requests: added });
        Ok(())
    }

    fn deliver(&mut self, event: Event) {
        let (request, ended) = match &event {
            Event::Token { id, .. } => (*id, false),
            Event::Finished(finished) => (finished.id, true),
            _ => return,
        };
        let Some(&(id, choice)) = self.owners.get(&request) else { return };
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if ended {
            self.owners.remove(&request);
            job.requests.retain(|&other| other != request);
        }
        let event = match event {
            Event::Finished(finished) => {
                if let FinishReason::Error(message) = &finished.reason {
                    let message = format!("the answer could not be computed: {message}");
                    return self.end(id, Some(ApiError::internal(message)));
                }
                JobEvent::Finished { choice, finished }
            }
            Event::Token { token, .. } => JobEvent::Token { choice, token },
            _ => return,
        };
        let nobody_listens = job.events.send(event).is_err();
        if nobody_listens || job.requests.is_empty() {
            self.end(id, None);
        }
    }

    /// Ends a job and whatever of it still runs; whoever listens is told why.
    fn end(&mut self, id: JobId, error: Option<ApiError>) {
        let Some(job) = self.jobs.remove(&id) else { return };
        job.requests.into_iter().for_each(|request| self.forget(request));
        self.health.publish(&self.engine);
        if let Some(error) = error {
            _ = job.events.send(JobEvent::Failed(error));
        }
    }

    fn forget(&mut self, request: RequestId) {
        self.owners.remove(&request);
        self.engine.cancel(request);
    }

    fn abort_all(&mut self, error: &ApiError) {
        let jobs: Vec<JobId> = self.jobs.keys().copied().collect();
        jobs.into_iter().for_each(|id| self.end(id, Some(error.clone())));
    }

    /// After a fault of the engine itself nothing of the step is known: everybody in it is told, and the next request
    /// begins anew.
    fn recover(&mut self, error: &EngineError) {
        tracing::error!(%error, "the engine failed");
        self.abort_all(&ApiError::internal(format!("the engine failed: {error}")));
    }
}
