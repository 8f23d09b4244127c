//! Devices and their memory.

use crate::{Result, Stream};
use std::{fmt, sync::Arc};

/// Host bytes that a device may keep and use in place, such as a mapped file.
pub type HostBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A counted handle to device memory: cloning it shares the bytes.
pub trait Storage: Clone + fmt::Debug + Send + Sync + 'static {
    /// Size in bytes.
    fn len(&self) -> u64;

    /// Whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether both handles share the same memory. The check for overlapping arguments asks this.
    fn same(&self, other: &Self) -> bool;
}

/// What a person wants to know of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The backend's name: `cpu`, `wgpu`, `cuda`, `ascend`.
    pub backend: &'static str,
    /// The device's own name.
    pub name: String,
    /// The instruction set or architecture that kernels were chosen for.
    pub tier: String,
    /// Host threads, multiprocessors or cores that work in parallel.
    pub parallelism: usize,
    /// Device memory in bytes, where it is known.
    pub memory: Option<u64>,
}

impl DeviceInfo {
    /// A description of a device.
    pub fn new(
        backend: &'static str,
        name: String,
        tier: String,
        parallelism: usize,
        memory: Option<u64>,
    ) -> Self {
        DeviceInfo { backend, name, tier, parallelism, memory }
    }
}

/// One device of a backend. Cloning gives another handle to the same device.
pub trait Device: Clone + fmt::Debug + Send + Sync + 'static {
    /// Its memory.
    type Buffer: Storage;
    /// What its work is queued on.
    type Stream: Stream<Device = Self>;

    /// Describes the device.
    fn info(&self) -> DeviceInfo;

    /// Allocates `bytes` of memory. The contents are undefined until they are written.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    fn alloc(&self, bytes: u64) -> Result<Self::Buffer>;

    /// Makes host bytes device memory that is only read: in place where the device can, by a copy where it cannot.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) where a copy is made.
    fn adopt(&self, host: HostBytes) -> Result<Self::Buffer>;

    /// Opens a stream.
    ///
    /// # Errors
    /// The driver's, as [`Error::Device`](crate::Error::Device).
    fn stream(&self) -> Result<Self::Stream>;
}
