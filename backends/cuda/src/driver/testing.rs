//! A driver for tests of what stands on drivers: it copies as late as it may, runs no kernels, and fails when it is told to.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use super::{
    Description, Driver, DriverError, Event, Graph, Health, Kernel, KernelAttributes, LaunchShape, Memory,
    Module, Parameters, Pinned, Stream, check_range,
};
use crate::compile::{Architecture, Image};

type Bytes = Arc<Mutex<Vec<u8>>>;
type Result<T> = std::result::Result<T, DriverError>;

struct FakeStream;
struct FakeModule;
struct FakeKernel;
/// How much queued work is before it.
#[derive(Default)]
struct FakeEvent(AtomicUsize);

/// Work that is queued and done in one order, whatever the stream.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<Box<dyn FnOnce() + Send>>,
    queued: usize,
    done: usize,
}

impl Queue {
    fn push(&mut self, work: impl FnOnce() + Send + 'static) {
        self.queued += 1;
        self.waiting.push_back(Box::new(work));
    }

    fn run(&mut self, until: usize) {
        while self.done < until {
            self.waiting.pop_front().unwrap()();
            self.done += 1;
        }
    }
}

pub(crate) struct Fake {
    description: Description,
    health: Health,
    queue: Mutex<Queue>,
    next_error: Mutex<Option<DriverError>>,
    launch_error: Mutex<Option<DriverError>>,
    launches: AtomicU64,
    pinned: AtomicU64,
}

impl std::fmt::Debug for Fake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fake")
    }
}

impl Fake {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Fake {
            description: Description::new("Fake".into(), Architecture::OLDEST, 1, 1 << 30, 48 << 10),
            health: Health::new(),
            queue: Mutex::default(),
            next_error: Mutex::default(),
            launch_error: Mutex::default(),
            launches: AtomicU64::new(0),
            pinned: AtomicU64::new(0),
        })
    }

    pub(crate) fn image() -> Image {
        Image::ptx("fake".into(), Architecture::OLDEST, String::new())
    }

    /// The next wait fails.
    pub(crate) fn fail_next(&self, error: DriverError) {
        *self.next_error.lock().unwrap() = Some(error);
    }

    /// The next launch fails.
    pub(crate) fn fail_launch(&self, error: DriverError) {
        *self.launch_error.lock().unwrap() = Some(error);
    }

    pub(crate) fn launches(&self) -> u64 {
        self.launches.load(Ordering::Relaxed)
    }

    /// Pinned memory that was ever allocated.
    pub(crate) fn pinned_bytes(&self) -> u64 {
        self.pinned.load(Ordering::Relaxed)
    }

    fn move_bytes(&self, (to, to_at): (&Bytes, u64), (from, from_at): (&Bytes, u64), bytes: u64) {
        let (to, from) = (to.clone(), from.clone());
        self.queue.lock().unwrap().push(move || {
            let part = from.lock().unwrap()[from_at as usize..][..bytes as usize].to_vec();
            to.lock().unwrap()[to_at as usize..][..bytes as usize].copy_from_slice(&part);
        });
    }
}

impl Driver for Fake {
    fn description(&self) -> &Description {
        &self.description
    }

    fn health(&self) -> &Health {
        &self.health
    }

    fn rebuild(&self) -> Result<Arc<dyn Driver>> {
        Ok(Fake::new())
    }

    fn stream(&self) -> Result<Stream> {
        Ok(Stream::new(FakeStream))
    }

    fn synchronize(&self, stream: &Stream) -> Result<()> {
        stream.get::<FakeStream>()?;
        if let Some(error) = self.next_error.lock().unwrap().take() {
            return Err(error);
        }
        let mut queue = self.queue.lock().unwrap();
        let all = queue.queued;
        queue.run(all);
        Ok(())
    }

    fn allocate(&self, _: &Stream, bytes: u64) -> Result<Memory> {
        if bytes > self.description.memory {
            return Err(DriverError::OutOfMemory { requested: bytes });
        }
        Ok(Memory::new::<Bytes>(Arc::new(Mutex::new(vec![0xcc; bytes as usize])), 256_u64, bytes))
    }

    fn pinned(&self, bytes: u64) -> Result<Pinned> {
        self.pinned.fetch_add(bytes, Ordering::Relaxed);
        Ok(Pinned::new::<Bytes>(Arc::new(Mutex::new(vec![0xcc; bytes as usize])), bytes))
    }

