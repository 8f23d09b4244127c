//! The interpreter in the place of a GPU: every kernel as PTX on the host's processor, with all that it finds wrong as an
//! error of the launch.
//!
//! Work is done when it is queued, so a stream is always up to date and events are reached when they are recorded. Only
//! between `begin_capture` and `end_capture` is it collected.

mod objects;
#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use halite_ptx::{Arguments, Checks, Error, Machine, ir};

use self::objects::{
    Device, Owned, SimEvent, SimGraph, SimKernel, SimMemory, SimModule, SimPinned, SimStream, Step,
};
use super::{
    Description, Driver, DriverError, Event, Graph, Health, Kernel, KernelAttributes, LaunchShape, Memory,
    Module, Parameters, Pinned, Stream, check_range,
};
use crate::compile::{Architecture, Code, Image};

type Result<T> = std::result::Result<T, DriverError>;

/// What is told of the device, so that nobody takes it for a GPU.
const NAME: &str = "cuda (interpreted PTX, no GPU)";
/// Multiprocessors that it says it has: kernels that choose a grid by them get one of several blocks.
const MULTIPROCESSORS: u32 = 4;

/// How kernels are interpreted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interpreter {
    /// What PTX is made for: `sm_80` by default.
    pub architecture: Architecture,
    /// Host threads that execute the blocks of a launch: 1 by default, with which a launch is deterministic.
    pub threads: usize,
    /// Bytes of device memory: 4 GiB by default.
    pub memory: u64,
    /// What is looked for besides accesses out of bounds: uninitialised reads and races by default.
    pub checks: Checks,
}

impl Default for Interpreter {
    fn default() -> Self {
        let checks = Checks::ALL.with_counters(false);
        Interpreter { architecture: Architecture::OLDEST, threads: 1, memory: 4 << 30, checks }
    }
}

impl Interpreter {
    /// PTX of another architecture.
    #[must_use]
    pub fn architecture(mut self, architecture: Architecture) -> Self {
        self.architecture = architecture;
        self
    }

    /// So many host threads, at least one.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// So many bytes of device memory.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Other checks.
    #[must_use]
    pub fn checks(mut self, checks: Checks) -> Self {
        self.checks = checks;
        self
    }
}

/// A device that is interpreted.
pub fn interpreter(options: Interpreter) -> Arc<dyn Driver> {
    Arc::new(Interpreted::new(options))
}

#[derive(Debug)]
struct Interpreted {
    options: Interpreter,
    description: Description,
    health: Health,
    device: Arc<Device>,
}

impl Interpreted {
    fn new(options: Interpreter) -> Self {
        // As compute capabilities 8.0 and 9.0 have it.
        let shared = if options.architecture.capability() >= (9, 0) { 227 << 10 } else { 163 << 10 };
        let (architecture, memory) = (options.architecture, options.memory);
        let description = Description::new(NAME.to_owned(), architecture, MULTIPROCESSORS, memory, shared);
        let machine = Machine::new(
            halite_ptx::Options::default()
                .with_checks(options.checks)
                .with_threads(options.threads)
                .with_max_shared_bytes(shared.into()),
        );
        let device = Arc::new(Device { machine: RwLock::new(machine), used: AtomicU64::new(0) });
        Interpreted { options, description, health: Health::new(), device }
    }

    /// An object of this device.
    fn ours<'a, T: Owned>(&self, object: Result<&'a T>, what: &'static str) -> Result<&'a T> {
        let object = object?;
        if Arc::ptr_eq(object.device(), &self.device) {
            Ok(object)
        } else {
            Err(DriverError::Foreign { what })
        }
    }

    /// The address of bytes in device memory.
    fn place(&self, (memory, at): (&Memory, u64), bytes: u64) -> Result<u64> {
        self.ours(memory.get::<SimMemory>(), "device memory")?;
        check_range("device memory", *memory.bytes(), at, bytes)?;
        Ok(memory.address() + at)
    }

    fn pinned_place(&self, (pinned, at): (&Pinned, u64), bytes: u64) -> Result<()> {
        self.ours(pinned.get::<SimPinned>(), "pinned memory")?;
        check_range("pinned memory", *pinned.bytes(), at, bytes)
    }

