//! Bytes on their way to the host, without a stall: the copy is queued, and only who wants the bytes waits.

use crate::device::Wgpu;
use halite_hal::{Pending, Result};
use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

/// A read-back that is under way.
pub struct ReadBack {
    device: Wgpu,
    buffer: Option<wgpu::Buffer>,
    len: u64,
    index: wgpu::SubmissionIndex,
}

impl ReadBack {
    pub(crate) fn start(device: Wgpu, buffer: wgpu::Buffer, len: u64, index: wgpu::SubmissionIndex) -> Self {
        if len > 0 {
            // Whether it worked shows when the bytes are taken.
            buffer.slice(..).map_async(wgpu::MapMode::Read, |_| {});
        }
        ReadBack { device, buffer: Some(buffer), len, index }
    }
}

impl Pending for ReadBack {
    fn wait(mut self) -> Result<Vec<u8>> {
        let Some(buffer) = self.buffer.take().filter(|_| self.len > 0) else { return Ok(Vec::new()) };
        self.device.wait(&self.index)?;
        let bytes = match buffer.slice(..).get_mapped_range() {
            Ok(mapped) => mapped[..self.len as usize].to_vec(),
            Err(error) => return Err(self.device.failed(error.to_string())),
        };
        buffer.unmap();
        self.device.read_backs().give_back(buffer);
        Ok(bytes)
    }
}

impl fmt::Debug for ReadBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadBack({} bytes)", self.len)
    }
}

/// Buffers that the host can read, kept for the next read-back of their size: a decode step needs the same one each time.
#[derive(Default)]
pub(crate) struct ReadBacks(Mutex<Vec<wgpu::Buffer>>);

/// Buffers that are kept.
const KEPT: usize = 16;
/// The largest that is kept, in bytes.
const LARGEST_KEPT: u64 = 1 << 20;

impl ReadBacks {
    pub(crate) fn take(&self, size: u64, device: &wgpu::Device) -> wgpu::Buffer {
        // In powers of two, so that sizes meet again.
        let size = size.max(256).next_power_of_two();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = kept.iter().position(|buffer| buffer.size() == size) {
            return kept.swap_remove(place);
        }
        drop(kept);
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
    }

    fn give_back(&self, buffer: wgpu::Buffer) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT && buffer.size() <= LARGEST_KEPT {
            kept.push(buffer);
        }
    }
}
