//! A GPU, or what stands for one, as a device.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use halite_hal::{Device, DeviceInfo, Error, HostBytes, Result};

use crate::{
    compile::Compiler,
    driver::{self, Context},
    kernels::Kernels,
    memory::CudaBuffer,
    options::{Driver, Options},
    stream::CudaStream,
};

/// The backend's name.
pub(crate) const NAME: &str = "cuda";

/// A device. Cloning gives another handle to it.
#[derive(Clone)]
pub struct Cuda(Arc<Inner>);

struct Inner {
    options: Options,
    /// Distinct for every device that there ever was: memory remembers whose it is.
    id: u64,
    context: Context,
    /// Memory is allocated and freed in this stream's order; nothing else is queued on it.
    home: driver::Stream,
    kernels: Kernels,
}

impl Cuda {
    /// The device of these options.
    ///
    /// # Errors
    /// There is no such device, or something is missing that it needs; the message says what to do.
    pub fn new(options: Options) -> Result<Self> {
        let failed =
            |cause: driver::DriverError| Error::Device { device: NAME.to_owned(), cause: cause.to_string() };
        let driver = match &options.driver {
            Driver::Hardware(number) => driver::hardware(*number).map_err(failed)?,
            #[cfg(feature = "interpreter")]
            Driver::Interpreter(interpreter) => {
                if crate::compile::nvrtc_version().is_none() {
                    let cause = "NVRTC was not found, which makes PTX for the interpreter: `cargo xtask cuda` installs it \
                                 into target/cuda of a checkout and runs the tests with it; elsewhere install the wheel \
                                 `nvidia-cuda-nvrtc` and put the folder of libnvrtc.so into the library path";
                    return Err(Error::Device { device: NAME.to_owned(), cause: cause.to_owned() });
                }
                driver::interpreter(interpreter.clone())
            }
        };
        Self::of(options, Context::new(driver))
    }

    /// The same device anew, after it was lost. Nothing of the old one's memory is there any more.
    ///
    /// # Errors
    /// The driver cannot do that: then the process has to be started again.
    pub fn rebuild(&self) -> Result<Self> {
        Self::of(self.0.options.clone(), self.0.context.rebuild()?)
    }

    fn of(options: Options, context: Context) -> Result<Self> {
        static DEVICES: AtomicU64 = AtomicU64::new(1);
        let home = context.stream()?;
        let ptx = !matches!(options.driver, Driver::Hardware(_));
        let kernels = Kernels::new(Compiler::new(options.compiler()), ptx);
        let id = DEVICES.fetch_add(1, Ordering::Relaxed);
        Ok(Cuda(Arc::new(Inner { options, id, context, home, kernels })))
    }

    /// Whether kernels are interpreted on the host's processor, and no GPU is there.
    pub fn is_interpreted(&self) -> bool {
        !matches!(self.0.options.driver, Driver::Hardware(_))
    }

    /// The driver's calls.
    pub(crate) fn context(&self) -> &Context {
        &self.0.context
    }

    pub(crate) fn kernels(&self) -> &Kernels {
        &self.0.kernels
    }

    /// Told by memory, to be recognised.
    pub(crate) fn id(&self) -> u64 {
        self.0.id
    }

    /// Multiprocessors: a grid of some blocks for each keeps the device busy. No number may depend on it.
    pub(crate) fn multiprocessors(&self) -> usize {
        self.context().description().multiprocessors.max(1) as usize
    }
}

impl Device for Cuda {
    type Buffer = CudaBuffer;
    type Stream = CudaStream;

    fn info(&self) -> DeviceInfo {
        let device = self.context().description();
        let tier = device.architecture.to_string();
        DeviceInfo::new(NAME, device.name.clone(), tier, self.multiprocessors(), Some(device.memory))
    }

    fn alloc(&self, bytes: u64) -> Result<CudaBuffer> {
        let memory = self.context().allocate(&self.0.home, bytes)?;
        // From here on every stream may use it.
        self.context().synchronize(&self.0.home)?;
        Ok(CudaBuffer::new(memory, self.0.id))
    }

    fn adopt(&self, host: HostBytes) -> Result<CudaBuffer> {
        // Asked once: safe code may answer otherwise the second time.
        let bytes = (*host).as_ref();
        let buffer = self.alloc(bytes.len() as u64)?;
        let mut stream = self.stream()?;
        stream.stage(&buffer, 0, bytes)?;
        stream.finish()?;
        Ok(buffer)
    }

    fn stream(&self) -> Result<CudaStream> {
        CudaStream::open(self)
    }
}

impl fmt::Debug for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = self.context().description();
        write!(f, "Cuda({}, {})", device.name, device.architecture)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_gpu_the_error_says_what_is_missing() {
        let error = Cuda::new(Options::default().device(10_000)).unwrap_err();
        assert!(matches!(&error, Error::Device { device, .. } if device == NAME), "{error}");
    }
}
