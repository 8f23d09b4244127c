//! Device memory on the CPU: counted, and guarded range by range.
//!
//! Tensors are shared handles, so the borrow checker cannot tell who writes. Each access therefore takes a guard on
//! its byte range; a range that other work writes, or that is written while other work reads it, is refused with
//! [`Error::Busy`]. That is what makes slices of shared memory sound, whatever a caller does with streams and threads.

use crate::{
    aligned::{ALIGNMENT, AlignedBytes},
    slab::{Piece, Slabs},
};
use halite_hal::{Error, HostBytes, Result, Storage};
use std::{
    fmt,
    ops::{Deref, DerefMut, Range},
    ptr::NonNull,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The device's name in errors.
pub(crate) const DEVICE: &str = "cpu";

/// A counted handle to CPU memory.
#[derive(Clone)]
pub struct CpuBuffer(Arc<Memory>);

struct Memory {
    bytes: Bytes,
    uses: Mutex<Vec<Use>>,
}

enum Bytes {
    Owned(AlignedBytes),
    /// Of an allocation that is shared with others.
    Piece(Piece),
    /// Read only.
    Adopted(Adopted),
}

/// Host bytes where they are.
struct Adopted {
    /// What the host said once: asked again, it might say something else.
    bytes: NonNull<[u8]>,
    /// Keeps them alive. Nobody can borrow it exclusively while it is shared with us.
    _host: HostBytes,
}

impl Adopted {
    fn new(host: HostBytes) -> Self {
        let bytes = NonNull::from((*host).as_ref());
        Adopted { bytes, _host: host }
    }
}

// SAFETY: it is a shared borrow of bytes and the `Send` and `Sync` owner of them.
unsafe impl Send for Adopted {}
// SAFETY: as above.
unsafe impl Sync for Adopted {}

/// A byte range in use.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Use {
    start: u64,
    end: u64,
    writing: bool,
}

impl CpuBuffer {
    pub(crate) fn alloc(bytes: u64) -> Result<Self> {
        let owned = AlignedBytes::zeroed(bytes).map(Bytes::Owned);
        owned.map(Self::new).ok_or_else(|| no_room(bytes))
    }

    /// Memory for packed weights.
    pub(crate) fn piece(slabs: &Slabs, bytes: u64) -> Result<Self> {
        slabs.piece(bytes).map(Bytes::Piece).map(Self::new).ok_or_else(|| no_room(bytes))
    }

    /// Uses host bytes in place where they are aligned, and copies them where not.
    pub(crate) fn adopt(host: HostBytes) -> Result<Self> {
        let adopted = Adopted::new(host);
        if adopted.bytes.cast::<u8>().addr().get().is_multiple_of(ALIGNMENT) {
            return Ok(Self::new(Bytes::Adopted(adopted)));
        }
        let unaligned = Self::new(Bytes::Adopted(adopted));
        let buffer = Self::alloc(unaligned.len())?;
        buffer.write(0..buffer.len())?.copy_from_slice(&unaligned.read(0..unaligned.len())?);
        Ok(buffer)
    }

    fn new(bytes: Bytes) -> Self {
        CpuBuffer(Arc::new(Memory { bytes, uses: Mutex::new(Vec::new()) }))
    }

    /// Guards a range for reading.
    pub(crate) fn read(&self, range: Range<u64>) -> Result<Reading<'_>> {
        Ok(Reading(self.0.enter(range, false)?))
    }

    /// Guards a range for writing.
    pub(crate) fn write(&self, range: Range<u64>) -> Result<Writing<'_>> {
        Ok(Writing(self.0.enter(range, true)?))
    }
}

fn no_room(bytes: u64) -> Error {
    Error::OutOfMemory { device: DEVICE.to_owned(), requested: bytes }
}

impl Storage for CpuBuffer {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for CpuBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuBuffer({} bytes)", self.len())
    }
}

impl Memory {
    fn len(&self) -> u64 {
        match &self.bytes {
            Bytes::Owned(bytes) => bytes.len() as u64,
            Bytes::Piece(piece) => piece.len() as u64,
            Bytes::Adopted(host) => host.bytes.len() as u64,
        }
    }

    fn start(&self) -> *mut u8 {
        match &self.bytes {
            Bytes::Owned(bytes) => bytes.as_ptr(),
            Bytes::Piece(piece) => piece.as_ptr(),
            // Never written through: `enter` refuses to.
            Bytes::Adopted(host) => host.bytes.as_ptr().cast(),
        }
    }

