//! Host bytes on their way to device memory, in pieces of mapped memory that are used again. As `wgpu::util::StagingBelt`,
//! which panics where the device is lost or has no memory left.

use std::sync::mpsc::{Receiver, Sender, channel};

/// Bytes of one piece: a step's tables fit.
pub(crate) const PIECE: u64 = 1 << 20;

/// The pieces of a stream.
pub(crate) struct Staging {
    device: wgpu::Device,
    /// Mapped, with bytes that queued copies read.
    open: Vec<Piece>,
    /// Unmapped, read by work that is about to be handed over.
    closed: Vec<Piece>,
    /// Mapped again by the device once that work is done.
    free: (Sender<Piece>, Receiver<Piece>),
}

struct Piece {
    buffer: wgpu::Buffer,
    /// Bytes from its beginning that are taken.
    used: u64,
}

impl Staging {
    pub(crate) fn new(device: wgpu::Device) -> Self {
        Staging { device, open: Vec::new(), closed: Vec::new(), free: channel() }
    }

    /// Queues a copy of at most [`PIECE`] bytes, whole words, to a multiple of 4 of a buffer. The error is the driver's.
    pub(crate) fn write(
        &mut self,
        encoder: &mut wgpu::CommandEncoder,
        to: &wgpu::Buffer,
        at: u64,
        bytes: &[u8],
    ) -> Result<(), String> {
        let len = bytes.len() as u64;
        let place = self.open.iter().position(|piece| PIECE - piece.used >= len);
        let place = place.unwrap_or_else(|| {
            let piece = self.free.1.try_recv().unwrap_or_else(|_| self.piece());
            self.open.push(piece);
            self.open.len() - 1
        });
        let piece = &mut self.open[place];
        let range = piece.used..piece.used + len;
        // Mapped ranges begin at multiples of 8.
        piece.used = range.end.next_multiple_of(wgpu::MAP_ALIGNMENT);
        let mut view =
            piece.buffer.slice(range.clone()).get_mapped_range_mut().map_err(|error| error.to_string())?;
        view.copy_from_slice(bytes);
        encoder.copy_buffer_to_buffer(&piece.buffer, range.start, to, at, len);
        Ok(())
    }

    fn piece(&self) -> Piece {
        let usage = wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC;
        let descriptor = wgpu::BufferDescriptor { label: None, size: PIECE, usage, mapped_at_creation: true };
        Piece { buffer: self.device.create_buffer(&descriptor), used: 0 }
    }

    /// Before the copies are handed over.
    pub(crate) fn close(&mut self) {
        self.open.iter().for_each(|piece| piece.buffer.unmap());
        self.closed.append(&mut self.open);
    }

    /// After they were.
    pub(crate) fn recall(&mut self) {
        for piece in self.closed.drain(..) {
            let (buffer, back) = (piece.buffer.clone(), self.free.0.clone());
            buffer.map_async(wgpu::MapMode::Write, .., move |mapped| {
                // A stream that is gone needs no pieces, and what could not be mapped is let go of.
                if mapped.is_ok() {
                    let _ = back.send(Piece { used: 0, ..piece });
                }
            });
        }
    }
}
