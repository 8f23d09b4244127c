//! Copies between the host's ordinary memory and the device, by way of pinned memory that is kept.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use super::{Answer, Event, Memory, Pinned, Queue, Runtime};

/// Uploads go through chunks of this many bytes,
const CHUNK: u64 = 1 << 20;
/// of which so many may be under way: enough to fill a bus while the next is written.
const CHUNKS: usize = 8;
/// Uploads begin at multiples of this in a chunk.
const ALIGNMENT: u64 = 64;
/// The smallest buffer for downloads: a page.
const SMALLEST: u64 = 4096;
/// So many buffers of downloads are kept.
const KEPT: usize = 8;

/// The pinned memory of one queue.
pub(crate) struct Staging {
    runtime: Runtime,
    queue: Arc<Queue>,
    /// The chunk that is being filled, and how far.
    current: Option<(Pinned, u64)>,
    /// Chunks whose copies are queued, and the event after them, oldest first.
    queued: VecDeque<(Pinned, Event)>,
    downloads: Arc<Mutex<Vec<Pinned>>>,
}

impl Staging {
    /// Of a queue; memory is allocated when it is needed.
    pub(crate) fn new(runtime: &Runtime, queue: &Arc<Queue>) -> Self {
        let (runtime, queue) = (runtime.clone(), queue.clone());
        Staging { runtime, queue, current: None, queued: VecDeque::new(), downloads: Arc::default() }
    }

    /// Copies host bytes to the device, in order with the queue's other work. `bytes` may be reused at once. It waits only
    /// where 8 MiB of earlier uploads are still under way.
    pub(crate) fn upload(&mut self, to: (&Memory, u64), bytes: &[u8]) -> Answer<()> {
        let (memory, mut at) = to;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (mut chunk, used) = match self.current.take() {
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
            // The part that is written is none that a queued copy reads: those lie before it.
            let copied = self
                .runtime
                .write_pinned((&mut chunk, used), part)
                .and_then(|()| self.runtime.copy_in(&self.queue, (memory, at), (&chunk, used), length));
            self.current = Some((chunk, (used + length).next_multiple_of(ALIGNMENT)));
            copied?;
            at += length;
            rest = later;
        }
        Ok(())
    }

    /// Starts copying device memory to the host.
    pub(crate) fn download(&mut self, from: (&Memory, u64), bytes: u64) -> Answer<Download> {
        let kept = {
            let mut downloads = self.downloads.lock().unwrap_or_else(PoisonError::into_inner);
            // The smallest that is large enough: the large ones are for large copies.
            let sizes = downloads.iter().map(Pinned::bytes).enumerate();
            let fits = sizes.filter(|(_, size)| *size >= bytes).min_by_key(|(_, size)| *size);
            fits.map(|(index, _)| downloads.swap_remove(index))
        };
        let buffer = match kept {
            Some(buffer) => buffer,
            None => self.runtime.pinned(bytes.checked_next_power_of_two().unwrap_or(bytes).max(SMALLEST))?,
        };
        let event = self.runtime.event()?;
        self.runtime.copy_out(&self.queue, &buffer, from, bytes)?;
        let (runtime, queue, kept) = (self.runtime.clone(), self.queue.clone(), self.downloads.clone());
        // From here on the buffer is the copy's, whatever fails.
        let download = Download { runtime, queue, buffer: Some(buffer), event, bytes, kept };
        self.runtime.record(&self.queue, &download.event)?;
        Ok(download)
    }

    /// Puts a full chunk behind its copies. Where that fails it stays the current one: they still read it.
    fn retire(&mut self, chunk: Pinned) -> Answer<()> {
        let marked =
            self.runtime.event().and_then(|event| self.runtime.record(&self.queue, &event).map(|()| event));
        match marked {
            Ok(event) => self.queued.push_back((chunk, event)),
            Err(error) => {
                self.current = Some((chunk, CHUNK));
                return Err(error);
            }
        }
        Ok(())
    }

    /// A chunk that no copy reads: the oldest where it is done or there are enough, else a new one.
    fn chunk(&mut self) -> Answer<Pinned> {
        let Some((_, event)) = self.queued.front() else { return self.runtime.pinned(CHUNK) };
        let done = if self.queued.len() >= CHUNKS {
            self.runtime.wait(&self.queue, event).map(|()| true)?
        } else {
            self.runtime.reached(event)?
        };
        match if done { self.queued.pop_front() } else { None } {
            Some((chunk, _)) => Ok(chunk),
            None => self.runtime.pinned(CHUNK),
        }
    }
}

impl fmt::Debug for Staging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staging").field("queued", &self.queued.len()).finish_non_exhaustive()
    }
}

/// Bytes on their way to the host.
#[derive(Debug)]
pub(crate) struct Download {
    runtime: Runtime,
    queue: Arc<Queue>,
    /// Until it is waited for.
    buffer: Option<Pinned>,
    event: Event,
    bytes: u64,
    kept: Arc<Mutex<Vec<Pinned>>>,
}

impl Download {
    /// Waits for the bytes.
    pub(crate) fn wait(mut self) -> Answer<Vec<u8>> {
        self.runtime.wait(&self.queue, &self.event)?;
        let Some(buffer) = self.buffer.take() else { return Ok(Vec::new()) };
        let bytes = self.runtime.read_pinned(&buffer, self.bytes)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.push(buffer);
        }
        Ok(bytes)
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        // The copy may be under way: its memory is freed after it.
        if self.buffer.is_some() {
            let _ = self.runtime.synchronize(&self.queue);
        }
    }
}
