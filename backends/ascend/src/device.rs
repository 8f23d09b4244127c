//! An NPU as a device.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use halite_hal::{Device, DeviceInfo, HostBytes, Result};

use crate::{memory::AscendBuffer, options::Options, runtime::Runtime, stream::AscendStream};

/// The backend's name.
pub(crate) const NAME: &str = "ascend";

/// A device. Cloning gives another handle to it.
#[derive(Clone)]
pub struct Ascend(Arc<Inner>);

struct Inner {
    /// Distinct for every device that there ever was: memory remembers whose it is.
    id: u64,
    runtime: Runtime,
}

impl Ascend {
    /// The device of these options.
    ///
    /// # Errors
    /// There is no such device, or CANN was not found; the message says what to do.
    pub fn new(options: Options) -> Result<Self> {
        static DEVICES: AtomicU64 = AtomicU64::new(1);
        let runtime = Runtime::open(options.library, options.device).map_err(|error| error.on(NAME))?;
        Ok(Ascend(Arc::new(Inner { id: DEVICES.fetch_add(1, Ordering::Relaxed), runtime })))
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }

    /// Told by memory, to be recognised.
    pub(crate) fn id(&self) -> u64 {
        self.0.id
    }
}

impl Device for Ascend {
    type Buffer = AscendBuffer;
    type Stream = AscendStream;

    fn info(&self) -> DeviceInfo {
        let device = self.runtime().description();
        let tier = format!("CANN run time {}", device.version);
        DeviceInfo::new(NAME, device.name.clone(), tier, device.cores, Some(device.memory))
    }

    fn alloc(&self, bytes: u64) -> Result<AscendBuffer> {
        let memory = self.runtime().told(self.runtime().allocate(bytes))?;
        Ok(AscendBuffer::new(memory, self.0.id))
    }

    fn adopt(&self, host: HostBytes) -> Result<AscendBuffer> {
        // Asked once: safe code may answer otherwise the second time.
        let bytes = (*host).as_ref();
        let buffer = self.alloc(bytes.len() as u64)?;
        let mut stream = self.stream()?;
        stream.stage(&buffer, 0, bytes)?;
        stream.finish()?;
        Ok(buffer)
    }

    fn stream(&self) -> Result<AscendStream> {
        AscendStream::open(self)
    }
}

impl fmt::Debug for Ascend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ascend({})", self.runtime().description().name)
    }
}

#[cfg(test)]
mod tests {
    use halite_hal::Error;

    use super::*;

    #[test]
    fn without_cann_the_error_says_what_is_missing() {
        let error = Ascend::new(Options::default().library("no/such/folder")).unwrap_err();
        assert!(matches!(&error, Error::Device { device, .. } if device == NAME), "{error}");
        assert!(error.to_string().contains("Options::library"), "{error}");
    }
}
