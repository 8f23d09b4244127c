//! Scratch memory, handed out in pieces.

use crate::{
    device::Wgpu,
    memory::{ALIGNMENT, WgpuBuffer},
    operand::Operand,
};
use halite_hal::{DType, Error, Result, Tensor};

/// What is left of a call's scratch memory.
pub(crate) struct Room {
    buffer: Option<WgpuBuffer>,
    start: u64,
    end: u64,
}

impl Room {
    pub(crate) fn new(buffer: WgpuBuffer, bytes: u64) -> Self {
        Room { buffer: Some(buffer), start: 0, end: bytes }
    }

    pub(crate) fn empty() -> Self {
        Room { buffer: None, start: 0, end: 0 }
    }

    /// The next `elements` of a type; [`bytes`] of it are gone.
    pub(crate) fn take(&mut self, operator: &'static str, dtype: DType, elements: usize) -> Result<Operand> {
        let len = elements as u64 * dtype.size() as u64;
        let next = self.start + bytes(dtype, elements);
        match &self.buffer {
            Some(buffer) if next <= self.end => {
                let operand = Operand::bytes(buffer, self.start..self.start + len, dtype);
                self.start = next;
                Ok(operand)
            }
            _ => {
                let argument = "workspace (call Stream::reserve first)";
                Err(Error::Limit { operator, argument, got: next, limit: self.end })
            }
        }
    }

    /// Likewise, as a tensor.
    pub(crate) fn tensor(
        &mut self,
        operator: &'static str,
        dtype: DType,
        dims: &[usize],
    ) -> Result<Tensor<Wgpu>> {
        let elements = dims.iter().fold(1, |elements: usize, &dim| elements.saturating_mul(dim));
        let operand = self.take(operator, dtype, elements)?;
        Tensor::from_buffer(operand.buffer.clone(), operand.start(), dtype, dims)
    }
}

/// Scratch bytes that a piece takes: what workspaces are sums of.
pub(crate) fn bytes(dtype: DType, elements: usize) -> u64 {
    (elements as u64).saturating_mul(dtype.size() as u64).max(1).saturating_add(ALIGNMENT - 1) / ALIGNMENT
        * ALIGNMENT
}
