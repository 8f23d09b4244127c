//! Device memory as the library sees it.

use std::{fmt, sync::Arc};

use halite_hal::{Error, Result, Storage};

use crate::{device::Ascend, runtime::Memory};

/// A counted handle to device memory.
#[derive(Clone)]
pub struct AscendBuffer {
    memory: Arc<Memory>,
    device: u64,
}

impl AscendBuffer {
    pub(crate) fn new(memory: Memory, device: u64) -> Self {
        AscendBuffer { memory: Arc::new(memory), device }
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Refuses memory of another device, where its address means something else.
    pub(crate) fn check_is_of(
        &self,
        device: &Ascend,
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

impl Storage for AscendBuffer {
    fn len(&self) -> u64 {
        self.memory.bytes()
    }

    fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.memory, &other.memory)
    }
}

impl fmt::Debug for AscendBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AscendBuffer({} bytes)", self.len())
    }
}
