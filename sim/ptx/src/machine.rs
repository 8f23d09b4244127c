//! The device: its memory, its modules, its launches.

use crate::arguments::Arguments;
use crate::counters::Counters;
use crate::error::Error;
use crate::ir::{Kernel, Module, Space};
use crate::launch::Launch;
use crate::memory::{Contents, GlobalMemory, window};
use crate::options::Options;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Most threads of a block.
const MAX_THREADS: u64 = 1024;
/// Most threads of a block by axis.
const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
/// Most blocks by axis.
const MAX_GRID: [u32; 3] = [0x7fff_ffff, 0xffff, 0xffff];

/// Most bytes of local memory of a thread.
const MAX_LOCAL: u64 = 512 * 1024;
/// Most bytes of parameters.
const MAX_PARAM: u64 = 32_764;

/// A device that is executed on the host.
///
/// Addresses are numbers: no allocation has an address that another one had, and around each lies nothing, so that an
/// access out of bounds never finds somebody else's bytes.
#[derive(Debug)]
pub struct Machine {
    memory: GlobalMemory,
    options: Options,
    id: u64,
    launches: AtomicU64,
}

/// A module whose variables have their places in a machine's memory.
#[derive(Clone, Debug)]
pub struct LoadedModule {
    machine: u64,
    module: Module,
    addresses: Vec<u64>,
}

impl LoadedModule {
    /// The module.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Address and size in bytes of a variable in global or constant memory.
    ///
    /// # Errors
    /// [`Error::NoVariable`].
    pub fn variable(&self, name: &str) -> Result<(u64, u64), Error> {
        let mut variables = self.module.variables.iter().zip(&self.addresses);
        let found = variables.find(|(variable, _)| variable.name == name);
        found
            .map(|(variable, &address)| (address, variable.bytes))
            .ok_or_else(|| Error::NoVariable(name.to_owned()))
    }

    /// A kernel.
    ///
    /// # Errors
    /// [`Error::NoKernel`].
    pub fn kernel(&self, name: &str) -> Result<&Kernel, Error> {
        self.module.kernels.iter().find(|kernel| kernel.name == name).map(AsRef::as_ref).ok_or_else(|| {
            let known = self.module.kernels.iter().map(|kernel| kernel.name.clone()).collect();
            Error::NoKernel { name: name.to_owned(), known }
        })
    }
}

/// How many blocks of how many threads, with how much shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchShape {
    /// Blocks by axis: x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block by axis.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory of a block.
    pub dynamic_shared_bytes: u32,
}

impl LaunchShape {
    /// Blocks and threads along x only, without dynamic shared memory.
    pub const fn linear(blocks: u32, threads: u32) -> LaunchShape {
        LaunchShape { grid: [blocks, 1, 1], block: [threads, 1, 1], dynamic_shared_bytes: 0 }
    }

    /// With so many bytes of dynamic shared memory a block.
    pub const fn with_dynamic_shared_bytes(mut self, bytes: u32) -> LaunchShape {
        self.dynamic_shared_bytes = bytes;
        self
    }
}

impl Machine {
    /// A device with nothing in its memory.
    pub fn new(options: Options) -> Machine {
        static MACHINES: AtomicU64 = AtomicU64::new(1);
        Machine {
            memory: GlobalMemory::new(options.checks.uninitialised),
            options,
            id: MACHINES.fetch_add(1, Relaxed),
            launches: AtomicU64::new(1),
        }
    }

    /// How it executes kernels.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Memory that nobody has written: its address, a multiple of 2^32.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] of the host.
    pub fn allocate(&mut self, bytes: u64) -> Result<u64, Error> {
        self.memory.allocate(bytes, Contents::Uninitialised).map_err(|_| Error::OutOfMemory(bytes))
    }

    /// Memory of zeros.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] of the host.
    pub fn allocate_zeroed(&mut self, bytes: u64) -> Result<u64, Error> {
        self.memory.allocate(bytes, Contents::Zeros).map_err(|_| Error::OutOfMemory(bytes))
    }

    /// Memory that holds these bytes.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] of the host.
    pub fn allocate_with(&mut self, bytes: &[u8]) -> Result<u64, Error> {
        let address = self.allocate(bytes.len() as u64)?;
        self.write(address, bytes)?;
        Ok(address)
    }

    /// Frees an allocation: to touch it is a fault from now on.
    ///
    /// # Errors
    /// [`Error::NotAllocated`] where no allocation begins at the address.
    pub fn free(&mut self, address: u64) -> Result<(), Error> {
        if self.memory.free(address) { Ok(()) } else { Err(Error::NotAllocated(address)) }
    }

