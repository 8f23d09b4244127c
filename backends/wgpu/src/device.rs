//! An adapter as a device.

use crate::{
    adapter,
    failure::{Failure, caught},
    kernel::Kernels,
    launch::Launch,
    memory::{Memory, WgpuBuffer},
    pipeline_cache::DiskCache,
    read_back::ReadBacks,
    self_test,
    stream::WgpuStream,
};
use halite_hal::{DType, Device, DeviceInfo, Error, HostBytes, Result, Tensor};
use std::{fmt, path::PathBuf, sync::Arc};

/// Bytes that are put together on the host, written or read back at once.
pub(crate) const CHUNK: usize = 16 << 20;

/// The backend's name.
pub(crate) const NAME: &str = "wgpu";

/// Which adapter, and what it keeps.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The adapter's number in [`adapters`](crate::adapters); the likely fastest by default.
    pub adapter: Option<usize>,
    /// The folder of compiled pipelines, so that later starts are quick; none are kept by default.
    pub pipeline_cache: Option<PathBuf>,
}

impl Options {
    /// This adapter.
    pub fn adapter(mut self, index: usize) -> Self {
        self.adapter = Some(index);
        self
    }

    /// Compiled pipelines kept in this folder.
    pub fn pipeline_cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.pipeline_cache = Some(folder.into());
        self
    }
}

/// A GPU, or what stands for one. Cloning gives another handle to it.
#[derive(Clone)]
pub struct Wgpu(Arc<Inner>);

struct Inner {
    options: Options,
    info: wgpu::AdapterInfo,
    device: wgpu::Device,
    queue: wgpu::Queue,
    largest_binding: u64,
    memory: Arc<Memory>,
    kernels: Kernels,
    read_backs: ReadBacks,
    failure: Failure,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.kernels.save();
    }
}

