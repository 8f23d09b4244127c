//! Copies between the host's ordinary memory and the device, by way of pinned memory that is kept.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use halite_hal::Result;

use super::{Context, Event, Memory, Pinned, Stream};

/// Uploads go through chunks of this many bytes,
const CHUNK: u64 = 1 << 20;
/// of which so many may be under way: enough to fill a bus while the next is written.
const CHUNKS: usize = 8;
/// Uploads begin at multiples of this in a chunk.
const ALIGNMENT: u64 = 16;
/// The smallest buffer for downloads: a page.
const SMALLEST: u64 = 4096;
/// So many buffers of downloads are kept.
const KEPT: usize = 8;

/// The pinned memory of one stream.
pub struct Staging {
    context: Context,
    stream: Stream,
    /// The chunk that is being filled, and how far.
    current: Option<(Pinned, u64)>,
    /// Chunks whose copies are queued, and the event after them, oldest first.
    queued: VecDeque<(Pinned, Event)>,
    downloads: Arc<Mutex<Vec<Pinned>>>,
}

impl Staging {
    /// Of a stream; memory is allocated when it is needed.
    pub fn new(context: &Context, stream: &Stream) -> Self {
        let (context, stream) = (context.clone(), stream.clone());
        Staging { context, stream, current: None, queued: VecDeque::new(), downloads: Arc::default() }
    }

    /// Copies host bytes to the device, in order with the stream's other work. `bytes` may be reused at once. It waits only
    /// where 8 MiB of earlier uploads are still under way. Not while the stream is captured: a graph would read the
    /// chunk again.
    ///
    /// # Errors
    /// The range, memory, or the driver's.
    pub fn upload(&mut self, to: (&Memory, u64), bytes: &[u8]) -> Result<()> {
        let (memory, mut at) = to;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (chunk, used) = match self.current.take() {
                Some((chunk, used)) if used < CHUNK => (chunk, used),
                Some((full, _)) => {
                    self.retire(full)?;
                    (self.chunk()?, 0)
                }
                None => (self.chunk()?, 0),
            };
            let room = usize::try_from(CHUNK - used).unwrap_or(usize::MAX);
            let (part, later) = rest.split_at(rest.len().min(room));
            let length = part.len() as u64;
            let copied = self
                .context
                .write_pinned((&chunk, used), part)
                .and_then(|()| self.context.copy_in(&self.stream, (memory, at), (&chunk, used), length));
            self.current = Some((chunk, (used + length).next_multiple_of(ALIGNMENT)));
            copied?;
            at += length;
            rest = later;
        }
        Ok(())
    }

    /// Starts copying device memory to the host.
    ///
    /// # Errors
    /// The range, memory, or the driver's.
    pub fn download(&mut self, from: (&Memory, u64), bytes: u64) -> Result<Download> {
        let kept = {
            let mut downloads = self.downloads.lock().unwrap_or_else(PoisonError::into_inner);
            // The smallest that is large enough: the large ones are for large copies.
            let sizes = downloads.iter().map(|buffer| *buffer.bytes()).enumerate();
            let fits = sizes.filter(|(_, size)| *size >= bytes).min_by_key(|(_, size)| *size);
            fits.map(|(index, _)| downloads.swap_remove(index))
        };
        let buffer = match kept {
            Some(buffer) => buffer,
            None => self.context.pinned(bytes.checked_next_power_of_two().unwrap_or(bytes).max(SMALLEST))?,
        };
        self.context.copy_out(&self.stream, (&buffer, 0), from, bytes)?;
        let event = self.context.event()?;
        self.context.record(&self.stream, &event)?;
        Ok(Download { context: self.context.clone(), buffer, event, bytes, kept: self.downloads.clone() })
    }

    fn retire(&mut self, chunk: Pinned) -> Result<()> {
        let event = self.context.event()?;
        self.context.record(&self.stream, &event)?;
        self.queued.push_back((chunk, event));
        Ok(())
    }

    /// A chunk that no copy reads: the oldest where it is done or there are enough, else a new one.
    fn chunk(&mut self) -> Result<Pinned> {
        if let Some((chunk, event)) = self.queued.pop_front() {
            if self.queued.len() + 1 >= CHUNKS {
                self.context.wait(&event)?;
                return Ok(chunk);
            }
            if self.context.reached(&event)? {
                return Ok(chunk);
            }
            self.queued.push_front((chunk, event));
        }
        self.context.pinned(CHUNK)
    }
}

impl fmt::Debug for Staging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staging").field("queued", &self.queued.len()).finish_non_exhaustive()
    }
}