    /// Does it now, or collects it.
    fn queue(&self, stream: &Stream, step: Step) -> Result<()> {
        let stream = self.ours(stream.get::<SimStream>(), "stream")?;
        let mut captured = stream.captured.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *captured {
            Some(steps) => {
                steps.push(step);
                Ok(())
            }
            None => {
                drop(captured);
                self.run(&step)
            }
        }
    }

    fn run(&self, step: &Step) -> Result<()> {
        let machine = self.device.machine.read().unwrap_or_else(PoisonError::into_inner);
        match step {
            Step::CopyIn { to, from: (pinned, at), bytes } => {
                let pinned = pinned.get::<SimPinned>()?.bytes.lock().unwrap_or_else(PoisonError::into_inner);
                machine.write(*to, part(&pinned, *at, *bytes)).map_err(refused)
            }
            Step::CopyOut { to: (pinned, at), from, bytes } => {
                let mut pinned =
                    pinned.get::<SimPinned>()?.bytes.lock().unwrap_or_else(PoisonError::into_inner);
                machine.read(*from, part_mut(&mut pinned, *at, *bytes)).map_err(refused)
            }
            Step::Copy { to, from, bytes } => machine.copy(*to, *from, *bytes).map_err(refused),
            Step::Fill { to, bytes, value } => machine.fill(*to, *value, *bytes).map_err(refused),
            Step::Record(event) => {
                let mut at = event.get::<SimEvent>()?.at.lock().unwrap_or_else(PoisonError::into_inner);
                *at = Some(Instant::now());
                Ok(())
            }
            Step::Launch { kernel, shape, parameters } => {
                let bytes = parameters.bytes();
                let arguments = parameters.places().iter().fold(Arguments::new(), |all, &(offset, size)| {
                    all.bytes(part(&bytes, offset as u64, size as u64))
                });
                let shape = halite_ptx::LaunchShape {
                    grid: shape.grid,
                    block: shape.block,
                    dynamic_shared_bytes: shape.shared,
                };
                let module = &kernel.get::<SimKernel>()?.module.get::<SimModule>()?.module;
                machine.launch(module, kernel.name(), shape, &arguments).map(drop).map_err(refused)
            }
        }
    }
}

impl Driver for Interpreted {
    fn description(&self) -> &Description {
        &self.description
    }

    fn health(&self) -> &Health {
        &self.health
    }

    fn rebuild(&self) -> Result<Arc<dyn Driver>> {
        Ok(interpreter(self.options.clone()))
    }

    fn stream(&self) -> Result<Stream> {
        Ok(Stream::new(SimStream { device: self.device.clone(), captured: Mutex::new(None) }))
    }

    fn synchronize(&self, stream: &Stream) -> Result<()> {
        let stream = self.ours(stream.get::<SimStream>(), "stream")?;
        let captured = stream.captured.lock().unwrap_or_else(PoisonError::into_inner);
        if captured.is_some() { Err(misused("synchronize", "the stream is being captured")) } else { Ok(()) }
    }

    fn allocate(&self, stream: &Stream, bytes: u64) -> Result<Memory> {
        self.ours(stream.get::<SimStream>(), "stream")?;
        let device = self.device.clone();
        let mut address = 0;
        if bytes > 0 {
            let mut machine = device.machine.write().unwrap_or_else(PoisonError::into_inner);
            let used = device.used.load(Ordering::Relaxed).saturating_add(bytes);
            if used > self.options.memory {
                return Err(DriverError::OutOfMemory { requested: bytes });
            }
            address = machine.allocate(bytes).map_err(refused)?;
            device.used.store(used, Ordering::Relaxed);
        }
        Ok(Memory::new(SimMemory { device, address, bytes }, address, bytes))
    }

    fn pinned(&self, bytes: u64) -> Result<Pinned> {
        let no_room = || DriverError::OutOfMemory { requested: bytes };
        let size = usize::try_from(bytes).map_err(|_| no_room())?;
        let mut memory = Vec::new();
        memory.try_reserve_exact(size).map_err(|_| no_room())?;
        memory.resize(size, 0);
        Ok(Pinned::new(SimPinned { device: self.device.clone(), bytes: Mutex::new(memory) }, bytes))
    }

