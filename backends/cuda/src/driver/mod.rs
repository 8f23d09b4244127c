//! What runs machine code: a driver, by a trait that NVIDIA's driver and an interpreter can both serve.
//!
//! [`Driver`] has the raw calls. [`Context`] is what the backend holds: the same calls, with errors that name the device,
//! the kernel and its launch, and with the rule that a device which broke says so once and then is lost until
//! [`Context::rebuild`]. Objects are counted handles, and whoever drops the last one frees the object.

mod context;
mod description;
mod error;
mod handles;
mod hardware;
mod health;
#[cfg(feature = "interpreter")]
mod interpreter;
mod launch;
mod staging;
#[cfg(test)]
mod testing;

use std::{fmt, sync::Arc, time::Duration};

use crate::compile::Image;

pub use context::Context;
pub use description::{Description, KernelAttributes};
pub use error::DriverError;
pub use handles::{Event, Graph, Kernel, Memory, Module, Pinned, Stream};
pub use hardware::{device_count, hardware};
pub use health::Health;
#[cfg(feature = "interpreter")]
pub use interpreter::{Interpreter, interpreter};
pub use launch::{LaunchShape, Parameters};
pub use staging::{Download, Staging};

/// The raw calls of a driver, on one device. An offset that is out of range, and an object of another driver, are errors.
///
/// Work on a stream happens in the order it was queued, and calls return before it is done unless they say otherwise.
pub trait Driver: fmt::Debug + Send + Sync {
    /// What the device is.
    fn description(&self) -> &Description;

    /// Whether it still works.
    fn health(&self) -> &Health;

    /// The same device in a new state, after an error that does not go away. All objects of this one are lost.
    ///
    /// # Errors
    /// The driver cannot do that; then the process has to be started again.
    fn rebuild(&self) -> Result<Arc<dyn Driver>, DriverError>;

    /// Opens a stream.
    ///
    /// # Errors
    /// The driver's.
    fn stream(&self) -> Result<Stream, DriverError>;

    /// Waits until all work of a stream is done.
    ///
    /// # Errors
    /// What went wrong in that work.
    fn synchronize(&self, stream: &Stream) -> Result<(), DriverError>;

    /// Allocates device memory, in the order of a stream: work on it may be queued there at once, and on other streams
    /// after an event. When the last handle is dropped it is freed in that stream's order. Its address is a multiple of 256; no
    /// bytes is valid.
    ///
    /// # Errors
    /// [`DriverError::OutOfMemory`].
    fn allocate(&self, stream: &Stream, bytes: u64) -> Result<Memory, DriverError>;

    /// Allocates host memory that the device copies from and to by itself.
    ///
    /// # Errors
    /// [`DriverError::OutOfMemory`].
    fn pinned(&self, bytes: u64) -> Result<Pinned, DriverError>;

    /// Writes host bytes into pinned memory, now. A copy from it that is under way sends old bytes or new ones.
    ///
    /// # Errors
    /// The range.
    fn write_pinned(&self, to: (&Pinned, u64), bytes: &[u8]) -> Result<(), DriverError>;

    /// Reads pinned memory, now. Of a copy into it that is under way it shows what has arrived.
    ///
    /// # Errors
    /// The range.
    fn read_pinned(&self, from: (&Pinned, u64), bytes: &mut [u8]) -> Result<(), DriverError>;

    /// Queues a copy from pinned to device memory.
    ///
    /// # Errors
    /// The ranges, or the driver's.
    fn copy_in(
        &self,
        stream: &Stream,
        to: (&Memory, u64),
        from: (&Pinned, u64),
        bytes: u64,
    ) -> Result<(), DriverError>;

    /// Queues a copy from device to pinned memory.
    ///
    /// # Errors
    /// The ranges, or the driver's.
    fn copy_out(
        &self,
        stream: &Stream,
        to: (&Pinned, u64),
        from: (&Memory, u64),
        bytes: u64,
    ) -> Result<(), DriverError>;

