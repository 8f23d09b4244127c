//! Scratch memory, handed out in pieces.

use halite_hal::{DType, Error, Result, Tensor};

use crate::{device::Cuda, memory::CudaBuffer};

/// Pieces begin at multiples of this, in bytes.
const ALIGNMENT: u64 = 256;

/// What is left of a call's scratch memory.
pub(crate) struct Room {
    buffer: Option<CudaBuffer>,
    start: u64,
    end: u64,
}

impl Room {
    pub(crate) fn new(buffer: CudaBuffer, bytes: u64) -> Self {
        Room { buffer: Some(buffer), start: 0, end: bytes }
    }

    pub(crate) fn empty() -> Self {
        Room { buffer: None, start: 0, end: 0 }
    }

    /// The next piece, as a tensor; [`bytes`] of it are gone.
    pub(crate) fn tensor(
        &mut self,
        operator: &'static str,
        dtype: DType,
        dims: &[usize],
    ) -> Result<Tensor<Cuda>> {
        let elements = dims.iter().fold(1, |elements: usize, &dim| elements.saturating_mul(dim));
        let next = self.start.saturating_add(bytes(dtype, elements));
        match &self.buffer {
            Some(buffer) if next <= self.end => {
                let tensor = Tensor::from_buffer(buffer.clone(), self.start, dtype, dims)?;
                self.start = next;
                Ok(tensor)
            }
            _ => {
                let argument = "workspace (call Stream::reserve first)";
                Err(Error::Limit { operator, argument, got: next, limit: self.end })
            }
        }
    }
}

/// Scratch bytes that a piece takes: what workspaces are sums of.
pub(crate) fn bytes(dtype: DType, elements: usize) -> u64 {
    let exact = (elements as u64).saturating_mul(dtype.size() as u64);
    exact.max(1).saturating_add(ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT
}