    fn write_pinned(&self, (to, at): (&Pinned, u64), bytes: &[u8]) -> Result<()> {
        self.pinned_place((to, at), bytes.len() as u64)?;
        let mut to = to.get::<SimPinned>()?.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        part_mut(&mut to, at, bytes.len() as u64).copy_from_slice(bytes);
        Ok(())
    }

    fn read_pinned(&self, (from, at): (&Pinned, u64), bytes: &mut [u8]) -> Result<()> {
        self.pinned_place((from, at), bytes.len() as u64)?;
        let from = from.get::<SimPinned>()?.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        bytes.copy_from_slice(part(&from, at, bytes.len() as u64));
        Ok(())
    }

    fn copy_in(&self, stream: &Stream, to: (&Memory, u64), from: (&Pinned, u64), bytes: u64) -> Result<()> {
        self.pinned_place(from, bytes)?;
        let to = self.place(to, bytes)?;
        self.queue(stream, Step::CopyIn { to, from: (from.0.clone(), from.1), bytes })
    }

    fn copy_out(&self, stream: &Stream, to: (&Pinned, u64), from: (&Memory, u64), bytes: u64) -> Result<()> {
        self.pinned_place(to, bytes)?;
        let from = self.place(from, bytes)?;
        self.queue(stream, Step::CopyOut { to: (to.0.clone(), to.1), from, bytes })
    }

    fn copy(&self, stream: &Stream, to: (&Memory, u64), from: (&Memory, u64), bytes: u64) -> Result<()> {
        let (to, from) = (self.place(to, bytes)?, self.place(from, bytes)?);
        self.queue(stream, Step::Copy { to, from, bytes })
    }

    fn fill(&self, stream: &Stream, to: (&Memory, u64), bytes: u64, value: u8) -> Result<()> {
        let to = self.place(to, bytes)?;
        self.queue(stream, Step::Fill { to, bytes, value })
    }

    fn load(&self, image: &Image) -> Result<Module> {
        let refuse = |reason: String| DriverError::Image { program: image.program().to_owned(), reason };
        let Code::Ptx(text) = image.code() else {
            return Err(refuse("machine code is for a GPU: the interpreter gets PTX".to_owned()));
        };
        let parsed = ir::Module::parse(text).map_err(|error| refuse(error.to_string()))?;
        let mut machine = self.device.machine.write().unwrap_or_else(PoisonError::into_inner);
        let module = machine.load(parsed).map_err(refused)?;
        Ok(Module::new(SimModule { device: self.device.clone(), module }))
    }

    fn kernel(&self, module: &Module, name: &str, dynamic_shared: u32) -> Result<Kernel> {
        let loaded = self.ours(module.get::<SimModule>(), "module")?;
        let refuse =
            |error: Error| DriverError::Image { program: name.to_owned(), reason: error.to_string() };
        let kernel = loaded.module.kernel(name).map_err(refuse)?;
        let most = kernel.required_threads.or(kernel.max_threads);
        let threads = most.map_or(1024, |axes| axes.iter().product());
        let bytes = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let parameters = kernel.params.iter().map(|param| (param.offset as usize, param.bytes as usize));
        let attributes = KernelAttributes::new(kernel.registers, threads)
            .with_local(bytes(kernel.local_bytes))
            .with_shared(bytes(kernel.shared_bytes))
            .with_parameters(parameters.collect());
        let got = u64::from(dynamic_shared) + u64::from(attributes.static_shared);
        let limit = self.description.shared_per_block.into();
        if got > limit {
            return Err(DriverError::Limit { what: "shared memory of a block in bytes", got, limit });
        }
        let attributes = attributes.with_dynamic_shared(dynamic_shared);
        Ok(Kernel::new(SimKernel { device: self.device.clone(), module: module.clone() }, name, attributes))
    }

    unsafe fn launch(
        &self,
        stream: &Stream,
        kernel: &Kernel,
        shape: &LaunchShape,
        parameters: &Parameters,
    ) -> Result<()> {
        if shape.is_empty() {
            return Ok(());
        }
        self.ours(kernel.get::<SimKernel>(), "kernel")?;
        let (kernel, shape, parameters) = (kernel.clone(), *shape, parameters.clone());
        self.queue(stream, Step::Launch { kernel, shape, parameters })
    }

