//! A tensor as a dispatch binds it.

use crate::{
    bindings::Window,
    device::Wgpu,
    memory::{ALIGNMENT, WgpuBuffer},
};
use halite_hal::{DType, Error, Result, Storage, Tensor};
use std::ops::Range;

/// Part of a buffer that a kernel reads or writes.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub(crate) buffer: WgpuBuffer,
    pub(crate) dtype: DType,
    /// Bytes of the buffer that may be touched.
    range: Range<u64>,
}

impl Operand {
    /// All that a tensor may touch.
    pub(crate) fn tensor(tensor: &Tensor<Wgpu>) -> Self {
        Operand { buffer: tensor.buffer().clone(), dtype: tensor.dtype(), range: tensor.byte_range() }
    }

    /// Bytes of a buffer, as elements of a type.
    pub(crate) fn bytes(buffer: &WgpuBuffer, range: Range<u64>, dtype: DType) -> Self {
        Operand { buffer: buffer.clone(), dtype, range }
    }

    /// All bytes of a buffer, as elements of a type.
    pub(crate) fn all(buffer: &WgpuBuffer, dtype: DType) -> Self {
        Operand::bytes(buffer, 0..buffer.len(), dtype)
    }

    /// Part of it, in bytes from its beginning.
    pub(crate) fn part(&self, range: Range<u64>) -> Self {
        let start = self.range.start;
        Operand { range: start + range.start..start + range.end, ..self.clone() }
    }

    /// The same bytes as elements of another type.
    pub(crate) fn with_type(self, dtype: DType) -> Self {
        Operand { dtype, ..self }
    }

    /// Where it begins in its buffer, in bytes.
    pub(crate) fn start(&self) -> u64 {
        self.range.start
    }

    /// Whether it begins at a multiple of so many bytes, at most [`ALIGNMENT`].
    pub(crate) fn is_aligned(&self, to: u64) -> bool {
        (self.buffer.start() + self.range.start).is_multiple_of(to)
    }

    /// Its size in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// What is bound, and the bytes from there to the operand's beginning. A buffer that can be bound whole is; of a
    /// larger one only what is touched.
    pub(crate) fn window(
        &self,
        largest: u64,
        operator: &'static str,
        argument: &'static str,
    ) -> Result<(Window<'_>, u64)> {
        let backing = self.buffer.backing();
        let start = self.buffer.start() + self.range.start;
        let whole = backing.buffer.size();
        if whole <= largest {
            return Ok((Window { backing, offset: 0, size: whole }, start));
        }
        let offset = start / ALIGNMENT * ALIGNMENT;
        // Whole vectors of four words, as some kernels read: allocations have room for them.
        let size = (self.buffer.start() + self.range.end).next_multiple_of(16).max(offset + 16) - offset;
        if size > largest {
            return Err(Error::Limit { operator, argument, got: size, limit: largest });
        }
        Ok((Window { backing, offset, size }, start - offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use halite_hal::Device;

    #[test]
    fn part_of_a_buffer_is_bound_in_whole_vectors() -> Result<()> {
        let Some(gpu) = testing::gpu("windows") else { return Ok(()) };
        let buffer = gpu.alloc(16 << 20)?;
        for (range, offset, size) in [(0..24, 0, 32), (0..4, 0, 16), (300..304, 256, 48), (512..528, 512, 16)]
        {
            let operand = Operand::bytes(&buffer, range.clone(), DType::F32);
            let (window, base) = operand.window(1 << 20, "copy", "x")?;
            assert_eq!((window.offset, window.size, base), (offset, size, range.start - offset), "{range:?}");
        }
        Ok(())
    }
}
