//! A stream: CANN's, with its pinned memory, its scratch memory, and the memory that its queued work uses.

use std::{collections::VecDeque, fmt, mem, sync::Arc};

use halite_hal::{DType, Error, Result, Storage, Stream, Tensor};

use crate::{
    device::Ascend,
    gather::Gather,
    memory::AscendBuffer,
    runtime::{Download, Event, Operation, Queue, Runtime, RuntimeError, Staging},
};

/// So many handles may be held before it is looked whether the work that used them is done.
const ENOUGH: usize = 4096;
/// Memory for CANN's operators grows by multiples of this.
const STEP: u64 = 1 << 20;

/// A stream. What is queued on it has begun when the call returns, or will without another.
pub struct AscendStream {
    pub(crate) device: Ascend,
    pub(crate) queue: Arc<Queue>,
    staging: Staging,
    /// Memory of work since the last event,
    pub(crate) held: Vec<AscendBuffer>,
    /// and of work before the events here, oldest first. It is freed at once, so not before them.
    behind: VecDeque<(Arc<Event>, Vec<AscendBuffer>)>,
    scratch: Option<AscendBuffer>,
    /// What CANN's operators ask for when they plan a call; one after the other they share it.
    workspace: Option<AscendBuffer>,
    aside: Option<AscendBuffer>,
    ones: Option<Tensor<Ascend>>,
    zero: Option<AscendBuffer>,
    numbers: Option<Tensor<Ascend>>,
    triangle: Option<Tensor<Ascend>>,
    operators: u64,
    pub(crate) capturing: bool,
}

impl AscendStream {
    pub(crate) fn open(device: &Ascend) -> Result<Self> {
        let runtime = device.runtime();
        let queue = Arc::new(runtime.told(runtime.queue())?);
        Ok(AscendStream {
            device: device.clone(),
            staging: Staging::new(runtime, &queue),
            queue,
            held: Vec::new(),
            behind: VecDeque::new(),
            scratch: None,
            workspace: None,
            aside: None,
            ones: None,
            zero: None,
            numbers: None,
            triangle: None,
            operators: 0,
            capturing: false,
        })
    }

