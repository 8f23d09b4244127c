//! Capture: a stream's tasks are recorded instead of run, and the recording is run as often as wanted.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use super::error::{
    CAPTURE_WRONG_THREAD, FORBIDDEN_IN_CAPTURE, Failure, MODEL_RUNNING, RUNTIME_PARAMETER, STREAM_CAPTURED,
    STREAM_NOT_CAPTURED, TASK_GROUP_STATUS, answer, lock, out,
};
use super::queue::Task;
use super::stream;
use crate::handle::{Handle, Table};

/// Modes of `aclmdlRICaptureMode`: synchronous work is forbidden to everybody,
const GLOBAL: i32 = 0;
/// or to the thread that captures,
const THREAD_LOCAL: i32 = 1;
/// or to nobody, and another thread may end the capture.
const RELAXED: i32 = 2;

/// The tasks of a recording; groups in it are exchanged between runs.
#[derive(Clone, Default)]
struct Tasks(Arc<Mutex<Vec<Task>>>);

/// A recording that came to its end, and how many runs of it are under way.
#[derive(Clone)]
struct Model {
    tasks: Tasks,
    runs: Arc<AtomicUsize>,
}

/// A run of a model, until its last task is done or the stream ends.
struct Run(Arc<AtomicUsize>);

/// A recording under way, or an exchange of a group's tasks.
pub(crate) struct Capture {
    tasks: Tasks,
    /// None where it forbids nothing.
    ban: Option<Ban>,
    /// Where the open group began.
    group: Option<usize>,
    /// The group that is exchanged; then `tasks` are the new ones.
    target: Option<Group>,
}

/// What a capture forbids as long as it is under way.
struct Ban {
    number: u64,
    thread: ThreadId,
}

#[derive(Clone)]
struct Group {
    tasks: Tasks,
    range: Range<usize>,
}

/// The captures that forbid synchronous work: their numbers, and to whom, which is everybody where no thread stands.
struct Bans {
    made: u64,
    live: Vec<(u64, Option<ThreadId>)>,
}

static MODELS: Mutex<Table<Model>> = Mutex::new(Table::new("aclmdlRI", 4));
static GROUPS: Mutex<Table<Group>> = Mutex::new(Table::new("task group", 5));
static BANS: Mutex<Bans> = Mutex::new(Bans { made: 0, live: Vec::new() });

impl Capture {
    pub(crate) fn record(&mut self, task: Task) {
        lock(&self.tasks.0).push(task);
    }
}

impl Ban {
    fn of(mode: i32) -> Option<Self> {
        let thread = thread::current().id();
        let to = match mode {
            GLOBAL => None,
            THREAD_LOCAL => Some(thread),
            _ => return None,
        };
        let mut bans = lock(&BANS);
        bans.made += 1;
        let number = bans.made;
        bans.live.push((number, to));
        Some(Self { number, thread })
    }
}

impl Drop for Ban {
    fn drop(&mut self) {
        lock(&BANS).live.retain(|(number, _)| *number != self.number);
    }
}

