//! What a device is, and what a kernel takes.

use crate::compile::Architecture;

/// A device, as its driver tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// Its name.
    pub name: String,
    /// What machine code is made for.
    pub architecture: Architecture,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Device memory in bytes.
    pub memory: u64,
    /// The most shared memory that a block may have, in bytes.
    pub shared_per_block: u32,
}

impl Description {
    /// A description of a device.
    pub fn new(
        name: String,
        architecture: Architecture,
        multiprocessors: u32,
        memory: u64,
        shared_per_block: u32,
    ) -> Self {
        Description { name, architecture, multiprocessors, memory, shared_per_block }
    }
}

/// What a kernel takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelAttributes {
    /// Registers of a thread.
    pub registers: u32,
    /// Local memory of a thread in bytes: what did not fit into registers.
    pub local_bytes: u32,
    /// Shared memory of a block that the source declares, in bytes.
    pub static_shared: u32,
    /// Dynamic shared memory that it was made ready for, in bytes: a block may have no more.
    pub dynamic_shared: u32,
    /// The most threads that a block may have.
    pub threads_per_block: u32,
    /// Offset and size in bytes of every parameter, where the driver tells them.
    pub parameters: Option<Vec<(usize, usize)>>,
}

impl KernelAttributes {
    /// A kernel without local and shared memory.
    pub fn new(registers: u32, threads_per_block: u32) -> Self {
        KernelAttributes { registers, threads_per_block, ..Self::default() }
    }

    /// Sets the local memory of a thread.
    #[must_use]
    pub fn with_local(mut self, bytes: u32) -> Self {
        self.local_bytes = bytes;
        self
    }

    /// Sets the shared memory that the source declares.
    #[must_use]
    pub fn with_shared(mut self, bytes: u32) -> Self {
        self.static_shared = bytes;
        self
    }

    /// Sets the dynamic shared memory that a block may have.
    #[must_use]
    pub fn with_dynamic_shared(mut self, bytes: u32) -> Self {
        self.dynamic_shared = bytes;
        self
    }

    /// Sets offset and size of every parameter.
    #[must_use]
    pub fn with_parameters(mut self, parameters: Vec<(usize, usize)>) -> Self {
        self.parameters = Some(parameters);
        self
    }
}
