//! Memory handed out in pieces.

use halite_hal::{DType, Error, Result, Storage, Tensor};

use crate::{device::Ascend, memory::AscendBuffer};

/// Pieces begin at multiples of this, in bytes.
const ALIGNMENT: u64 = 512;
/// CANN wants so many bytes behind a piece that somebody else cut out of an allocation.
const BEHIND: u64 = 32;

/// What is left of some memory.
pub(crate) struct Room {
    buffer: AscendBuffer,
    start: u64,
}

impl Room {
    /// All of it.
    pub(crate) fn new(buffer: AscendBuffer) -> Self {
        Room { buffer, start: 0 }
    }

    /// The next piece, as a tensor; [`bytes`] of it are gone.
    pub(crate) fn tensor(
        &mut self,
        operator: &'static str,
        dtype: DType,
        dims: &[usize],
    ) -> Result<Tensor<Ascend>> {
        let (got, limit) = (self.start.saturating_add(bytes(dtype, dims)), self.buffer.len());
        if got > limit {
            return Err(Error::Limit {
                operator,
                argument: "workspace (call Stream::reserve first)",
                got,
                limit,
            });
        }
        let tensor = Tensor::from_buffer(self.buffer.clone(), self.start, dtype, dims)?;
        self.start = got;
        Ok(tensor)
    }
}

/// Bytes that a piece takes: what workspaces are sums of.
pub(crate) fn bytes(dtype: DType, dims: &[usize]) -> u64 {
    let exact = dims.iter().fold(dtype.size() as u64, |bytes, &dim| bytes.saturating_mul(dim as u64));
    exact.saturating_add(BEHIND + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_room_behind_them() {
        assert_eq!(bytes(DType::F32, &[0]), 512);
        assert_eq!(bytes(DType::F32, &[120]), 512, "480 and 32 more");
        assert_eq!(bytes(DType::F32, &[121]), 1024);
        assert_eq!(bytes(DType::Bf16, &[3, 160]), 1024, "960 and 32 more");
    }
}