    fn write_pinned(&self, (to, at): (&Pinned, u64), bytes: &[u8]) -> Result<()> {
        check_range("pinned memory", *to.bytes(), at, bytes.len() as u64)?;
        to.get::<Bytes>()?.lock().unwrap()[at as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn read_pinned(&self, (from, at): (&Pinned, u64), bytes: &mut [u8]) -> Result<()> {
        check_range("pinned memory", *from.bytes(), at, bytes.len() as u64)?;
        bytes.copy_from_slice(&from.get::<Bytes>()?.lock().unwrap()[at as usize..][..bytes.len()]);
        Ok(())
    }

    fn copy_in(&self, _: &Stream, to: (&Memory, u64), from: (&Pinned, u64), bytes: u64) -> Result<()> {
        check_range("device memory", *to.0.bytes(), to.1, bytes)?;
        check_range("pinned memory", *from.0.bytes(), from.1, bytes)?;
        self.move_bytes((to.0.get()?, to.1), (from.0.get()?, from.1), bytes);
        Ok(())
    }

    fn copy_out(&self, _: &Stream, to: (&Pinned, u64), from: (&Memory, u64), bytes: u64) -> Result<()> {
        check_range("pinned memory", *to.0.bytes(), to.1, bytes)?;
        check_range("device memory", *from.0.bytes(), from.1, bytes)?;
        self.move_bytes((to.0.get()?, to.1), (from.0.get()?, from.1), bytes);
        Ok(())
    }

    fn copy(&self, _: &Stream, to: (&Memory, u64), from: (&Memory, u64), bytes: u64) -> Result<()> {
        check_range("device memory", *to.0.bytes(), to.1, bytes)?;
        check_range("device memory", *from.0.bytes(), from.1, bytes)?;
        self.move_bytes((to.0.get()?, to.1), (from.0.get()?, from.1), bytes);
        Ok(())
    }

    fn fill(&self, _: &Stream, (to, at): (&Memory, u64), bytes: u64, value: u8) -> Result<()> {
        check_range("device memory", *to.bytes(), at, bytes)?;
        let to = to.get::<Bytes>()?.clone();
        let fill = move || to.lock().unwrap()[at as usize..][..bytes as usize].fill(value);
        self.queue.lock().unwrap().push(fill);
        Ok(())
    }

    fn load(&self, _: &Image) -> Result<Module> {
        Ok(Module::new(FakeModule))
    }

    fn kernel(&self, module: &Module, name: &str, dynamic_shared: u32) -> Result<Kernel> {
        module.get::<FakeModule>()?;
        let attributes = KernelAttributes::new(32, 1024).with_parameters(vec![(0, 8)]);
        Ok(Kernel::new(FakeKernel, name, attributes.with_dynamic_shared(dynamic_shared)))
    }

    unsafe fn launch(&self, stream: &Stream, kernel: &Kernel, _: &LaunchShape, _: &Parameters) -> Result<()> {
        stream.get::<FakeStream>()?;
        kernel.get::<FakeKernel>()?;
        if let Some(error) = self.launch_error.lock().unwrap().take() {
            return Err(error);
        }
        self.launches.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn event(&self) -> Result<Event> {
        Ok(Event::new(FakeEvent::default()))
    }

    fn record(&self, _: &Stream, event: &Event) -> Result<()> {
        event.get::<FakeEvent>()?.0.store(self.queue.lock().unwrap().queued, Ordering::Relaxed);
        Ok(())
    }

    fn reached(&self, event: &Event) -> Result<bool> {
        Ok(self.queue.lock().unwrap().done >= event.get::<FakeEvent>()?.0.load(Ordering::Relaxed))
    }

    fn wait(&self, event: &Event) -> Result<()> {
        let until = event.get::<FakeEvent>()?.0.load(Ordering::Relaxed);
        self.queue.lock().unwrap().run(until);
        Ok(())
    }

    fn wait_on(&self, _: &Stream, event: &Event) -> Result<()> {
        event.get::<FakeEvent>().map(drop)
    }

    fn elapsed(&self, _: &Event, _: &Event) -> Result<Duration> {
        Ok(Duration::ZERO)
    }

    fn begin_capture(&self, _: &Stream) -> Result<()> {
        Err(DriverError::Limit { what: "captures", got: 1, limit: 0 })
    }

    fn end_capture(&self, _: &Stream) -> Result<Graph> {
        Err(DriverError::Limit { what: "captures", got: 1, limit: 0 })
    }

    unsafe fn launch_graph(&self, _: &Stream, _: &Graph) -> Result<()> {
        Err(DriverError::Limit { what: "captures", got: 1, limit: 0 })
    }
}
