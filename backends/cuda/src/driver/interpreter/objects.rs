//! The interpreter's objects.

use std::{
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use halite_ptx::{LoadedModule, Machine};

use super::super::{Event, Kernel, LaunchShape, Module, Parameters, Pinned};

/// A machine, which launches share and allocations change.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) machine: RwLock<Machine>,
    /// Bytes that are allocated.
    pub(super) used: AtomicU64,
}

/// An object of a device.
pub(super) trait Owned: 'static {
    fn device(&self) -> &Arc<Device>;
}

macro_rules! owned {
    ($($name:ident),*) => {$(
        impl Owned for $name {
            fn device(&self) -> &Arc<Device> {
                &self.device
            }
        }
    )*};
}

owned!(SimStream, SimMemory, SimPinned, SimModule, SimKernel, SimEvent, SimGraph);

pub(super) struct SimStream {
    pub(super) device: Arc<Device>,
    /// What was queued since the capture began.
    pub(super) captured: Mutex<Option<Vec<Step>>>,
}

pub(super) struct SimMemory {
    pub(super) device: Arc<Device>,
    pub(super) address: u64,
    pub(super) bytes: u64,
}

impl Drop for SimMemory {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut machine = self.device.machine.write().unwrap_or_else(PoisonError::into_inner);
        // It was allocated at this address, and is freed once.
        let _ = machine.free(self.address);
        self.device.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

pub(super) struct SimPinned {
    pub(super) device: Arc<Device>,
    pub(super) bytes: Mutex<Vec<u8>>,
}

pub(super) struct SimModule {
    pub(super) device: Arc<Device>,
    pub(super) module: LoadedModule,
}

pub(super) struct SimKernel {
    pub(super) device: Arc<Device>,
    pub(super) module: Module,
}

pub(super) struct SimEvent {
    pub(super) device: Arc<Device>,
    /// When it was recorded last.
    pub(super) at: Mutex<Option<Instant>>,
}

pub(super) struct SimGraph {
    pub(super) device: Arc<Device>,
    pub(super) steps: Vec<Step>,
}

/// One piece of work. Device memory is an address, as in a graph on hardware: what was freed meanwhile is an error.
pub(super) enum Step {
    CopyIn { to: u64, from: (Pinned, u64), bytes: u64 },
    CopyOut { to: (Pinned, u64), from: u64, bytes: u64 },
    Copy { to: u64, from: u64, bytes: u64 },
    Fill { to: u64, bytes: u64, value: u8 },
    Launch { kernel: Kernel, shape: LaunchShape, parameters: Parameters },
    Record(Event),
}
