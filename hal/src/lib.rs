//! Halite's hardware-abstraction layer.
//!
//! Devices, streams, buffers, tensors, data types and errors: what every backend has, and nothing that knows an
//! operator. The operators' contracts are in `halite-kernels`; the backends implement both.
//!
//! A [`Tensor`] is a counted handle: dtype and shape are values, there is no lifetime and no type parameter besides
//! the device, because work that is queued on a [`Stream`] may outlive the caller that queued it.

mod device;
mod dtype;
mod error;
#[cfg(feature = "ndarray")]
mod ndarray;
mod shape;
mod stream;
mod tensor;

pub use device::{Device, DeviceInfo, HostBytes, Storage};
pub use dtype::{DType, Element};
pub use error::{Error, Result};
pub use shape::{MAX_RANK, Shape};
pub use stream::{Event, Pending, Stream};
pub use tensor::Tensor;