impl Run {
    fn of(model: &Model) -> Self {
        model.runs.fetch_add(1, Ordering::AcqRel);
        Self(model.runs.clone())
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What a capture that is not relaxed forbids (vllm-ascend issue 6002: 107030).
pub(crate) fn forbid(work: &str) -> Result<(), Failure> {
    let here = thread::current().id();
    if lock(&BANS).live.iter().all(|(_, to)| to.is_some_and(|thread| thread != here)) {
        return Ok(());
    }
    Err(Failure::new(FORBIDDEN_IN_CAPTURE, format!("{work} while a stream is captured")))
}

/// Forgets all recordings; says how many nobody had destroyed.
pub(crate) fn clear() -> Option<String> {
    // A group has no function that destroys it: it goes with its recording.
    lock(&GROUPS).clear();
    lock(&MODELS).clear()
}

fn not_captured() -> Failure {
    Failure::new(STREAM_NOT_CAPTURED, "the stream is not being captured")
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclmdlRICaptureBegin(stream: Handle, mode: i32) -> i32 {
    let begin = || {
        let stream = stream::find(stream)?;
        if !(GLOBAL..=RELAXED).contains(&mode) {
            return Err(Failure::new(RUNTIME_PARAMETER, format!("mode {mode}, 0 to {RELAXED} are known")));
        }
        let mut capture = lock(&stream.capture);
        if capture.is_some() {
            return Err(Failure::new(STREAM_CAPTURED, "the stream is being captured already"));
        }
        *capture = Some(Capture { tasks: Tasks::default(), ban: Ban::of(mode), group: None, target: None });
        Ok(())
    };
    answer("aclmdlRICaptureBegin", begin())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclmdlRICaptureEnd(stream: Handle, model: Option<&mut Handle>) -> i32 {
    let end = || {
        let stream = stream::find(stream)?;
        let place = out("modelRI", model)?;
        let mut capture = lock(&stream.capture);
        let under_way =
            capture.as_ref().filter(|capture| capture.target.is_none()).ok_or_else(not_captured)?;
        if under_way.ban.as_ref().is_some_and(|ban| ban.thread != thread::current().id()) {
            let text = "another thread began it, and its mode is not relaxed";
            return Err(Failure::new(CAPTURE_WRONG_THREAD, text));
        }
        let recording = capture.take().ok_or_else(not_captured)?;
        if recording.group.is_some() {
            return Err(Failure::new(TASK_GROUP_STATUS, "a task group is still open"));
        }
        *place = lock(&MODELS).add(Model { tasks: recording.tasks, runs: Arc::default() });
        Ok(())
    };
    answer("aclmdlRICaptureEnd", end())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclmdlRIExecuteAsync(model: Handle, stream: Handle) -> i32 {
    let execute = || {
        let stream = stream::find(stream)?;
        let model = lock(&MODELS).get(model, RUNTIME_PARAMETER)?;
        let run = Mutex::new(Some(Run::of(&model)));
        let tasks = lock(&model.tasks.0).clone();
        tasks.into_iter().try_for_each(|task| stream.submit(task))?;
        stream.submit_mark(Arc::new(move || {
            lock(&run).take();
            Ok(())
        }))
    };
    answer("aclmdlRIExecuteAsync", execute())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclmdlRIDestroy(model: Handle) -> i32 {
    let destroy = || {
        let mut models = lock(&MODELS);
        if models.get(model, RUNTIME_PARAMETER)?.runs.load(Ordering::Acquire) > 0 {
            return Err(Failure::new(MODEL_RUNNING, "it is running"));
        }
        models.take(model, RUNTIME_PARAMETER).map(drop)
    };
    answer("aclmdlRIDestroy", destroy())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclmdlRICaptureTaskGrpBegin(stream: Handle) -> i32 {
    let begin = || {
        let stream = stream::find(stream)?;
        let mut capture = lock(&stream.capture);
        let capture = capture.as_mut().ok_or_else(not_captured)?;
        if capture.group.is_some() {
            return Err(Failure::new(TASK_GROUP_STATUS, "a task group is open already"));
        }
        capture.group = Some(lock(&capture.tasks.0).len());
        Ok(())
    };
    answer("aclmdlRICaptureTaskGrpBegin", begin())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclmdlRICaptureTaskGrpEnd(stream: Handle, group: Option<&mut Handle>) -> i32 {
    let end = || {
        let stream = stream::find(stream)?;
        let place = out("handle", group)?;
        let mut capture = lock(&stream.capture);
        let capture = capture.as_mut().ok_or_else(not_captured)?;
        let none = || Failure::new(TASK_GROUP_STATUS, "no task group is open");
        let first = capture.group.take().ok_or_else(none)?;
        let range = first..lock(&capture.tasks.0).len();
        *place = lock(&GROUPS).add(Group { tasks: capture.tasks.clone(), range });
        Ok(())
    };
    answer("aclmdlRICaptureTaskGrpEnd", end())
}

/// From here on the stream's tasks are those of the group, until the end of the update.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclmdlRICaptureTaskUpdateBegin(stream: Handle, group: Handle) -> i32 {
    let begin = || {
        let stream = stream::find(stream)?;
        let target = lock(&GROUPS).get(group, RUNTIME_PARAMETER)?;
        let mut capture = lock(&stream.capture);
        if capture.is_some() {
            return Err(Failure::new(STREAM_CAPTURED, "the stream is being captured already"));
        }
        *capture = Some(Capture { tasks: Tasks::default(), ban: None, group: None, target: Some(target) });
        Ok(())
    };
    answer("aclmdlRICaptureTaskUpdateBegin", begin())
}

/// The group must have as many tasks as before.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclmdlRICaptureTaskUpdateEnd(stream: Handle) -> i32 {
    let end = || {
        let stream = stream::find(stream)?;
        let update = lock(&stream.capture).take_if(|capture| capture.target.is_some());
        let none = || Failure::new(TASK_GROUP_STATUS, "no update of a task group is under way");
        let update = update.ok_or_else(none)?;
        let group = update.target.ok_or_else(none)?;
        let fresh = lock(&update.tasks.0).clone();
        if fresh.len() != group.range.len() {
            let (got, had) = (fresh.len(), group.range.len());
            return Err(Failure::new(TASK_GROUP_STATUS, format!("{got} tasks for a group of {had}")));
        }
        lock(&group.tasks.0).splice(group.range, fresh);
        Ok(())
    };
    answer("aclmdlRICaptureTaskUpdateEnd", end())
}