    fn event(&self) -> Result<Event> {
        Ok(Event::new(SimEvent { device: self.device.clone(), at: Mutex::new(None) }))
    }

    fn record(&self, stream: &Stream, event: &Event) -> Result<()> {
        self.ours(event.get::<SimEvent>(), "event")?;
        self.queue(stream, Step::Record(event.clone()))
    }

    fn reached(&self, event: &Event) -> Result<bool> {
        // All work before it was done when it was recorded.
        self.ours(event.get::<SimEvent>(), "event").map(|_| true)
    }

    fn wait(&self, event: &Event) -> Result<()> {
        self.reached(event).map(drop)
    }

    fn wait_on(&self, stream: &Stream, event: &Event) -> Result<()> {
        self.ours(stream.get::<SimStream>(), "stream")?;
        self.reached(event).map(drop)
    }

    fn elapsed(&self, from: &Event, to: &Event) -> Result<Duration> {
        let at = |event: &Event| {
            let event = self.ours(event.get::<SimEvent>(), "event")?;
            let at = *event.at.lock().unwrap_or_else(PoisonError::into_inner);
            at.ok_or_else(|| misused("elapsed", "an event was never recorded"))
        };
        Ok(at(to)?.saturating_duration_since(at(from)?))
    }

    fn begin_capture(&self, stream: &Stream) -> Result<()> {
        let stream = self.ours(stream.get::<SimStream>(), "stream")?;
        let mut captured = stream.captured.lock().unwrap_or_else(PoisonError::into_inner);
        if captured.is_some() {
            return Err(misused("begin_capture", "the stream is being captured already"));
        }
        *captured = Some(Vec::new());
        Ok(())
    }

    fn end_capture(&self, stream: &Stream) -> Result<Graph> {
        let stream = self.ours(stream.get::<SimStream>(), "stream")?;
        let mut captured = stream.captured.lock().unwrap_or_else(PoisonError::into_inner);
        let steps =
            captured.take().ok_or_else(|| misused("end_capture", "the stream is not being captured"))?;
        Ok(Graph::new(SimGraph { device: self.device.clone(), steps }))
    }

    unsafe fn launch_graph(&self, stream: &Stream, graph: &Graph) -> Result<()> {
        let graph = self.ours(graph.get::<SimGraph>(), "graph")?;
        let stream = self.ours(stream.get::<SimStream>(), "stream")?;
        let captured = stream.captured.lock().unwrap_or_else(PoisonError::into_inner);
        if captured.is_some() {
            return Err(misused("launch_graph", "the stream is being captured"));
        }
        drop(captured);
        graph.steps.iter().try_for_each(|step| {
            self.run(step).map_err(|cause| match step {
                Step::Launch { kernel, shape, .. } => DriverError::Launch {
                    kernel: kernel.name().to_string(),
                    shape: *shape,
                    cause: Box::new(cause),
                },
                _ => cause,
            })
        })
    }
}

/// The machine's error. What a kernel did wrong is a loss of the device, as it would be on a GPU.
fn refused(error: Error) -> DriverError {
    match error {
        Error::Faults(faults) => DriverError::Kernel { report: faults.to_string() },
        Error::OutOfMemory(requested) => DriverError::OutOfMemory { requested },
        other => DriverError::Call {
            call: "interpreter",
            code: "refused".to_owned(),
            meaning: other.to_string(),
            sticky: false,
        },
    }
}

fn misused(call: &'static str, meaning: &str) -> DriverError {
    DriverError::Call { call, code: "refused".to_owned(), meaning: meaning.to_owned(), sticky: false }
}

/// Bytes of host memory, whose range was checked.
fn part(all: &[u8], at: u64, bytes: u64) -> &[u8] {
    all.get(at as usize..(at + bytes) as usize).unwrap_or_default()
}

fn part_mut(all: &mut [u8], at: u64, bytes: u64) -> &mut [u8] {
    all.get_mut(at as usize..(at + bytes) as usize).unwrap_or_default()
}
