//! What the machine refuses, and what a launch ends with.

use crate::fault::Fault;
use std::fmt;

/// Why the machine did not do as it was told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The module has no such kernel.
    #[error("the module has no kernel `{name}`; it has {known:?}")]
    NoKernel {
        /// What was asked for.
        name: String,
        /// What it has.
        known: Vec<String>,
    },
    /// The module has no such variable.
    #[error("the module has no variable `{0}` in global or constant memory")]
    NoVariable(String),
    /// The module is another machine's.
    #[error("the module was loaded by another machine")]
    OtherMachine,
    /// The arguments are not those that the kernel takes.
    #[error("kernel `{kernel}` takes {expected} arguments and got {got}")]
    ArgumentCount {
        /// The kernel.
        kernel: String,
        /// How many it takes.
        expected: usize,
        /// How many it got.
        got: usize,
    },
    /// An argument's size is not its parameter's.
    #[error("argument {index} of kernel `{kernel}` has {got} bytes, parameter `{param}` has {expected}")]
    ArgumentBytes {
        /// The kernel.
        kernel: String,
        /// The argument's number, from 0.
        index: usize,
        /// The parameter's name.
        param: String,
        /// The parameter's bytes.
        expected: u64,
        /// The argument's bytes.
        got: usize,
    },
    /// A grid or block of a shape that no device has, or that the kernel does not allow.
    #[error("kernel `{kernel}`: {problem}")]
    Shape {
        /// The kernel.
        kernel: String,
        /// What is wrong.
        problem: String,
    },
    /// A kernel or a variable of the module that no parser made: an index that is out of range, a count of operands that an
    /// instruction does not have.
    #[error("`{name}` cannot be executed: {problem}")]
    Module {
        /// The kernel or the variable.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// More shared memory than a block may have.
    #[error(
        "kernel `{kernel}` needs {bytes} bytes of shared memory a block; at most {limit}: see `Options::max_shared_bytes`"
    )]
    SharedMemory {
        /// The kernel.
        kernel: String,
        /// What it needs.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The host has no memory for it.
    #[error("the host has no memory for {0} bytes")]
    OutOfMemory(u64),
    /// The caller touches device memory that is not allocated.
    #[error("{bytes} bytes at {address:#x} lie in no allocation")]
    Address {
        /// The address.
        address: u64,
        /// How many bytes.
        bytes: u64,
    },
    /// The address to free is not the start of an allocation, or was freed.
    #[error("{0:#x} is not the start of an allocation")]
    NotAllocated(u64),
    /// The kernel did something wrong.
    #[error("{0}")]
    Faults(Faults),
}

/// What a kernel did wrong: at least one fault, the first that was found first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults(pub(crate) Vec<Fault>);

impl Faults {
    /// The first that was found.
    pub fn first(&self) -> &Fault {
        // `launch` makes it of a list that is not empty.
        &self.0[0]
    }

    /// All of them, at most one of a kind an instruction.
    pub fn all(&self) -> &[Fault] {
        &self.0
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}
