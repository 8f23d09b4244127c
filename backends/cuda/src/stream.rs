//! A stream: the driver's, with its pinned memory, its scratch memory, and the memory that its queued work uses.

#[cfg(all(test, feature = "interpreter"))]
mod tests;

use std::{collections::VecDeque, fmt, mem};

use halite_hal::{Error, Result, Storage, Stream, Tensor};

use crate::{
    copy,
    device::Cuda,
    driver::{self, Download, Staging},
    launch::Launch,
    memory::CudaBuffer,
    room::Room,
};

/// So many handles may be held before it is looked whether the work that used them is done.
const ENOUGH: usize = 4096;

/// A stream. What is queued on it has begun when the call returns, or will without another.
pub struct CudaStream {
    device: Cuda,
    raw: driver::Stream,
    staging: Staging,
    /// Memory of work since the last event,
    held: Vec<CudaBuffer>,
    /// and of work before the events here, oldest first. It is freed in another stream's order, so not before them.
    behind: VecDeque<(driver::Event, Vec<CudaBuffer>)>,
    scratch: Option<CudaBuffer>,
    launches: u64,
    capturing: bool,
}

impl CudaStream {
    pub(crate) fn open(device: &Cuda) -> Result<Self> {
        let raw = device.context().stream()?;
        let staging = Staging::new(device.context(), &raw);
        Ok(CudaStream {
            device: device.clone(),
            raw,
            staging,
            held: Vec::new(),
            behind: VecDeque::new(),
            scratch: None,
            launches: 0,
            capturing: false,
        })
    }

    /// Queues a launch; without blocks there is nothing to do.
    pub(crate) fn launch(&mut self, mut launch: Launch) -> Result<()> {
        let context = self.device.context();
        let shape = launch.shape(context.description().shared_per_block)?;
        for (argument, buffer) in &launch.memory {
            buffer.check_is_of(&self.device, launch.operator, argument)?;
        }
        if shape.is_empty() {
            return Ok(());
        }
        let kernel = self.device.kernels().get(context, &launch.variant, launch.entry, shape.shared)?;
        // SAFETY: the kernel is one of this crate's, described with its parameters in its order; it touches the elements of
        // its tensors, whose shapes were checked, and all of that memory is held until the launch is done.
        unsafe { context.launch(&self.raw, &kernel, &shape, &launch.parameters) }?;
        self.launches += 1;
        self.hold(launch.memory.into_iter().map(|(_, buffer)| buffer))
    }

    /// The first `bytes` of scratch memory, which [`Stream::reserve`] has made room for.
    pub(crate) fn scratch(&self, operator: &'static str, bytes: u64) -> Result<Room> {
        let limit = self.scratch.as_ref().map_or(0, Storage::len);
        match &self.scratch {
            _ if bytes == 0 => Ok(Room::empty()),
            Some(scratch) if bytes <= limit => Ok(Room::new(scratch.clone(), bytes)),
            _ => {
                let argument = "workspace (call Stream::reserve first)";
                Err(Error::Limit { operator, argument, got: bytes, limit })
            }
        }
    }

    /// Copies host bytes to device memory from byte `at` on, in order with the other work.
    pub(crate) fn stage(&mut self, to: &CudaBuffer, at: u64, bytes: &[u8]) -> Result<()> {
        to.check_is_of(&self.device, "upload", "to")?;
        self.not_while_captured("upload", "a graph would copy the same bytes again: upload before it")?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.staging.upload((to.memory(), at), bytes)?;
        self.hold([to.clone()])
    }

    /// Copies bytes from one buffer to another, or within one between ranges that are apart.
    pub(crate) fn copy_bytes(
        &mut self,
        to: (&CudaBuffer, u64),
        from: (&CudaBuffer, u64),
        bytes: u64,
    ) -> Result<()> {
        to.0.check_is_of(&self.device, "copy", "to")?;
        from.0.check_is_of(&self.device, "copy", "from")?;
        if bytes == 0 {
            return Ok(());
        }
        let (to_memory, from_memory) = ((to.0.memory(), to.1), (from.0.memory(), from.1));
        self.device.context().copy(&self.raw, to_memory, from_memory, bytes)?;
        self.hold([to.0.clone(), from.0.clone()])
    }

    /// Starts reading bytes of a buffer.
    pub(crate) fn read(&mut self, from: &CudaBuffer, at: u64, bytes: u64) -> Result<CudaPending> {
        from.check_is_of(&self.device, "download", "from")?;
        self.not_while_captured("download", "what a graph computes is read after it was launched")?;
        let download = self.staging.download((from.memory(), at), bytes)?;
        self.hold([from.clone()])?;
        Ok(CudaPending(download))
    }

    /// A point after all that is queued, which other streams of the device may wait for.
    pub(crate) fn mark(&mut self) -> Result<driver::Event> {
        self.not_while_captured("collectives", "ranks meet on the host")?;
        self.release()
    }

    /// What is queued from now on comes after such a point of another stream.
    pub(crate) fn wait_for(&mut self, event: &driver::Event) -> Result<()> {
        self.device.context().wait_on(&self.raw, event)
    }