    fn enter(&self, range: Range<u64>, writing: bool) -> Result<Access<'_>> {
        if range.start > range.end || range.end > self.len() {
            return Err(Error::Limit {
                operator: "buffer",
                argument: "range",
                got: range.end,
                limit: self.len(),
            });
        }
        if writing && matches!(self.bytes, Bytes::Adopted(_)) {
            return Err(Error::Device {
                device: DEVICE.to_owned(),
                cause: "adopted host memory is read only; copy it into a tensor of its own".to_owned(),
            });
        }
        let mine = Use { start: range.start, end: range.end, writing };
        if !range.is_empty() {
            let mut uses = self.uses();
            let clash = uses
                .iter()
                .any(|other| (writing || other.writing) && mine.start < other.end && other.start < mine.end);
            if clash {
                return Err(Error::Busy { device: DEVICE.to_owned(), start: range.start, end: range.end });
            }
            uses.push(mine);
        }
        Ok(Access { memory: self, mine })
    }

    fn uses(&self) -> MutexGuard<'_, Vec<Use>> {
        // The list is whole between any two statements, so a panic elsewhere leaves it usable.
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A range that is entered, until it is dropped.
struct Access<'a> {
    memory: &'a Memory,
    mine: Use,
}

impl Access<'_> {
    fn len(&self) -> usize {
        (self.mine.end - self.mine.start) as usize
    }

    fn start(&self) -> *mut u8 {
        self.memory.start().wrapping_add(self.mine.start as usize)
    }
}

impl Drop for Access<'_> {
    fn drop(&mut self) {
        let mut uses = self.memory.uses();
        if let Some(at) = uses.iter().position(|entry| *entry == self.mine) {
            uses.swap_remove(at);
        }
    }
}

/// Bytes that nobody writes meanwhile.
pub(crate) struct Reading<'a>(Access<'a>);

impl Deref for Reading<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `enter` checked that the range lies in the memory, which is initialised (zeroed or a host slice)
        // and lives as long as the borrow of it; no writer enters the range while this guard stands.
        unsafe { std::slice::from_raw_parts(self.0.start(), self.0.len()) }
    }
}

/// Bytes that nobody else touches meanwhile.
pub(crate) struct Writing<'a>(Access<'a>);

impl Deref for Writing<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: as in `Reading`; this guard keeps all others out of the range.
        unsafe { std::slice::from_raw_parts(self.0.start(), self.0.len()) }
    }
}

impl DerefMut for Writing<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` keeps this guard's own slices apart; adopted memory never gets here.
        unsafe { std::slice::from_raw_parts_mut(self.0.start(), self.0.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_share_and_writers_do_not() {
        let buffer = CpuBuffer::alloc(64).unwrap();
        let first = buffer.read(0..32).unwrap();
        let second = buffer.read(16..64).unwrap();
        assert!(matches!(buffer.write(31..33), Err(Error::Busy { start: 31, end: 33, .. })));
        drop(first);
        assert!(buffer.write(31..33).is_err(), "the second reader still holds it");
        drop(second);
        let writer = buffer.write(31..33).unwrap();
        assert!(buffer.read(32..40).is_err());
        assert!(buffer.read(33..40).is_ok(), "ranges that only touch do not clash");
        drop(writer);
        assert!(buffer.read(0..64).is_ok());
    }

    #[test]
    fn a_range_beyond_the_memory_is_refused() {
        let buffer = CpuBuffer::alloc(8).unwrap();
        assert!(buffer.read(0..9).is_err());
        assert!(matches!(CpuBuffer::alloc(1 << 62), Err(Error::OutOfMemory { .. })));
    }

    #[test]
    fn adopted_memory_is_read_only_and_aligned() {
        let host: Vec<u8> = (0..=255).collect();
        for skip in 0..2 {
            struct Tail(Vec<u8>, usize);
            impl AsRef<[u8]> for Tail {
                fn as_ref(&self) -> &[u8] {
                    &self.0[self.1..]
                }
            }
            let buffer = CpuBuffer::adopt(Arc::new(Tail(host.clone(), skip))).unwrap();
            let bytes = buffer.read(0..buffer.len()).unwrap();
            assert_eq!(&bytes[..], &host[skip..]);
            assert!((bytes.as_ptr() as usize).is_multiple_of(ALIGNMENT));
        }
        let aligned: HostBytes = Arc::new(Aligned);
        assert!(matches!(CpuBuffer::adopt(aligned).unwrap().write(0..1), Err(Error::Device { .. })));
    }

    struct Aligned;

    impl AsRef<[u8]> for Aligned {
        fn as_ref(&self) -> &[u8] {
            #[repr(align(64))]
            struct Line([u8; 64]);
            static LINE: Line = Line([7; 64]);
            &LINE.0
        }
    }
}
