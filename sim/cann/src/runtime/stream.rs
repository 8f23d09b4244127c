//! Streams, and the copies and fills that run on them or beside them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::capture::{self, Capture};
use super::context::current;
use super::error::{
    AICORE_EXCEPTION, Failure, RUNTIME_PARAMETER, STREAM_CAPTURED, STREAM_CONTEXT, STREAM_TIMEOUT, answer,
    lock, out,
};
use super::event;
use super::memory::{self, PinnedRange};
use super::queue::{Queue, Task};
use crate::foreign;
use crate::handle::{Handle, Table};
use crate::settings::{Counted, strikes};

/// A queue in a context, or a recording of what would have gone into it.
pub(crate) struct Stream {
    context: Handle,
    pub(crate) queue: Queue,
    pub(crate) capture: Mutex<Option<Capture>>,
}

static STREAMS: Mutex<Table<Arc<Stream>>> = Mutex::new(Table::new("stream", 2));

/// A live stream of this thread's context.
pub(crate) fn find(handle: Handle) -> Result<Arc<Stream>, Failure> {
    let context = current()?;
    let stream = lock(&STREAMS).get(handle, RUNTIME_PARAMETER)?;
    if stream.context != context {
        let text = format!("stream {handle:#x} is of another context than this thread's");
        return Err(Failure::new(STREAM_CONTEXT, text));
    }
    Ok(stream)
}

impl Stream {
    /// Runs the task after all before it, or records it.
    pub(crate) fn submit(&self, task: Task) -> Result<(), Failure> {
        self.submit_by(task, |queue, task| queue.push(task))
    }

    /// The same for a mark that others wait for.
    pub(crate) fn submit_mark(&self, task: Task) -> Result<(), Failure> {
        self.submit_by(task, |queue, task| queue.push_mark(task))
    }

    fn submit_by(
        &self,
        task: Task,
        push: impl FnOnce(&Queue, Task) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match &mut *lock(&self.capture) {
            Some(capture) => {
                capture.record(task);
                Ok(())
            }
            None => push(&self.queue, task),
        }
    }

    /// The same for an operator, which faults can be asked for.
    pub(crate) fn launch(&self, operator: &'static str, task: Task) -> Result<(), Failure> {
        if strikes(Counted::Stall) {
            self.queue.push(self.queue.stalled())?;
        }
        if strikes(Counted::Launch) {
            let text = format!("{operator}: the exception that was asked for");
            return self.submit(Arc::new(move || Err(Failure::new(AICORE_EXCEPTION, text.clone()))));
        }
        self.submit(task)
    }

    fn not_capturing(&self) -> Result<(), Failure> {
        match *lock(&self.capture) {
            Some(_) => Err(Failure::new(STREAM_CAPTURED, "the stream is being captured")),
            None => Ok(()),
        }
    }

    fn synchronize(&self, milliseconds: i32) -> Result<(), Failure> {
        self.not_capturing()?;
        let limit = match milliseconds {
            -1 => None,
            0.. => Some(Duration::from_millis(milliseconds as u64)),
            _ => return Err(Failure::new(RUNTIME_PARAMETER, format!("timeout {milliseconds}, -1 or more"))),
        };
        if !self.queue.wait(limit) {
            let text = format!("not done after {milliseconds} ms");
            return Err(Failure::new(STREAM_TIMEOUT, text));
        }
        self.queue.check()
    }
}

/// Ends all streams; says how many nobody had destroyed.
pub(crate) fn clear() -> Option<String> {
    let mut streams = lock(&STREAMS);
    for stream in streams.objects() {
        stream.queue.abandon();
        stream.queue.wait(Some(Duration::from_secs(10)));
    }
    streams.clear()
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtCreateStream(stream: Option<&mut Handle>) -> i32 {
    answer("aclrtCreateStream", create(stream))
}

/// Priority and flags change nothing here but must be known ones.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtCreateStreamWithConfig(
    stream: Option<&mut Handle>,
    priority: u32,
    flag: u32,
) -> i32 {
    let create = || {
        if priority > 7 || flag > 0x3F {
            let text = format!("priority {priority}, limit 7; flag {flag:#x}, limit 0x3f");
            return Err(Failure::new(RUNTIME_PARAMETER, text));
        }
        create(stream)
    };
    answer("aclrtCreateStreamWithConfig", create())
}

