//! A stream: an encoder with one open compute pass, handed over whole.

use crate::{
    copy,
    device::Wgpu,
    launch::{Launch, MAX_GROUPS, SOFTWARE_ROUNDS},
    memory::WgpuBuffer,
    operand::Operand,
    read_back::ReadBack,
    room::Room,
    staging::{PIECE, Staging},
    timing::PassClock,
};
use halite_hal::{DType, Error, Event, Result, Storage, Stream, Tensor};
use std::{fmt, mem};

/// Dispatches after which work is handed over unasked, so that the device does not wait for a long step to be written.
const ENOUGH: usize = 4096;

/// A stream: what was queued and not handed over yet, and the scratch memory of its operators.
pub struct WgpuStream {
    pub(crate) device: Wgpu,
    pub(crate) encoder: wgpu::CommandEncoder,
    pass: Option<wgpu::ComputePass<'static>>,
    /// Uploads on their way: they are copied where they stand among the other work, unlike the queue's own writes.
    staging: Staging,
    /// Memory that queued work uses. Once it is handed over, whatever reuses the memory comes behind it.
    held: Vec<WgpuBuffer>,
    scratch: Option<WgpuBuffer>,
    dispatches: usize,
    /// Since the stream was opened.
    all_dispatches: u64,
    /// While passes are timed.
    pub(crate) clock: Option<PassClock>,
}

impl WgpuStream {
    pub(crate) fn new(device: Wgpu) -> Self {
        WgpuStream {
            encoder: device.raw().create_command_encoder(&Default::default()),
            staging: Staging::new(device.raw().clone()),
            device,
            pass: None,
            held: Vec::new(),
            scratch: None,
            dispatches: 0,
            all_dispatches: 0,
            clock: None,
        }
    }

    /// Queues a dispatch of so many workgroups; none is nothing to do.
    pub(crate) fn launch(&mut self, mut launch: Launch, groups: [usize; 3]) -> Result<()> {
        launch.fault()?;
        let name = launch.shader.name;
        if groups.contains(&0) {
            return Ok(());
        }
        if launch.rounds > SOFTWARE_ROUNDS && self.device.is_software() {
            let argument = "rounds of a loop (software adapters end it early)";
            let (got, limit) = (launch.rounds as u64, SOFTWARE_ROUNDS as u64);
            return Err(Error::Limit { operator: name, argument, got, limit });
        }
        if let Some(&beyond) = groups.iter().find(|&&groups| groups > MAX_GROUPS) {
            let (got, limit) = (beyond as u64, MAX_GROUPS as u64);
            return Err(Error::Limit { operator: name, argument: "workgroups", got, limit });
        }
        let (mut windows, mut immediates) = (Vec::new(), Vec::new());
        for bound in &launch.operands {
            let Some(operand) = &bound.operand else { continue };
            operand.buffer.check_is_of(self.device.memory(), name, bound.name)?;
            let (window, base) = operand.window(self.device.largest_binding(), name, bound.name)?;
            let unit = bound.access.unit(bound.dtype);
            if !base.is_multiple_of(unit) {
                let (expected, got) = (format!("memory at a multiple of {unit} bytes"), base.to_string());
                return Err(Error::Argument { operator: name, argument: bound.name, expected, got });
            }
            // A binding is below 2^32 bytes, and a place in it fits.
            immediates.extend(((base / unit) as u32).to_le_bytes());
            windows.push(window);
        }
        launch.numbers.iter().for_each(|(_, number)| immediates.extend(number.bits().to_le_bytes()));
        let pipeline = self.device.pipeline(&launch)?;
        let group = self.device.memory().bindings.group(&windows);
        let pass = self.pass.get_or_insert_with(|| {
            let timestamp_writes = self.clock.as_mut().and_then(PassClock::next_pass);
            let descriptor = wgpu::ComputePassDescriptor { label: None, timestamp_writes };
            self.encoder.begin_compute_pass(&descriptor).forget_lifetime()
        });
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        if !immediates.is_empty() {
            pass.set_immediates(0, &immediates);
        }
        let [x, y, z] = groups.map(|groups| groups as u32);
        pass.dispatch_workgroups(x, y, z);
        drop(windows);
        self.held.extend(launch.operands.into_iter().filter_map(|bound| Some(bound.operand?.buffer)));
        self.dispatches += 1;
        self.all_dispatches += 1;
        if self.dispatches >= ENOUGH { self.hand_over().map(drop) } else { Ok(()) }
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

    /// Keeps memory for queued work that no operand tells of.
    pub(crate) fn hold(&mut self, buffer: &WgpuBuffer) {
        self.held.push(buffer.clone());
    }

    /// Copies host bytes to device memory from byte `at` on, in order with the other work.
    pub(crate) fn stage(&mut self, to: &WgpuBuffer, at: u64, bytes: &[u8]) -> Result<()> {
        to.check_is_of(self.device.memory(), "upload", "to")?;
        if bytes.is_empty() {
            return Ok(());
        }
        let start = to.start() + at;
        let whole = start.is_multiple_of(4) && bytes.len().is_multiple_of(4);
        if !whole {
            // Copies move whole words: into memory of its own first, and from there by a kernel.
            let padded = [bytes, &[0; 3]].concat();
            let words = padded.len() / 4 * 4;
            let between = self.device.memory().alloc(words as u64)?;
            self.stage(&between, 0, &padded[..words])?;
            let len = bytes.len() as u64;
            let from = Operand::bytes(&between, 0..len, DType::U8);
            let to = Operand::bytes(to, at..at + len, DType::U8);
            return copy::bytes(self, from, to);
        }
        if bytes.len() as u64 > PIECE {
            // Behind everything that was queued before, since that is handed over first.
            self.hand_over()?;
            self.device.write(to, at, bytes);
            return Ok(());
        }
        self.end_pass();
        let written = self.staging.write(&mut self.encoder, &to.backing().buffer, start, bytes);
        written.map_err(|cause| self.device.failed(cause))?;
        self.held.push(to.clone());
        Ok(())
    }

    /// Starts reading bytes of a buffer, from a multiple of 4 on.
    pub(crate) fn read(&mut self, from: &WgpuBuffer, at: u64, len: u64) -> Result<ReadBack> {
        from.check_is_of(self.device.memory(), "download", "from")?;
        let size = len.next_multiple_of(4);
        // Before anything is queued for it: what was queued before is not lost with it.
        let target = self.device.read_backs().take(size, self.device.raw())?;
        self.end_pass();
        if size > 0 {
            let source = &from.backing().buffer;
            self.encoder.copy_buffer_to_buffer(source, from.start() + at, &target, 0, size);
        }
        self.held.push(from.clone());
        let index = self.hand_over()?;
        Ok(ReadBack::start(self.device.clone(), target, len, index))
    }

    fn end_pass(&mut self) {
        self.pass = None;
    }

    /// Hands everything queued to the device, and tells of what failed there.
    pub(crate) fn hand_over(&mut self) -> Result<wgpu::SubmissionIndex> {
        let index = self.submit_queued();
        self.device.told()?;
        Ok(index)
    }

    fn submit_queued(&mut self) -> wgpu::SubmissionIndex {
        self.end_pass();
        let next = self.device.raw().create_command_encoder(&Default::default());
        let encoder = mem::replace(&mut self.encoder, next);
        self.staging.close();
        let index = self.device.queue().submit([encoder.finish()]);
        self.staging.recall();
        self.held.clear();
        self.dispatches = 0;
        index
    }
}

impl Stream for WgpuStream {
    type Device = Wgpu;
    type Event = WgpuEvent;
    type Pending = ReadBack;

