//! The CPU as a device.

use crate::{
    buffer::{CpuBuffer, DEVICE},
    simd::Tier,
    slab::Slabs,
    stream::CpuStream,
    threads::Threads,
};
use halite_hal::{Device, DeviceInfo, HostBytes, Result};
use std::{fmt, sync::Arc, thread};

/// How a [`Cpu`] works.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Threads that share an operator's work, the caller's included; all cores by default.
    pub threads: Option<usize>,
    /// The instruction set; the best that the machine has by default.
    pub tier: Option<Tier>,
}

impl Options {
    /// This many threads.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// This instruction set.
    pub fn tier(mut self, tier: Tier) -> Self {
        self.tier = Some(tier);
        self
    }
}

/// The CPU, with a tier of kernels and a number of threads. Cloning shares the threads.
#[derive(Clone)]
pub struct Cpu(Arc<Inner>);

struct Inner {
    threads: Threads,
    tier: Tier,
    slabs: Slabs,
}

impl Cpu {
    /// The CPU with these options. Where no tier is named and the processor has AMX, Linux is asked for its use, for the whole
    /// process: alternate signal stacks must be larger from then on.
    ///
    /// # Errors
    /// More than [`MAX_THREADS`](crate::MAX_THREADS) threads, or they could not be started.
    pub fn new(options: Options) -> Result<Self> {
        // Before the threads: what a tier needs of the operating system is asked for when it is looked for, and threads that
        // are started later have it from their first instruction on.
        let tier = options.tier.unwrap_or_else(Tier::best);
        let cores = || thread::available_parallelism().map_or(1, usize::from);
        let threads = Threads::new(options.threads.unwrap_or_else(cores))?;
        Ok(Cpu(Arc::new(Inner { threads, tier, slabs: Slabs::default() })))
    }

    /// The instruction set that kernels run with.
    pub fn tier(&self) -> Tier {
        self.0.tier
    }

    /// Threads that share an operator's work, the caller's included.
    pub fn threads(&self) -> usize {
        self.0.threads.count()
    }

    pub(crate) fn team(&self) -> &Threads {
        &self.0.threads
    }

    /// Memory for packed weights.
    pub(crate) fn alloc_lasting(&self, bytes: u64) -> Result<CpuBuffer> {
        CpuBuffer::piece(&self.0.slabs, bytes)
    }
}

impl Device for Cpu {
    type Buffer = CpuBuffer;
    type Stream = CpuStream;

    fn info(&self) -> DeviceInfo {
        let tier = self.tier().name().to_owned();
        DeviceInfo::new(DEVICE, format!("{DEVICE} ({})", std::env::consts::ARCH), tier, self.threads(), None)
    }

    fn alloc(&self, bytes: u64) -> Result<CpuBuffer> {
        CpuBuffer::alloc(bytes)
    }

    fn adopt(&self, host: HostBytes) -> Result<CpuBuffer> {
        CpuBuffer::adopt(host)
    }

    fn stream(&self) -> Result<CpuStream> {
        Ok(CpuStream::new(self.clone()))
    }
}

impl fmt::Debug for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cpu({}, {} threads)", self.tier(), self.threads())
    }
}