    /// Plans a call of one of CANN's operators over these tensors, and queues it.
    pub(crate) fn run(
        &mut self,
        operator: &'static str,
        tensors: &[(&'static str, &Tensor<Ascend>)],
        plan: impl FnOnce(&Runtime) -> std::result::Result<Operation, RuntimeError>,
    ) -> Result<()> {
        for (argument, tensor) in tensors {
            tensor.buffer().check_is_of(&self.device, operator, argument)?;
        }
        let runtime = self.device.runtime().clone();
        let operation = runtime.told(plan(&runtime))?;
        let workspace = self.workspace(operation.workspace())?;
        let mut touched: Vec<AscendBuffer> = operation.buffers().cloned().collect();
        let queued = operation.queue(&self.queue, workspace.as_ref().map(AscendBuffer::memory));
        // It may have been queued in part where it failed.
        touched.extend(workspace);
        self.hold(touched)?;
        self.operators += 1;
        runtime.told(queued)
    }

    /// Memory for one of CANN's operators. It says how much it needs when it plans a call, so this grows where it must.
    fn workspace(&mut self, bytes: u64) -> Result<Option<AscendBuffer>> {
        if bytes == 0 {
            return Ok(None);
        }
        self.grows(self.workspace.as_ref(), bytes)?;
        grown(&self.device, &mut self.workspace, bytes).map(Some)
    }

    /// Scratch memory, which [`Stream::reserve`] has made room for.
    pub(crate) fn scratch(&self, operator: &'static str, got: u64) -> Result<AscendBuffer> {
        let limit = self.scratch.as_ref().map_or(0, Storage::len);
        match &self.scratch {
            Some(scratch) if got <= limit => Ok(scratch.clone()),
            _ => {
                Err(Error::Limit { operator, argument: "workspace (call Stream::reserve first)", got, limit })
            }
        }
    }

    /// Memory for what CANN's operators want beside a call's own tensors, where the contract has no workspace: it grows as
    /// theirs does.
    pub(crate) fn aside(&mut self, bytes: u64) -> Result<AscendBuffer> {
        self.grows(self.aside.as_ref(), bytes)?;
        grown(&self.device, &mut self.aside, bytes)
    }

    /// Nothing is allocated while work is collected.
    fn grows(&self, memory: Option<&AscendBuffer>, got: u64) -> Result<()> {
        let limit = memory.map_or(0, Storage::len);
        if !self.capturing || got <= limit {
            return Ok(());
        }
        let argument = "memory of CANN's operators (run the same once before it is captured)";
        Err(Error::Limit { operator: "capture", argument, got, limit })
    }

    /// Refuses what cannot be collected.
    pub(crate) fn not_while_captured(&self, operator: &'static str, why: &str) -> Result<()> {
        if !self.capturing {
            return Ok(());
        }
        let expected = "a stream that is not being captured".to_owned();
        Err(Error::Argument { operator, argument: "stream", expected, got: format!("one that is; {why}") })
    }

    /// So many ones, F32.
    pub(crate) fn ones(&mut self, count: usize) -> Result<Tensor<Ascend>> {
        let enough = self.ones.as_ref().filter(|ones| ones.dims()[0] >= count);
        let ones = match enough {
            Some(ones) => ones.clone(),
            None => {
                let count = count.next_power_of_two();
                let ones = Tensor::new(&self.device, DType::F32, &[count])?;
                self.stage(ones.buffer(), 0, bytemuck::cast_slice(&vec![1f32; count]))?;
                self.ones.insert(ones).clone()
            }
        };
        ones.narrow(0, 0..count)
    }

    /// The numbers from 1 to `count`, F32.
    pub(crate) fn numbers(&mut self, count: usize) -> Result<Tensor<Ascend>> {
        let enough = self.numbers.as_ref().filter(|numbers| numbers.dims()[0] >= count);
        let numbers = match enough {
            Some(numbers) => numbers.clone(),
            None => {
                let values: Vec<f32> = (1..=count.next_power_of_two()).map(|number| number as f32).collect();
                let numbers = Tensor::new(&self.device, DType::F32, &[values.len()])?;
                self.stage(numbers.buffer(), 0, bytemuck::cast_slice(&values))?;
                self.numbers.insert(numbers).clone()
            }
        };
        numbers.narrow(0, 0..count)
    }

    /// F32 `[count, count]`: ones on the diagonal and before it, zeros behind it.
    pub(crate) fn triangle(&mut self, count: usize) -> Result<Tensor<Ascend>> {
        let enough = self.triangle.as_ref().filter(|triangle| triangle.dims()[0] >= count);
        let triangle = match enough {
            Some(triangle) => triangle.clone(),
            None => {
                let side = count.next_power_of_two();
                let value = |at: usize| if at % side <= at / side { 1f32 } else { 0.0 };
                let values: Vec<f32> = (0..side * side).map(value).collect();
                let triangle = Tensor::new(&self.device, DType::F32, &[side, side])?;
                self.stage(triangle.buffer(), 0, bytemuck::cast_slice(&values))?;
                self.triangle.insert(triangle).clone()
            }
        };
        triangle.narrow(0, 0..count)?.narrow(1, 0..count)
    }

    /// One 0 of a type, whose bytes are zeros.
    pub(crate) fn zero(&mut self, dtype: DType) -> Result<Tensor<Ascend>> {
        let zero = match &self.zero {
            Some(zero) => zero.clone(),
            None => {
                let zero = halite_hal::Device::alloc(&self.device, 32)?;
                self.stage(&zero, 0, &[0; 32])?;
                self.zero.insert(zero).clone()
            }
        };
        Tensor::from_buffer(zero, 0, dtype, &[1])
    }

    /// Copies host bytes to device memory from byte `at` on, in order with the other work.
    pub(crate) fn stage(&mut self, to: &AscendBuffer, at: u64, bytes: &[u8]) -> Result<()> {
        to.check_is_of(&self.device, "upload", "to")?;
        self.not_while_captured("upload", "a graph would copy the same bytes again: upload before it")?;
        if bytes.is_empty() {
            return Ok(());
        }
        let staged = self.staging.upload((to.memory(), at), bytes);
        self.hold([to.clone()])?;
        self.device.runtime().told(staged)
    }

    /// Copies bytes from one buffer to another, or within one between ranges that are apart.
    pub(crate) fn copy_bytes(
        &mut self,
        to: (&AscendBuffer, u64),
        from: (&AscendBuffer, u64),
        bytes: u64,
    ) -> Result<()> {
        to.0.check_is_of(&self.device, "copy", "to")?;
        from.0.check_is_of(&self.device, "copy", "from")?;
        if bytes == 0 {
            return Ok(());
        }
        let (to_memory, from_memory) = ((to.0.memory(), to.1), (from.0.memory(), from.1));
        let runtime = self.device.runtime();
        runtime.told(runtime.copy(&self.queue, to_memory, from_memory, bytes))?;
        self.hold([to.0.clone(), from.0.clone()])
    }

    /// Starts reading bytes of a buffer.
    pub(crate) fn read(&mut self, from: &AscendBuffer, at: u64, bytes: u64) -> Result<AscendPending> {
        from.check_is_of(&self.device, "download", "from")?;
        self.not_while_captured("download", "what a graph computes is read after it was launched")?;
        let runtime = self.device.runtime().clone();
        let download = runtime.told(self.staging.download((from.memory(), at), bytes))?;
        self.hold([from.clone()])?;
        Ok(AscendPending { runtime, download, gather: None })
    }

    /// Waits until all of its work is done.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let runtime = self.device.runtime();
        runtime.told(runtime.synchronize(&self.queue))?;
        self.held.clear();
        self.behind.clear();
        Ok(())
    }

    /// Keeps memory until what is queued now is done.
    pub(crate) fn hold(&mut self, buffers: impl IntoIterator<Item = AscendBuffer>) -> Result<()> {
        self.held.extend(buffers);
        if self.held.len() >= ENOUGH && !self.capturing { self.release().map(drop) } else { Ok(()) }
    }

    /// An event after all that is queued; lets go of memory whose work is done.
    pub(crate) fn release(&mut self) -> Result<Arc<Event>> {
        let runtime = self.device.runtime();
        while let Some((event, _)) = self.behind.front() {
            if !runtime.told(runtime.reached(event))? {
                break;
            }
            self.behind.pop_front();
        }
        let event = Arc::new(runtime.told(runtime.event())?);
        runtime.told(runtime.record(&self.queue, &event))?;
        if !self.held.is_empty() {
            self.behind.push_back((event.clone(), mem::take(&mut self.held)));
        }
        Ok(event)
    }
}

/// Memory of at least so many bytes, what is there where it is enough. What was there before is held by the work that uses it.
fn grown(device: &Ascend, memory: &mut Option<AscendBuffer>, bytes: u64) -> Result<AscendBuffer> {
    if let Some(enough) = memory.as_ref().filter(|memory| memory.len() >= bytes) {
        return Ok(enough.clone());
    }
    let bytes = bytes.checked_next_multiple_of(STEP).unwrap_or(bytes);
    Ok(memory.insert(halite_hal::Device::alloc(device, bytes)?).clone())
}

impl Stream for AscendStream {
    type Device = Ascend;
    type Event = AscendEvent;
    type Pending = AscendPending;

