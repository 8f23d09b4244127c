//! Events: marks in a stream that others wait for.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::context::current;
use super::error::{EVENT_TIMEOUT, Failure, NO_EVENT, RUNTIME_PARAMETER, answer, lock, out};
use super::queue::Task;
use super::stream;
use crate::handle::{Handle, Table};
use crate::settings::{Counted, strikes};

/// The flag that asks for times.
const TIME_LINE: u32 = 0x8;
/// All flags of acl_rt.h, 2026-08.
const FLAGS: u32 = 0x7B;

#[derive(Default)]
struct Marks {
    /// How often it was recorded, and the last record that its stream has come to.
    recorded: u64,
    reached: u64,
    at: Option<Instant>,
    /// How the stream had failed when it came there.
    failure: Option<Failure>,
}

pub(crate) struct Event {
    times: bool,
    marks: Mutex<Marks>,
    changed: Condvar,
}

static EVENTS: Mutex<Table<Arc<Event>>> = Mutex::new(Table::new("event", 3));

impl Event {
    fn wait(&self, limit: Option<Duration>, ending: impl Fn() -> bool) -> bool {
        let end = limit.map(|limit| Instant::now() + limit);
        let mut marks = lock(&self.marks);
        let wanted = marks.recorded;
        while marks.reached < wanted {
            if ending() || end.is_some_and(|end| Instant::now() >= end) {
                return false;
            }
            // Short turns, so that a stream that ends is noticed.
            let woken = self.changed.wait_timeout(marks, Duration::from_millis(5));
            marks = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

fn find(event: Handle) -> Result<Arc<Event>, Failure> {
    current()?;
    lock(&EVENTS).get(event, RUNTIME_PARAMETER)
}

/// Makes a stream wait. What nobody has recorded never comes: that is refused here, where a device would hang.
pub(crate) fn wait_task(
    event: Handle,
    ending: impl Fn() -> bool + Send + Sync + 'static,
) -> Result<Task, Failure> {
    let found = find(event)?;
    if lock(&found.marks).recorded == 0 {
        return Err(Failure::new(RUNTIME_PARAMETER, format!("event {event:#x} was never recorded")));
    }
    Ok(Arc::new(move || {
        found.wait(None, &ending);
        Ok(())
    }))
}

/// Forgets all events; says how many nobody had destroyed.
pub(crate) fn clear() -> Option<String> {
    lock(&EVENTS).clear()
}

fn create(event: Option<&mut Handle>, flag: u32) -> Result<(), Failure> {
    current()?;
    if flag & !FLAGS != 0 {
        return Err(Failure::new(RUNTIME_PARAMETER, format!("flag {flag:#x}, limit {FLAGS:#x}")));
    }
    let place = out("event", event)?;
    if strikes(Counted::Event) {
        return Err(Failure::new(NO_EVENT, "the fault that was asked for"));
    }
    let made = Event { times: flag & TIME_LINE != 0, marks: Mutex::default(), changed: Condvar::new() };
    *place = lock(&EVENTS).add(Arc::new(made));
    Ok(())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtCreateEvent(event: Option<&mut Handle>) -> i32 {
    answer("aclrtCreateEvent", create(event, TIME_LINE))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtCreateEventWithFlag(event: Option<&mut Handle>, flag: u32) -> i32 {
    answer("aclrtCreateEventWithFlag", create(event, flag))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtCreateEventExWithFlag(event: Option<&mut Handle>, flag: u32) -> i32 {
    answer("aclrtCreateEventExWithFlag", create(event, flag))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtDestroyEvent(event: Handle) -> i32 {
    answer("aclrtDestroyEvent", lock(&EVENTS).take(event, RUNTIME_PARAMETER).map(drop))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtRecordEvent(event: Handle, stream: Handle) -> i32 {
    let record = || {
        let found = find(event)?;
        let stream = stream::find(stream)?;
        let number = {
            let mut marks = lock(&found.marks);
            marks.recorded += 1;
            marks.recorded
        };
        let of = Arc::downgrade(&stream);
        let marked: Task = Arc::new(move || {
            let failure = of.upgrade().and_then(|stream| stream.queue.check().err());
            let mut marks = lock(&found.marks);
            marks.failure = failure;
            marks.reached = marks.reached.max(number);
            marks.at = Some(Instant::now());
            found.changed.notify_all();
            Ok(())
        });
        stream.submit_mark(marked)
    };
    answer("aclrtRecordEvent", record())
}

fn synchronize(event: Handle, timeout: i32) -> Result<(), Failure> {
    let limit = u64::try_from(timeout).ok().map(Duration::from_millis);
    let found = find(event)?;
    if found.wait(limit, || false) {
        return lock(&found.marks).failure.clone().map_or(Ok(()), Err);
    }
    Err(Failure::new(EVENT_TIMEOUT, format!("not reached after {timeout} ms")))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtSynchronizeEvent(event: Handle) -> i32 {
    answer("aclrtSynchronizeEvent", synchronize(event, -1))
}

/// `timeout` in milliseconds, -1 for ever.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtSynchronizeEventWithTimeout(event: Handle, timeout: i32) -> i32 {
    answer("aclrtSynchronizeEventWithTimeout", synchronize(event, timeout))
}

/// `status` becomes 1 if the last record was reached, 0 if not.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtQueryEventStatus(event: Handle, status: Option<&mut i32>) -> i32 {
    let query = || {
        let found = find(event)?;
        let marks = lock(&found.marks);
        *out("status", status)? = i32::from(marks.recorded > 0 && marks.reached == marks.recorded);
        Ok(())
    };
    answer("aclrtQueryEventStatus", query())
}

/// Milliseconds of the host's clock: they say nothing about a device.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtEventElapsedTime(
    milliseconds: Option<&mut f32>,
    start: Handle,
    end: Handle,
) -> i32 {
    let elapsed = || {
        let mut at = [Instant::now(); 2];
        for (event, at) in [start, end].into_iter().zip(&mut at) {
            let found = find(event)?;
            if !found.times {
                let text = format!("event {event:#x} was made without ACL_EVENT_TIME_LINE");
                return Err(Failure::new(RUNTIME_PARAMETER, text));
            }
            let missing = || Failure::new(RUNTIME_PARAMETER, format!("event {event:#x} was not reached"));
            *at = lock(&found.marks).at.ok_or_else(missing)?;
        }
        *out("ms", milliseconds)? = at[1].saturating_duration_since(at[0]).as_secs_f32() * 1e3;
        Ok(())
    };
    answer("aclrtEventElapsedTime", elapsed())
}
