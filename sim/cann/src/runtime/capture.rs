//! Capture: a stream's tasks are recorded instead of run, and the recording is run as often as wanted.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::error::{
    FORBIDDEN_IN_CAPTURE, Failure, RUNTIME_PARAMETER, STREAM_CAPTURED, STREAM_NOT_CAPTURED,
    TASK_GROUP_STATUS, answer, lock, out,
};
use super::queue::Task;
use super::stream;
use crate::handle::{Handle, Table};

/// Mode 2 of `aclmdlRICaptureMode`, "relaxed": other work goes on as it likes.
const RELAXED: i32 = 2;

/// The tasks of a recording; groups in it are exchanged between runs.
#[derive(Clone, Default)]
struct Tasks(Arc<Mutex<Vec<Task>>>);

/// A recording under way, or an exchange of a group's tasks.
pub(crate) struct Capture {
    tasks: Tasks,
    relaxed: bool,
    /// Where the open group began.
    group: Option<usize>,
    /// The group that is exchanged; then `tasks` are the new ones.
    target: Option<Group>,
}

#[derive(Clone)]
struct Group {
    tasks: Tasks,
    range: Range<usize>,
}

static MODELS: Mutex<Table<Tasks>> = Mutex::new(Table::new("aclmdlRI", 4));
static GROUPS: Mutex<Table<Group>> = Mutex::new(Table::new("task group", 5));
/// How many captures that forbid synchronous work are under way.
static STRICT: Mutex<usize> = Mutex::new(0);

impl Capture {
    pub(crate) fn record(&mut self, task: Task) {
        lock(&self.tasks.0).push(task);
    }
}

/// What a capture that is not relaxed forbids everybody (vllm-ascend issue 6002: 107030).
pub(crate) fn forbid(work: &str) -> Result<(), Failure> {
    if *lock(&STRICT) == 0 {
        return Ok(());
    }
    Err(Failure::new(FORBIDDEN_IN_CAPTURE, format!("{work} while a stream is captured")))
}

/// Forgets all recordings; says how many nobody had destroyed.
pub(crate) fn clear() -> Option<String> {
    *lock(&STRICT) = 0;
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
        if !(0..=RELAXED).contains(&mode) {
            return Err(Failure::new(RUNTIME_PARAMETER, format!("mode {mode}, 0 to {RELAXED} are known")));
        }
        let mut capture = lock(&stream.capture);
        if capture.is_some() {
            return Err(Failure::new(STREAM_CAPTURED, "the stream is being captured already"));
        }
        let relaxed = mode == RELAXED;
        *lock(&STRICT) += usize::from(!relaxed);
        *capture = Some(Capture { tasks: Tasks::default(), relaxed, group: None, target: None });
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
        let recording = capture.take_if(|capture| capture.target.is_none()).ok_or_else(not_captured)?;
        *lock(&STRICT) -= usize::from(!recording.relaxed);
        if recording.group.is_some() {
            return Err(Failure::new(TASK_GROUP_STATUS, "a task group is still open"));
        }
        *place = lock(&MODELS).add(recording.tasks);
        Ok(())
    };
    answer("aclmdlRICaptureEnd", end())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclmdlRIExecuteAsync(model: Handle, stream: Handle) -> i32 {
    let execute = || {
        let stream = stream::find(stream)?;
        let tasks = lock(&MODELS).get(model, RUNTIME_PARAMETER)?;
        let tasks = lock(&tasks.0).clone();
        tasks.into_iter().try_for_each(|task| stream.submit(task))
    };
    answer("aclmdlRIExecuteAsync", execute())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclmdlRIDestroy(model: Handle) -> i32 {
    answer("aclmdlRIDestroy", lock(&MODELS).take(model, RUNTIME_PARAMETER).map(drop))
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
        *capture =
            Some(Capture { tasks: Tasks::default(), relaxed: true, group: None, target: Some(target) });
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