/// Bytes on their way to the host.
#[derive(Debug)]
pub struct Download {
    context: Context,
    buffer: Pinned,
    event: Event,
    bytes: u64,
    kept: Arc<Mutex<Vec<Pinned>>>,
}

impl Download {
    /// Waits for the bytes.
    ///
    /// # Errors
    /// What went wrong on the device before they came.
    pub fn wait(self) -> Result<Vec<u8>> {
        self.context.wait(&self.event)?;
        let mut bytes = vec![0; usize::try_from(self.bytes).unwrap_or(usize::MAX)];
        self.context.read_pinned((&self.buffer, 0), &mut bytes)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.push(self.buffer);
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::testing::Fake;

    /// Bytes that no shift and no other place repeats.
    fn bytes(length: usize, seed: u64) -> Vec<u8> {
        (0..length as u64).map(|i| ((i + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8).collect()
    }

    fn set_up() -> (Arc<Fake>, Context, Stream) {
        let fake = Fake::new();
        let context = Context::new(fake.clone());
        let stream = context.stream().unwrap();
        (fake, context, stream)
    }

    #[test]
    fn what_is_uploaded_comes_back_however_late_the_device_copies() {
        // The fake driver copies only when somebody waits: a chunk that were reused too early would show other bytes.
        let (fake, context, stream) = set_up();
        let mut staging = Staging::new(&context, &stream);
        let memory = context.allocate(&stream, 32 << 20).unwrap();
        let mut expected = vec![0; 32 << 20];
        context.fill(&stream, (&memory, 0), 32 << 20, 0).unwrap();
        let mut at = 0;
        for (index, length) in
            [1, 17, 1 << 20, (1 << 20) + 1, 0, 12 << 20, 5, 3 << 20, 16].into_iter().enumerate()
        {
            let mut part = bytes(length, 1000 * index as u64);
            staging.upload((&memory, at as u64), &part).unwrap();
            expected[at..at + length].copy_from_slice(&part);
            // The caller's bytes may be reused at once.
            part.fill(0xee);
            at += length + 3;
        }
        let download = staging.download((&memory, 0), 32 << 20).unwrap();
        assert!(download.wait().unwrap() == expected);
        assert!(fake.pinned_bytes() <= (CHUNKS as u64 + 1) * CHUNK + (32 << 20), "chunks are reused");
    }

    #[test]
    fn small_uploads_share_a_chunk_and_done_ones_are_reused() {
        let (fake, context, stream) = set_up();
        let mut staging = Staging::new(&context, &stream);
        let memory = context.allocate(&stream, 100).unwrap();
        for step in 0..1000 {
            staging.upload((&memory, 0), &bytes(100, step)).unwrap();
        }
        assert_eq!(fake.pinned_bytes(), CHUNK);
        for _ in 0..100 {
            staging.upload((&memory, 0), &bytes(100, 1)).unwrap();
            context.synchronize(&stream).unwrap();
        }
        for step in 0..10_000 {
            staging.upload((&memory, 0), &bytes(100, step)).unwrap();
            context.synchronize(&stream).unwrap();
        }
        assert!(fake.pinned_bytes() <= 2 * CHUNK, "{}", fake.pinned_bytes());
    }

    #[test]
    fn buffers_of_downloads_are_kept() {
        let (fake, context, stream) = set_up();
        let mut staging = Staging::new(&context, &stream);
        let memory = context.allocate(&stream, 8000).unwrap();
        staging.upload((&memory, 0), &bytes(8000, 5)).unwrap();
        for _ in 0..20 {
            let (first, second) = (
                staging.download((&memory, 100), 50).unwrap(),
                staging.download((&memory, 0), 8000).unwrap(),
            );
            assert_eq!(second.wait().unwrap(), bytes(8000, 5));
            assert_eq!(first.wait().unwrap(), bytes(8000, 5)[100..150]);
        }
        assert_eq!(fake.pinned_bytes(), CHUNK + 8192 + SMALLEST);
        assert!(staging.download((&memory, 0), 0).unwrap().wait().unwrap().is_empty());
    }

    #[test]
    fn what_does_not_fit_is_an_error_and_the_next_upload_works() {
        let (_, context, stream) = set_up();
        let mut staging = Staging::new(&context, &stream);
        let memory = context.allocate(&stream, 10).unwrap();
        assert!(staging.upload((&memory, 1), &[1; 10]).is_err());
        assert!(staging.download((&memory, 11), 0).is_err());
        assert!(staging.download((&memory, 0), 11).is_err());
        staging.upload((&memory, 0), &[7; 10]).unwrap();
        assert_eq!(staging.download((&memory, 0), 10).unwrap().wait().unwrap(), [7; 10]);
    }
}
