//! Copies, in the order of a queue, with their ranges checked.

use std::slice;

use super::{Answer, Memory, Pinned, Queue, Runtime, bindings, call, error::check_range};

impl Runtime {
    /// Writes host bytes into pinned memory, now: no copy from there may be under way.
    pub(crate) fn write_pinned(&self, (to, at): (&mut Pinned, u64), bytes: &[u8]) -> Answer<()> {
        check_range("pinned memory", to.bytes(), at, bytes.len() as u64)?;
        // SAFETY: the range lies in the allocation, which nobody else writes: the handle is exclusive.
        unsafe {
            to.raw().cast::<u8>().add(at as usize).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
        };
        Ok(())
    }

    /// Reads pinned memory, now: the copy to there has come to its end.
    pub(crate) fn read_pinned(&self, from: &Pinned, bytes: u64) -> Answer<Vec<u8>> {
        check_range("pinned memory", from.bytes(), 0, bytes)?;
        // SAFETY: the range lies in the allocation, and a copy has written all of it.
        Ok(unsafe { slice::from_raw_parts(from.raw().cast::<u8>(), bytes as usize) }.to_vec())
    }

    /// Queues a copy from pinned to device memory.
    pub(crate) fn copy_in(
        &self,
        queue: &Queue,
        (to, to_at): (&Memory, u64),
        (from, from_at): (&Pinned, u64),
        bytes: u64,
    ) -> Answer<()> {
        check_range("device memory", to.bytes(), to_at, bytes)?;
        check_range("pinned memory", from.bytes(), from_at, bytes)?;
        self.copy_raw(
            queue,
            (to.raw(), to_at),
            (from.raw(), from_at),
            bytes,
            bindings::ACL_MEMCPY_HOST_TO_DEVICE,
        )
    }

    /// Queues a copy from device memory to the beginning of pinned memory.
    pub(crate) fn copy_out(
        &self,
        queue: &Queue,
        to: &Pinned,
        (from, from_at): (&Memory, u64),
        bytes: u64,
    ) -> Answer<()> {
        check_range("pinned memory", to.bytes(), 0, bytes)?;
        check_range("device memory", from.bytes(), from_at, bytes)?;
        self.copy_raw(queue, (to.raw(), 0), (from.raw(), from_at), bytes, bindings::ACL_MEMCPY_DEVICE_TO_HOST)
    }

    /// Queues a copy within device memory; the ranges must not overlap.
    pub(crate) fn copy(
        &self,
        queue: &Queue,
        (to, to_at): (&Memory, u64),
        (from, from_at): (&Memory, u64),
        bytes: u64,
    ) -> Answer<()> {
        check_range("device memory", to.bytes(), to_at, bytes)?;
        check_range("device memory", from.bytes(), from_at, bytes)?;
        self.copy_raw(
            queue,
            (to.raw(), to_at),
            (from.raw(), from_at),
            bytes,
            bindings::ACL_MEMCPY_DEVICE_TO_DEVICE,
        )
    }

    /// The ranges were checked.
    fn copy_raw(
        &self,
        queue: &Queue,
        (to, to_at): (*mut core::ffi::c_void, u64),
        (from, from_at): (*mut core::ffi::c_void, u64),
        bytes: u64,
        kind: bindings::aclrtMemcpyKind,
    ) -> Answer<()> {
        if bytes == 0 {
            return Ok(());
        }
        let (to, from) = (to.wrapping_byte_add(to_at as usize), from.wrapping_byte_add(from_at as usize));
        let bytes = bytes as usize;
        call!(self, aclrtMemcpyAsync(to, bytes, from, bytes, kind, queue.raw()))
    }
}