impl Wgpu {
    /// The adapter of these options, once it has passed a test of what it computes.
    ///
    /// # Errors
    /// No such adapter, one that lacks something or computes wrong results; the driver's.
    pub fn new(options: Options) -> Result<Self> {
        let adapter = adapter::choose(options.adapter)?;
        let (info, limits) = (adapter.get_info(), adapter.limits());
        let wanted =
            wgpu::Features::IMMEDIATES | wgpu::Features::PIPELINE_CACHE | wgpu::Features::TIMESTAMP_QUERY;
        let largest_binding = adapter::largest_binding(&limits);
        let descriptor = wgpu::DeviceDescriptor {
            label: None,
            required_features: adapter.features() & wanted,
            required_limits: limits,
            experimental_features: wgpu::ExperimentalFeatures::disabled(),
            memory_hints: wgpu::MemoryHints::Performance,
            trace: wgpu::Trace::Off,
        };
        let failed = |cause: String| Error::Device { device: NAME.to_owned(), cause };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor))
            .map_err(|error| failed(format!("{}: {error}", info.name)))?;
        let failure = Failure::watch(&device);
        let memory = Arc::new(Memory::new(device.clone()));
        let open = || DiskCache::open(&device, &info, options.pipeline_cache.as_deref());
        let kernels = Kernels::new(device.clone(), caught(&device, open).map_err(failed)?);
        let read_backs = ReadBacks::default();
        let gpu = Wgpu(Arc::new(Inner {
            options,
            info,
            device,
            queue,
            largest_binding,
            memory,
            kernels,
            read_backs,
            failure,
        }));
        self_test::run(&gpu, &gpu.0.info)?;
        Ok(gpu)
    }

    /// The same adapter anew, after it was lost. Nothing of the old device's memory is there any more.
    ///
    /// # Errors
    /// As [`Wgpu::new`].
    pub fn rebuild(&self) -> Result<Self> {
        Wgpu::new(self.0.options.clone())
    }

    /// Keeps the pipelines compiled so far for later starts, where the options name a folder. The last handle does so as
    /// well, when it goes.
    pub fn save_pipelines(&self) {
        self.0.kernels.save();
    }

    pub(crate) fn raw(&self) -> &wgpu::Device {
        &self.0.device
    }

    pub(crate) fn queue(&self) -> &wgpu::Queue {
        &self.0.queue
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.0.memory
    }

    pub(crate) fn read_backs(&self) -> &ReadBacks {
        &self.0.read_backs
    }

    /// Whether the adapter computes on the CPU.
    pub fn is_software(&self) -> bool {
        self.0.info.device_type == wgpu::DeviceType::Cpu
    }

    /// The most bytes of a tensor that one dispatch reaches.
    pub(crate) fn largest_binding(&self) -> u64 {
        self.0.largest_binding
    }

    /// Room of a plan for so many elements, which dispatches will bind whole.
    pub(crate) fn bindable(
        &self,
        operator: &'static str,
        argument: &'static str,
        dtype: DType,
        dims: &[usize],
    ) -> Result<Tensor<Self>> {
        let elements = dims.iter().fold(1usize, |all, &dim| all.saturating_mul(dim));
        let (got, limit) = (elements.saturating_mul(dtype.size()) as u64, self.largest_binding());
        if got > limit {
            return Err(Error::Limit { operator, argument, got, limit });
        }
        Tensor::new(self, dtype, dims)
    }

    pub(crate) fn pipeline(&self, launch: &Launch) -> Result<wgpu::ComputePipeline> {
        self.0.kernels.pipeline(&self.0.memory.bindings, launch)
    }

    #[cfg(test)]
    pub(crate) fn failure(&self) -> &Failure {
        &self.0.failure
    }

    /// A failure that nobody was told of.
    pub(crate) fn told(&self) -> Result<()> {
        self.0.failure.told()
    }

    /// Writes whole words behind everything that was handed over, however many there are: what is on its way takes host
    /// memory, so it goes in pieces.
    pub(crate) fn write(&self, to: &WgpuBuffer, at: u64, bytes: &[u8]) {
        for (number, piece) in bytes.chunks(CHUNK).enumerate() {
            let place = to.start() + at + (number * CHUNK) as u64;
            self.0.queue.write_buffer(&to.backing().buffer, place, piece);
            self.0.queue.submit(None);
        }
    }

    /// Waits until a submission is done.
    pub(crate) fn wait(&self, index: &wgpu::SubmissionIndex) -> Result<()> {
        let poll = wgpu::PollType::Wait { submission_index: Some(index.clone()), timeout: None };
        self.0.device.poll(poll).map(drop).map_err(|error| self.failed(error.to_string()))?;
        self.told()
    }

    /// The error of a call that the driver refused: why, or that the device is lost, which only a poll brings to light.
    pub(crate) fn failed(&self, cause: String) -> Error {
        let _ = self.0.device.poll(wgpu::PollType::Poll);
        self.told().err().unwrap_or_else(|| Error::Device { device: NAME.to_owned(), cause })
    }
}

impl Device for Wgpu {
    type Buffer = WgpuBuffer;
    type Stream = WgpuStream;

    fn info(&self) -> DeviceInfo {
        let Inner { info, .. } = &*self.0;
        // Adapters do not tell how many of their parts work in parallel, nor how much memory there is.
        DeviceInfo::new(NAME, info.name.clone(), info.backend.to_string(), 1, None)
    }

    fn alloc(&self, bytes: u64) -> Result<WgpuBuffer> {
        self.0.memory.alloc(bytes)
    }

    fn adopt(&self, host: HostBytes) -> Result<WgpuBuffer> {
        // Asked once: asked again, it might say something else.
        let bytes = (*host).as_ref();
        let buffer = self.alloc(bytes.len() as u64)?;
        // The memory is fresh, so whatever used it before was handed over.
        let words = bytes.len() / 4 * 4;
        let (whole, rest) = bytes.split_at(words);
        self.write(&buffer, 0, whole);
        if !rest.is_empty() {
            let mut last = [0; 4];
            last[..rest.len()].copy_from_slice(rest);
            self.write(&buffer, words as u64, &last);
        }
        Ok(buffer)
    }

    fn stream(&self) -> Result<WgpuStream> {
        Ok(WgpuStream::new(self.clone()))
    }
}

impl fmt::Debug for Wgpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wgpu({}, {})", self.0.info.name, self.0.info.backend)
    }
}