fn create(stream: Option<&mut Handle>) -> Result<(), Failure> {
    let context = current()?;
    let place = out("stream", stream)?;
    let stream = Stream { context, queue: Queue::start(), capture: Mutex::new(None) };
    *place = lock(&STREAMS).add(Arc::new(stream));
    Ok(())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtDestroyStream(stream: Handle) -> i32 {
    let destroy = || {
        let found = find(stream)?;
        found.not_capturing()?;
        found.queue.finish();
        lock(&STREAMS).take(stream, RUNTIME_PARAMETER).map(drop)
    };
    answer("aclrtDestroyStream", destroy())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtDestroyStreamForce(stream: Handle) -> i32 {
    let destroy = || {
        let found = find(stream)?;
        // A capture ends with its stream, and what it forbade is allowed again.
        lock(&found.capture).take();
        found.queue.abandon();
        lock(&STREAMS).take(stream, RUNTIME_PARAMETER).map(drop)
    };
    answer("aclrtDestroyStreamForce", destroy())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtSynchronizeStream(stream: Handle) -> i32 {
    answer("aclrtSynchronizeStream", find(stream).and_then(|stream| stream.synchronize(-1)))
}

/// `timeout` in milliseconds, -1 for ever.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtSynchronizeStreamWithTimeout(stream: Handle, timeout: i32) -> i32 {
    answer("aclrtSynchronizeStreamWithTimeout", find(stream).and_then(|stream| stream.synchronize(timeout)))
}

/// `status` becomes 0 if all is done, 1 if not.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtStreamQuery(stream: Handle, status: Option<&mut i32>) -> i32 {
    let query = || {
        let stream = find(stream)?;
        stream.not_capturing()?;
        stream.queue.check()?;
        *out("status", status)? = i32::from(!stream.queue.is_idle());
        Ok(())
    };
    answer("aclrtStreamQuery", query())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtSynchronizeDevice() -> i32 {
    answer("aclrtSynchronizeDevice", synchronize_all(-1))
}

/// `timeout` in milliseconds for each stream, -1 for ever.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtSynchronizeDeviceWithTimeout(timeout: i32) -> i32 {
    answer("aclrtSynchronizeDeviceWithTimeout", synchronize_all(timeout))
}

fn synchronize_all(timeout: i32) -> Result<(), Failure> {
    current()?;
    capture::forbid("a synchronisation of the device")?;
    let streams = lock(&STREAMS).objects();
    streams.iter().try_for_each(|stream| stream.synchronize(timeout))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtStreamWaitEvent(stream: Handle, event: Handle) -> i32 {
    let wait = || {
        let stream = find(stream)?;
        stream.submit(event::wait_task(event, stream.queue.ending())?)
    };
    answer("aclrtStreamWaitEvent", wait())
}

#[derive(Clone, Copy)]
struct Copying {
    to: usize,
    from: usize,
    count: usize,
    to_side: Side,
    from_side: Side,
}

/// Whose memory it is; of the host's, what `aclrtMallocHost` gave is known.
#[derive(Clone, Copy)]
enum Side {
    Device,
    Host(Option<PinnedRange>),
}

impl Copying {
    /// Kinds: 0 host to host, 1 host to device, 2 device to host, 3 device to device.
    fn new(to: usize, room: usize, from: usize, count: usize, kind: i32) -> Result<Self, Failure> {
        let wrong = |text: String| Err(Failure::new(RUNTIME_PARAMETER, text));
        if count > room {
            return wrong(format!("count {count}, limit destMax {room}"));
        }
        if to == 0 || from == 0 {
            return wrong(format!("{} is null", if to == 0 { "dst" } else { "src" }));
        }
        let (from_device, to_device) = match kind {
            0..=3 => (kind & 2 != 0, kind == 1 || kind == 3),
            _ => return wrong(format!("kind {kind}, 0 to 3 are known")),
        };
        let side = |name: &str, address: usize, device: bool| {
            if memory::is_device(address) != device {
                let side = if device { "the device" } else { "the host" };
                let text = format!("{name} {address:#x} is not of {side}, as kind {kind} says");
                return Err(Failure::new(RUNTIME_PARAMETER, text));
            }
            if device {
                memory::with(address, count, |_| Side::Device)
            } else {
                memory::find_pinned(address, count).map(Side::Host)
            }
        };
        let (to_side, from_side) = (side("dst", to, to_device)?, side("src", from, from_device)?);
        Ok(Self { to, from, count, to_side, from_side })
    }

    fn run(self) -> Result<(), Failure> {
        let bytes = match self.from_side {
            Side::Device => memory::with(self.from, self.count, |bytes| bytes.to_vec())?,
            Side::Host(pinned) => memory::while_pinned(pinned, || foreign::read_host(self.from, self.count))?,
        };
        match self.to_side {
            Side::Device => memory::with(self.to, self.count, |to| to.copy_from_slice(&bytes)),
            Side::Host(pinned) => memory::while_pinned(pinned, || foreign::write_host(self.to, &bytes)),
        }
    }
}

/// Copies at once; waits for no stream.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtMemcpy(to: usize, room: usize, from: usize, count: usize, kind: i32) -> i32 {
    let copy = || {
        current()?;
        capture::forbid("a synchronous copy")?;
        Copying::new(to, room, from, count, kind)?.run()
    };
    answer("aclrtMemcpy", copy())
}

/// Copies when the stream comes to it; host memory is read or written then.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtMemcpyAsync(
    to: usize,
    room: usize,
    from: usize,
    count: usize,
    kind: i32,
    stream: Handle,
) -> i32 {
    let copy = || {
        let stream = find(stream)?;
        let copying = Copying::new(to, room, from, count, kind)?;
        stream.submit(Arc::new(move || copying.run()))
    };
    answer("aclrtMemcpyAsync", copy())
}

fn fill(address: usize, room: usize, value: i32, count: usize) -> Result<Task, Failure> {
    if count > room {
        return Err(Failure::new(RUNTIME_PARAMETER, format!("count {count}, limit maxCount {room}")));
    }
    memory::with(address, count, |_| ())?;
    Ok(Arc::new(move || memory::with(address, count, |bytes| bytes.fill(value as u8))))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtMemset(address: usize, room: usize, value: i32, count: usize) -> i32 {
    let set = || {
        current()?;
        capture::forbid("a synchronous fill")?;
        fill(address, room, value, count)?()
    };
    answer("aclrtMemset", set())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn aclrtMemsetAsync(
    address: usize,
    room: usize,
    value: i32,
    count: usize,
    stream: Handle,
) -> i32 {
    let set = || find(stream)?.submit(fill(address, room, value, count)?);
    answer("aclrtMemsetAsync", set())
}
