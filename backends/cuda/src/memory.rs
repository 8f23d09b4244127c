//! Device memory as the library sees it.

use std::fmt;

use halite_hal::{Error, Result, Storage};

use crate::{device::Cuda, driver::Memory};

/// A counted handle to device memory.
#[derive(Clone)]
pub struct CudaBuffer {
    memory: Memory,
    device: u64,
}

impl CudaBuffer {
    pub(crate) fn new(memory: Memory, device: u64) -> Self {
        CudaBuffer { memory, device }
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Its address on the device.
    pub(crate) fn address(&self) -> u64 {
        *self.memory.address()
    }

    /// Refuses memory of another device, where its address means something else.
    pub(crate) fn check_is_of(
        &self,
        device: &Cuda,
        operator: &'static str,
        argument: &'static str,
    ) -> Result<()> {
        if self.device == device.id() {
            return Ok(());
        }
        let expected = "memory of the stream's own device".to_owned();
        Err(Error::Argument { operator, argument, expected, got: "memory of another".to_owned() })
    }
}

impl Storage for CudaBuffer {
    fn len(&self) -> u64 {
        *self.memory.bytes()
    }

    fn same(&self, other: &Self) -> bool {
        self.memory.same(&other.memory)
    }
}

impl fmt::Debug for CudaBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaBuffer({} bytes)", self.len())
    }
}