    /// Queues a copy within device memory; the ranges must not overlap.
    ///
    /// # Errors
    /// The ranges, or the driver's.
    fn copy(
        &self,
        stream: &Stream,
        to: (&Memory, u64),
        from: (&Memory, u64),
        bytes: u64,
    ) -> Result<(), DriverError>;

    /// Queues the setting of device memory to one byte's value.
    ///
    /// # Errors
    /// The range, or the driver's.
    fn fill(&self, stream: &Stream, to: (&Memory, u64), bytes: u64, value: u8) -> Result<(), DriverError>;

    /// Loads compiled code.
    ///
    /// # Errors
    /// [`DriverError::Image`] where it is of a kind or an architecture that this driver does not run.
    fn load(&self, image: &Image) -> Result<Module, DriverError>;

    /// A kernel of a module, ready to be launched with this much dynamic shared memory or less.
    ///
    /// # Errors
    /// There is none of this name, or it cannot have that much shared memory.
    fn kernel(&self, module: &Module, name: &str, dynamic_shared: u32) -> Result<Kernel, DriverError>;

    /// Queues a launch. A shape without blocks does nothing.
    ///
    /// # Errors
    /// The shape or the parameters do not fit the kernel; what a driver says at once. What goes wrong in the kernel may be
    /// told by any later call.
    ///
    /// # Safety
    /// The parameters are those that the kernel declares, and the memory that they lead it to lives until the launch is
    /// done: on hardware nobody checks that.
    unsafe fn launch(
        &self,
        stream: &Stream,
        kernel: &Kernel,
        shape: &LaunchShape,
        parameters: &Parameters,
    ) -> Result<(), DriverError>;

    /// Makes an event, which no work has reached yet.
    ///
    /// # Errors
    /// The driver's.
    fn event(&self) -> Result<Event, DriverError>;

    /// Queues the reaching of an event; what it was recorded for before is forgotten.
    ///
    /// # Errors
    /// The driver's.
    fn record(&self, stream: &Stream, event: &Event) -> Result<(), DriverError>;

    /// Whether an event was reached; one that was never recorded was.
    ///
    /// # Errors
    /// What went wrong in the work before it.
    fn reached(&self, event: &Event) -> Result<bool, DriverError>;

    /// Waits until an event is reached.
    ///
    /// # Errors
    /// What went wrong in the work before it.
    fn wait(&self, event: &Event) -> Result<(), DriverError>;

    /// Makes later work of a stream wait for an event, which may be another stream's.
    ///
    /// # Errors
    /// The driver's.
    fn wait_on(&self, stream: &Stream, event: &Event) -> Result<(), DriverError>;

    /// The time between two events that were reached.
    ///
    /// # Errors
    /// One of them was not.
    fn elapsed(&self, from: &Event, to: &Event) -> Result<Duration, DriverError>;

    /// From now on what is queued on a stream is not done but collected. Only copies, fills, launches and events may be,
    /// and no memory of the stream may be freed meanwhile: that would be collected too. The thread that begins it ends it.
    ///
    /// # Errors
    /// The stream collects already.
    fn begin_capture(&self, stream: &Stream) -> Result<(), DriverError>;

    /// Ends it, and makes what was collected ready to be launched as often as one likes.
    ///
    /// # Errors
    /// The stream does not collect, or something was called that cannot be.
    fn end_capture(&self, stream: &Stream) -> Result<Graph, DriverError>;

    /// Queues what was captured.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Safety
    /// As [`launch`](Self::launch), for all that was captured: its memory still lives.
    unsafe fn launch_graph(&self, stream: &Stream, graph: &Graph) -> Result<(), DriverError>;
}

/// Checks that `bytes` from `offset` on lie in something of `size` bytes.
pub(crate) fn check_range(what: &'static str, size: u64, offset: u64, bytes: u64) -> Result<(), DriverError> {
    match offset.checked_add(bytes) {
        Some(end) if end <= size => Ok(()),
        _ => Err(DriverError::Range { what, offset, bytes, size }),
    }
}