    /// Waits until all of its work is done.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.device.context().synchronize(&self.raw)?;
        self.held.clear();
        self.behind.clear();
        Ok(())
    }

    /// From now on what is queued is not done but collected, until [`CudaStream::end_capture`]. Uploads and read-backs are
    /// refused meanwhile.
    ///
    /// # Errors
    /// It collects already; the driver's.
    pub fn begin_capture(&mut self) -> Result<()> {
        self.release()?;
        self.device.context().begin_capture(&self.raw)?;
        self.capturing = true;
        Ok(())
    }

    /// What was collected, to be launched as often as one likes. It holds the memory that it uses.
    ///
    /// # Errors
    /// It does not collect; the driver's.
    pub fn end_capture(&mut self) -> Result<CudaGraph> {
        if !self.capturing {
            let (operator, argument) = ("end_capture", "stream");
            let expected = "a stream that is being captured".to_owned();
            return Err(Error::Argument { operator, argument, expected, got: "one that is not".to_owned() });
        }
        let graph = self.device.context().end_capture(&self.raw)?;
        self.capturing = false;
        // Only what was collected: the rest is behind the event of `begin_capture`.
        let held = mem::take(&mut self.held);
        Ok(CudaGraph { graph, held, device: self.device.id() })
    }

    /// Queues all that was collected.
    ///
    /// # Errors
    /// The graph is another device's; the driver's.
    pub fn launch_graph(&mut self, graph: &CudaGraph) -> Result<()> {
        if graph.device != self.device.id() {
            let (operator, argument) = ("launch_graph", "graph");
            let expected = "a graph of the stream's own device".to_owned();
            return Err(Error::Argument { operator, argument, expected, got: "another's".to_owned() });
        }
        // SAFETY: launches were sound when they were collected, and their memory is held by the graph, and by this stream
        // until they are done.
        unsafe { self.device.context().launch_graph(&self.raw, &graph.graph) }?;
        self.hold(graph.held.iter().cloned())
    }

    fn not_while_captured(&self, operator: &'static str, why: &str) -> Result<()> {
        if !self.capturing {
            return Ok(());
        }
        let expected = "a stream that is not being captured".to_owned();
        Err(Error::Argument { operator, argument: "stream", expected, got: format!("one that is; {why}") })
    }

    /// Keeps memory until what is queued now is done.
    fn hold(&mut self, buffers: impl IntoIterator<Item = CudaBuffer>) -> Result<()> {
        self.held.extend(buffers);
        if self.held.len() >= ENOUGH && !self.capturing { self.release().map(drop) } else { Ok(()) }
    }

    /// An event after all that is queued; lets go of memory whose work is done.
    fn release(&mut self) -> Result<driver::Event> {
        let context = self.device.context();
        while let Some((event, _)) = self.behind.front() {
            if !context.reached(event)? {
                break;
            }
            self.behind.pop_front();
        }
        let event = context.event()?;
        context.record(&self.raw, &event)?;
        if !self.held.is_empty() {
            self.behind.push_back((event.clone(), mem::take(&mut self.held)));
        }
        Ok(event)
    }
}

impl Stream for CudaStream {
    type Device = Cuda;
    type Event = CudaEvent;
    type Pending = CudaPending;

    fn device(&self) -> &Cuda {
        &self.device
    }

    fn upload(&mut self, to: &Tensor<Cuda>, bytes: &[u8]) -> Result<()> {
        to.check_upload(bytes)?;
        self.stage(to.buffer(), to.offset(), bytes)
    }

    fn download(&mut self, from: &Tensor<Cuda>) -> Result<CudaPending> {
        let bytes = (from.shape().elements() * from.dtype().size()) as u64;
        if from.is_dense() {
            return self.read(from.buffer(), from.offset(), bytes);
        }
        let dense = Tensor::new(&self.device, from.dtype(), from.dims())?;
        copy::elements(self, from, &dense)?;
        self.read(dense.buffer(), 0, bytes)
    }

    fn reserve(&mut self, bytes: u64) -> Result<()> {
        let enough = self.scratch.as_ref().is_some_and(|scratch| scratch.len() >= bytes);
        if !enough {
            // The old one goes first: both at once may not fit.
            self.scratch = None;
            self.scratch = Some(halite_hal::Device::alloc(&self.device, bytes)?);
        }
        Ok(())
    }

    fn submit(&mut self) -> Result<CudaEvent> {
        self.not_while_captured("submit", "what is collected is launched as a graph")?;
        let event = self.release()?;
        Ok(CudaEvent { device: self.device.clone(), event })
    }

    fn launches(&self) -> Option<u64> {
        Some(self.launches)
    }
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        if self.capturing {
            let _ = self.device.context().end_capture(&self.raw);
        }
        // The memory of queued work is freed after it. What went wrong there is heard of by the next call on the device.
        let _ = self.device.context().synchronize(&self.raw);
    }
}

impl fmt::Debug for CudaStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaStream on {:?}", self.device)
    }
}

/// A point in a stream's order of work.
#[derive(Clone, Debug)]
pub struct CudaEvent {
    device: Cuda,
    event: driver::Event,
}

impl halite_hal::Event for CudaEvent {
    fn wait(&self) -> Result<()> {
        self.device.context().wait(&self.event)
    }
}

/// Bytes on their way to the host.
#[derive(Debug)]
pub struct CudaPending(Download);

impl halite_hal::Pending for CudaPending {
    fn wait(self) -> Result<Vec<u8>> {
        self.0.wait()
    }
}

/// Work that was collected.
#[derive(Debug)]
pub struct CudaGraph {
    graph: driver::Graph,
    held: Vec<CudaBuffer>,
    device: u64,
}
