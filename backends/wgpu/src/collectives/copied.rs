//! A rank's input as it was when it called, for the others.

use crate::{copy, device::Wgpu, operand::Operand, stream::WgpuStream};
use halite_hal::{Pending, Result, Stream, Tensor};
use std::ops::Range;

/// The copy: on the device that all ranks have handles of, or on the host.
#[derive(Debug)]
pub(super) enum Copied {
    Device(Tensor<Wgpu>),
    Host(Vec<u8>),
}

impl Copied {
    /// Of a dense tensor.
    pub(super) fn of(
        device: &Wgpu,
        stream: &mut WgpuStream,
        x: &Tensor<Wgpu>,
        one_device: bool,
    ) -> Result<Self> {
        if !one_device {
            return Ok(Copied::Host(stream.download(x)?.wait()?));
        }
        let copy = Tensor::new(device, x.dtype(), x.dims())?;
        copy_elements(stream, x, &copy)?;
        // What others submit after the meeting comes behind it.
        stream.submit()?;
        Ok(Copied::Device(copy))
    }

    /// Some rows of the copy of `x`, on this device.
    pub(super) fn rows(
        &self,
        device: &Wgpu,
        stream: &mut WgpuStream,
        x: &Tensor<Wgpu>,
        rows: Range<usize>,
    ) -> Result<Tensor<Wgpu>> {
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

/// The elements of one dense tensor to another of the same size.
pub(super) fn copy_elements(stream: &mut WgpuStream, from: &Tensor<Wgpu>, to: &Tensor<Wgpu>) -> Result<()> {
    if from.shape().elements() == 0 {
        return Ok(());
    }
    copy::bytes(stream, Operand::tensor(from), Operand::tensor(to))
}
