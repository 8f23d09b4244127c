//! Bytes on their way to the host, without a stall: the copy is queued, and only who wants the bytes waits.

use crate::{
    device::{NAME, Wgpu},
    failure::caught,
};
use halite_hal::{Error, Pending, Result};
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
    pub(crate) fn take(&self, size: u64, device: &wgpu::Device) -> Result<wgpu::Buffer> {
        // In powers of two, so that sizes meet again.
        let size = if size <= LARGEST_KEPT { size.max(256).next_power_of_two() } else { size };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = kept.iter().position(|buffer| buffer.size() == size) {
            return Ok(kept.swap_remove(place));
        }
        drop(kept);
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let descriptor = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
        caught(device, || device.create_buffer(&descriptor))
            .map_err(|_| Error::OutOfMemory { device: NAME.to_owned(), requested: size })
    }

    fn give_back(&self, buffer: wgpu::Buffer) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT && buffer.size() <= LARGEST_KEPT {
            kept.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use halite_hal::{Device, Tensor};

    #[test]
    fn more_than_a_buffer_holds_is_refused_and_what_was_queued_before_is_done() -> Result<()> {
        let Some(gpu) = testing::gpu("read-backs") else { return Ok(()) };
        let mut stream = gpu.stream()?;
        let x = Tensor::from_slice(&mut stream, &[1f32], &[1])?;
        x.write(&mut stream, &[2f32])?;
        let beyond = gpu.raw().limits().max_buffer_size + 4;
        let refused = stream.read(x.buffer(), 0, beyond);
        assert!(
            matches!(refused, Err(Error::OutOfMemory { requested, .. }) if requested >= beyond),
            "{refused:?}"
        );
        assert_eq!(x.to_vec::<f32>(&mut stream)?, [2.0]);
        // A size of its own, not the next power of two.
        assert_eq!(gpu.read_backs().take(LARGEST_KEPT + 4, gpu.raw())?.size(), LARGEST_KEPT + 4);
        Ok(())
    }
}
