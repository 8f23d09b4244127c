//! Streams: the order in which a device's work happens.

use crate::{Device, Result, Tensor};

/// What work is queued on. Everything on one stream happens in the order it was queued.
///
/// On the CPU work is done at once; on wgpu a stream is an encoder with an open pass; on CUDA and CANN it is a
/// stream and its context.
pub trait Stream: Send {
    /// The device it belongs to.
    type Device: Device<Stream = Self>;
    /// A point in the order of work.
    type Event: Event;
    /// A read-back that is under way.
    type Pending: Pending;

    /// The device it belongs to.
    fn device(&self) -> &Self::Device;

    /// Copies host bytes into a dense tensor, in order with the other work. `bytes` may be reused at once.
    ///
    /// # Errors
    /// `bytes` is not exactly the tensor's size, or the tensor is not dense.
    fn upload(&mut self, to: &Tensor<Self::Device>, bytes: &[u8]) -> Result<()>;

    /// Starts copying a tensor, dense or not, to the host, as dense row-major bytes.
    ///
    /// # Errors
    /// The device's.
    fn download(&mut self, from: &Tensor<Self::Device>) -> Result<Self::Pending>;

    /// Grows the stream's scratch memory to at least `bytes`: the only place where scratch memory grows.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    fn reserve(&mut self, bytes: u64) -> Result<()>;

    /// Hands all queued work to the device.
    ///
    /// # Errors
    /// A sticky device error appears here or in [`Event::wait`], once.
    fn submit(&mut self) -> Result<Self::Event>;

    /// Kernels queued since the stream was opened, where the backend counts them.
    fn launches(&self) -> Option<u64> {
        None
    }
}

/// A point in a stream's order of work.
pub trait Event: Send {
    /// Waits until all work before this point is done.
    ///
    /// # Errors
    /// The device failed on the way.
    fn wait(&self) -> Result<()>;
}

/// Bytes on their way to the host.
pub trait Pending: Send {
    /// Waits for the bytes.
    ///
    /// # Errors
    /// The device failed on the way.
    fn wait(self) -> Result<Vec<u8>>;
}