    /// Copies bytes to the device.
    ///
    /// # Errors
    /// [`Error::Address`] where they do not lie in one allocation.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        let done = self.memory.write(address, bytes);
        done.then_some(()).ok_or(Error::Address { address, bytes: bytes.len() as u64 })
    }

    /// Copies bytes from the device. Those that nobody has written are 0xff.
    ///
    /// # Errors
    /// [`Error::Address`] where they do not lie in one allocation.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let done = self.memory.read(address, bytes);
        done.then_some(()).ok_or(Error::Address { address, bytes: bytes.len() as u64 })
    }

    /// Writes a byte over and over.
    ///
    /// # Errors
    /// [`Error::Address`] where the bytes do not lie in one allocation.
    pub fn fill(&self, address: u64, byte: u8, bytes: u64) -> Result<(), Error> {
        self.memory.fill(address, byte, bytes).then_some(()).ok_or(Error::Address { address, bytes })
    }

    /// Copies bytes on the device. The ranges may overlap.
    ///
    /// # Errors
    /// [`Error::Address`] where one of the ranges does not lie in one allocation, [`Error::OutOfMemory`] of the host.
    pub fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
        let length = usize::try_from(bytes).map_err(|_| Error::OutOfMemory(bytes))?;
        let mut buffer = Vec::new();
        buffer.try_reserve_exact(length).map_err(|_| Error::OutOfMemory(bytes))?;
        buffer.resize(length, 0);
        self.read(from, &mut buffer)?;
        self.write(to, &buffer)
    }

    /// Gives a module's variables their places, and their first values.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] of the host, [`Error::Module`] for a module that was changed by hand and cannot be executed.
    pub fn load(&mut self, module: Module) -> Result<LoadedModule, Error> {
        let refuse = |(name, problem): (&str, String)| Error::Module { name: name.to_owned(), problem };
        module.check_variables().map_err(refuse)?;
        for kernel in &module.kernels {
            kernel.check(module.variables.len()).map_err(|problem| refuse((&kernel.name, problem)))?;
        }
        let mut addresses = Vec::with_capacity(module.variables.len());
        for variable in &module.variables {
            let address = self.allocate_zeroed(variable.bytes)?;
            self.write(address, &variable.initial)?;
            addresses.push(address);
        }
        for (variable, &address) in module.variables.iter().zip(&addresses) {
            for &(offset, target, addend) in &variable.relocations {
                let target = addresses[target as usize].wrapping_add_signed(addend);
                self.write(address + offset, &target.to_le_bytes())?;
            }
            if variable.space == Space::Const {
                self.memory.protect(address);
            }
        }
        Ok(LoadedModule { machine: self.id, module, addresses })
    }

    /// Executes a kernel to its end, and tells what was counted.
    ///
    /// # Errors
    /// [`Error::Faults`] names what the kernel did wrong; what it wrote until then stays written. The other variants refuse
    /// a launch that no device would take.
    pub fn launch(
        &self,
        module: &LoadedModule,
        kernel: &str,
        shape: LaunchShape,
        arguments: &Arguments,
    ) -> Result<Counters, Error> {
        if module.machine != self.id {
            return Err(Error::OtherMachine);
        }
        let kernel = module.kernel(kernel)?;
        self.check_shape(kernel, shape)?;
        let launch = Launch {
            kernel,
            files: &module.module.files,
            memory: &self.memory,
            variables: &module.addresses,
            params: params(kernel, arguments)?,
            grid: shape.grid,
            block_shape: shape.block,
            dynamic_shared_bytes: shape.dynamic_shared_bytes,
            options: &self.options,
            id: self.launches.fetch_add(1, Relaxed),
            faults: Mutex::new(Vec::new()),
            stopped: AtomicBool::new(false),
        };
        launch.run()
    }

    fn check_shape(&self, kernel: &Kernel, shape: LaunchShape) -> Result<(), Error> {
        let refuse = |problem: String| Err(Error::Shape { kernel: kernel.name.clone(), problem });
        let LaunchShape { grid, block, dynamic_shared_bytes } = shape;
        let product = |shape: [u32; 3]| shape.iter().fold(1u64, |all, &n| all.saturating_mul(n.into()));
        let threads = product(block);
        if (0..3).any(|axis| grid[axis] == 0 || grid[axis] > MAX_GRID[axis]) {
            return refuse(format!("a grid of {grid:?} blocks; each must be 1 to {MAX_GRID:?}"));
        }
        if (0..3).any(|axis| block[axis] == 0 || block[axis] > MAX_BLOCK[axis]) || threads > MAX_THREADS {
            let limits = format!("each must be 1 to {MAX_BLOCK:?}, all together at most {MAX_THREADS}");
            return refuse(format!("a block of {block:?} threads; {limits}"));
        }
        if let Some(required) = kernel.required_threads.filter(|required| *required != block) {
            return refuse(format!("a block of {block:?} threads; .reqntid demands {required:?}"));
        }
        if let Some(most) = kernel.max_threads {
            let most = product(most);
            if threads > most {
                return refuse(format!("a block of {threads} threads; .maxntid allows {most}"));
            }
        }
        if kernel.local_bytes > MAX_LOCAL {
            return refuse(format!(
                "{} bytes of local memory a thread; at most {MAX_LOCAL}",
                kernel.local_bytes
            ));
        }
        if kernel.param_bytes > MAX_PARAM {
            return refuse(format!("{} bytes of parameters; at most {MAX_PARAM}", kernel.param_bytes));
        }
        let bytes = kernel.shared_bytes.saturating_add(u64::from(dynamic_shared_bytes));
        let limit = self.options.max_shared_bytes.min(window::SHARED_BYTES);
        if bytes > limit {
            return Err(Error::SharedMemory { kernel: kernel.name.clone(), bytes, limit });
        }
        Ok(())
    }
}

/// The parameters' bytes.
fn params(kernel: &Kernel, arguments: &Arguments) -> Result<Vec<u8>, Error> {
    let (expected, got) = (kernel.params.len(), arguments.values.len());
    if expected != got {
        return Err(Error::ArgumentCount { kernel: kernel.name.clone(), expected, got });
    }
    let mut bytes = vec![0; kernel.param_bytes as usize];
    for (index, (param, value)) in kernel.params.iter().zip(&arguments.values).enumerate() {
        let end = param.offset as usize + value.len();
        match bytes.get_mut(param.offset as usize..end) {
            Some(place) if value.len() as u64 == param.bytes => place.copy_from_slice(value),
            _ => {
                return Err(Error::ArgumentBytes {
                    kernel: kernel.name.clone(),
                    index,
                    param: param.name.clone(),
                    expected: param.bytes,
                    got: value.len(),
                });
            }
        }
    }
    Ok(bytes)
}