    fn device(&self) -> &Wgpu {
        &self.device
    }

    fn upload(&mut self, to: &Tensor<Wgpu>, bytes: &[u8]) -> Result<()> {
        to.check_upload(bytes)?;
        self.stage(to.buffer(), to.offset(), bytes)
    }

    fn download(&mut self, from: &Tensor<Wgpu>) -> Result<ReadBack> {
        let len = (from.shape().elements() * from.dtype().size()) as u64;
        let start = from.buffer().start() + from.offset();
        if from.is_dense() && start.is_multiple_of(4) {
            return self.read(from.buffer(), from.offset(), len);
        }
        let dense = self.device.memory().alloc(len)?;
        copy::to_dense(self, from, &dense)?;
        self.read(&dense, 0, len)
    }

    fn reserve(&mut self, bytes: u64) -> Result<()> {
        let enough = self.scratch.as_ref().is_some_and(|scratch| scratch.len() >= bytes);
        if !enough {
            // The old one goes first: both at once may not fit.
            self.scratch = None;
            self.scratch = Some(self.device.memory().alloc(bytes)?);
        }
        Ok(())
    }

    fn submit(&mut self) -> Result<WgpuEvent> {
        let index = self.hand_over()?;
        Ok(WgpuEvent { device: self.device.clone(), index })
    }

    fn launches(&self) -> Option<u64> {
        Some(self.all_dispatches)
    }
}

impl Drop for WgpuStream {
    fn drop(&mut self) {
        // What was queued is done, as on every backend; what fails is heard of by the next call on the device.
        self.submit_queued();
    }
}

impl fmt::Debug for WgpuStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WgpuStream on {:?}", self.device)
    }
}

/// A point in a stream's order of work.
#[derive(Clone, Debug)]
pub struct WgpuEvent {
    device: Wgpu,
    index: wgpu::SubmissionIndex,
}

impl Event for WgpuEvent {
    fn wait(&self) -> Result<()> {
        self.device.wait(&self.index)
    }
}
