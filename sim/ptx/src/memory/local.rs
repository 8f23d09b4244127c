//! The local memory of a block's threads.

use super::is_aligned;
use super::shared::{load, store};
use crate::fault::{Access, FaultKind};
use crate::ir::Space;

/// The same number of bytes for each thread.
#[derive(Debug)]
pub(crate) struct Local {
    bytes_per_thread: usize,
    bytes: Vec<u8>,
    /// Which bytes hold a value, where that is looked at; empty else.
    written: Vec<bool>,
}

impl Local {
    pub(crate) fn new(threads: usize, bytes_per_thread: usize, uninitialised: bool) -> Local {
        let bytes = threads * bytes_per_thread;
        let written = vec![false; if uninitialised { bytes } else { 0 }];
        Local { bytes_per_thread, bytes: vec![0xff; bytes], written }
    }

    /// As for a block that begins.
    pub(crate) fn reset(&mut self) {
        self.bytes.fill(0xff);
        self.written.fill(false);
    }

    /// Whether the thread has the bytes, and the address is a multiple of `align`, a power of two.
    pub(crate) fn check(
        &self,
        address: u64,
        bytes: u32,
        align: u32,
        access: Access,
    ) -> Result<(), FaultKind> {
        let size = self.bytes_per_thread as u64;
        if address > size || u64::from(bytes) > size - address {
            let nearest = Some((0, size));
            return Err(FaultKind::OutOfBounds { space: Space::Local, access, address, bytes, nearest });
        }
        if !is_aligned(address, align) {
            return Err(FaultKind::Misaligned { space: Space::Local, access, address, align });
        }
        Ok(())
    }

    fn at(&self, thread: usize, address: u64) -> usize {
        thread * self.bytes_per_thread + address as usize
    }

    /// A value that [`Local::check`] has let pass.
    pub(crate) fn load(&self, thread: usize, address: u64, width: u32) -> u64 {
        load(&self.bytes, self.at(thread, address), width)
    }

    /// Writes a value that [`Local::check`] has let pass.
    pub(crate) fn store(&mut self, thread: usize, address: u64, width: u32, value: u64) {
        let at = self.at(thread, address);
        store(&mut self.bytes, at, width, value);
        if let Some(written) = self.written.get_mut(at..at + width as usize) {
            written.fill(true);
        }
    }

    /// The first of the bytes that the thread has not written.
    pub(crate) fn unwritten(&self, thread: usize, address: u64, bytes: u32) -> Option<u64> {
        let at = self.at(thread, address);
        let written = self.written.get(at..at + bytes as usize)?;
        written.iter().position(|&written| !written).map(|index| address + index as u64)
    }
}
