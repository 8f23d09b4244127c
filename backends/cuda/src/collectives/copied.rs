//! A rank's input as it was when it called, for the others.

use std::ops::Range;

use halite_hal::{Pending, Result, Stream, Tensor};

use crate::{copy, device::Cuda, stream::CudaStream};

/// The copy: on the device that all ranks have handles of, or on the host.
#[derive(Debug)]
pub(super) enum Copied {
    Device(Tensor<Cuda>),
    Host(Vec<u8>),
}

impl Copied {
    /// Of a dense tensor.
    pub(super) fn of(
        device: &Cuda,
        stream: &mut CudaStream,
        x: &Tensor<Cuda>,
        one_device: bool,
    ) -> Result<Self> {
        if !one_device {
            return Ok(Copied::Host(stream.download(x)?.wait()?));
        }
        let copy = Tensor::new(device, x.dtype(), x.dims())?;
        copy::elements(stream, x, &copy)?;
        Ok(Copied::Device(copy))
    }

    /// Some rows of the copy of `x`, on this device.
    pub(super) fn rows(
        &self,
        device: &Cuda,
        stream: &mut CudaStream,
        x: &Tensor<Cuda>,
        rows: Range<usize>,
    ) -> Result<Tensor<Cuda>> {
        let bytes = match self {
            Copied::Device(copy) => return copy.narrow(0, rows),
            Copied::Host(bytes) => bytes,
        };
        let mut dims = x.dims().to_vec();
        let row = bytes.len() / dims.first().copied().unwrap_or(0).max(1);
        dims.iter_mut().take(1).for_each(|first| *first = rows.len());
        let tensor = Tensor::new(device, x.dtype(), &dims)?;
        stream.upload(&tensor, bytes.get(rows.start * row..rows.end * row).unwrap_or_default())?;
        Ok(tensor)
    }
}