    fn device(&self) -> &Ascend {
        &self.device
    }

    fn upload(&mut self, to: &Tensor<Ascend>, bytes: &[u8]) -> Result<()> {
        to.check_upload(bytes)?;
        self.stage(to.buffer(), to.offset(), bytes)
    }

    fn download(&mut self, from: &Tensor<Ascend>) -> Result<AscendPending> {
        // A view with gaps comes with them: the host takes its elements out.
        let range = from.byte_range();
        let mut pending = self.read(from.buffer(), range.start, range.end - range.start)?;
        pending.gather = (!from.is_dense()).then(|| Gather::of(from));
        Ok(pending)
    }

    fn reserve(&mut self, bytes: u64) -> Result<()> {
        let enough = self.scratch.as_ref().is_some_and(|scratch| scratch.len() >= bytes);
        if !enough {
            // The old one goes first: both at once may not fit. Queued work that uses it holds it.
            self.scratch = None;
            self.scratch = Some(halite_hal::Device::alloc(&self.device, bytes)?);
        }
        Ok(())
    }

    fn submit(&mut self) -> Result<AscendEvent> {
        self.not_while_captured("submit", "what is collected is launched as a graph")?;
        let event = self.release()?;
        Ok(AscendEvent { device: self.device.clone(), queue: self.queue.clone(), event })
    }

    fn launches(&self) -> Option<u64> {
        Some(self.operators)
    }
}

impl Drop for AscendStream {
    fn drop(&mut self) {
        // The memory of queued work is freed after it. What went wrong there is heard of by the next call on the device.
        let runtime = self.device.runtime();
        if self.capturing {
            let _ = runtime.end_capture(&self.queue);
        }
        let _ = runtime.synchronize(&self.queue);
    }
}

impl fmt::Debug for AscendStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AscendStream on {:?}", self.device)
    }
}

/// A point in a stream's order of work.
#[derive(Clone, Debug)]
pub struct AscendEvent {
    device: Ascend,
    /// Lives as long as its events.
    queue: Arc<Queue>,
    event: Arc<Event>,
}

impl halite_hal::Event for AscendEvent {
    fn wait(&self) -> Result<()> {
        let runtime = self.device.runtime();
        runtime.told(runtime.wait(&self.queue, &self.event))
    }
}

/// Bytes on their way to the host.
#[derive(Debug)]
pub struct AscendPending {
    runtime: Runtime,
    download: Download,
    gather: Option<Gather>,
}

impl halite_hal::Pending for AscendPending {
    fn wait(self) -> Result<Vec<u8>> {
        let bytes = self.runtime.told(self.download.wait())?;
        Ok(match self.gather {
            Some(gather) => gather.dense(&bytes),
            None => bytes,
        })
    }
}
