//! Global memory: a table of allocations, each alone in its range of addresses.
//!
//! Blocks run on several host threads, and a kernel may race; so memory is made of atomic words, read and written without
//! order. That costs nothing a plain word would not, but where less than a word is written.

use super::window::{GLOBAL, SLOT_BITS, SLOT_START};
use crate::fault::{Access, FaultKind};
use crate::ir::Space;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Host memory for an allocation could not be had.
#[derive(Debug)]
pub(crate) struct NoMemory;

/// What an allocation holds at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Nothing: to read it is a fault, where that is checked. All bits are ones: NaN in every floating-point type.
    Uninitialised,
    /// Zeros, which may be read.
    Zeros,
}

/// A range of global memory that is, or was, somebody's.
#[derive(Debug)]
pub(crate) struct Allocation {
    /// The first byte's address.
    pub(crate) start: u64,
    /// Its size in bytes.
    pub(crate) bytes: u64,
    /// 0 once it is freed: no access fits then.
    live_bytes: u64,
    freed: bool,
    read_only: bool,
    words: Box<[AtomicU32]>,
    /// A bit a byte of each word, where reads of uninitialised bytes are looked for.
    written: Box<[AtomicU8]>,
}

impl Allocation {
    /// Whether the bytes lie in it.
    #[inline]
    pub(crate) fn holds(&self, address: u64, bytes: u64) -> bool {
        let offset = address.wrapping_sub(self.start);
        offset < self.live_bytes && bytes <= self.live_bytes - offset
    }

    #[inline]
    fn word(&self, index: u64) -> &AtomicU32 {
        &self.words[index as usize]
    }

    /// A value of 1, 2, 4 or 8 bytes, at a multiple of its size.
    #[inline(always)]
    pub(crate) fn load(&self, address: u64, width: u32) -> u64 {
        let offset = address - self.start;
        let low = u64::from(self.word(offset / 4).load(Relaxed));
        match width {
            1 => low >> (8 * (offset % 4)) & 0xff,
            2 => low >> (8 * (offset % 4)) & 0xffff,
            4 => low,
            _ => low | u64::from(self.word(offset / 4 + 1).load(Relaxed)) << 32,
        }
    }

    /// Writes a value of 1, 2, 4 or 8 bytes, at a multiple of its size.
    #[inline(always)]
    pub(crate) fn store(&self, address: u64, width: u32, value: u64) {
        let offset = address - self.start;
        match width {
            1 | 2 => {
                let shift = 8 * (offset % 4) as u32;
                let mask = (if width == 1 { 0xffu32 } else { 0xffff }) << shift;
                self.change(address, |old| old & !mask | (value as u32) << shift & mask);
            }
            4 => self.word(offset / 4).store(value as u32, Relaxed),
            _ => {
                self.word(offset / 4).store(value as u32, Relaxed);
                self.word(offset / 4 + 1).store((value >> 32) as u32, Relaxed);
            }
        }
        if !self.written.is_empty() {
            self.mark(offset, u64::from(width));
        }
    }

    /// Changes the word that an address lies in, atomically, and tells what it was.
    pub(crate) fn change(&self, address: u64, new: impl Fn(u32) -> u32) -> u32 {
        let word = self.word((address - self.start) / 4);
        let mut old = word.load(Relaxed);
        loop {
            match word.compare_exchange_weak(old, new(old), Relaxed, Relaxed) {
                Ok(_) => return old,
                Err(now) => old = now,
            }
        }
    }

    /// Notes that bytes have been written, where that is looked at.
    pub(crate) fn mark(&self, offset: u64, bytes: u64) {
        if self.written.is_empty() {
            return;
        }
        let mut at = offset;
        while at < offset + bytes {
            let count = (4 - at % 4).min(offset + bytes - at);
            let mask = ((1u8 << count) - 1) << (at % 4);
            let word = &self.written[(at / 4) as usize];
            // Most writes repeat earlier ones: those need no exclusive access to the line.
            if word.load(Relaxed) & mask != mask {
                word.fetch_or(mask, Relaxed);
            }
            at += count;
        }
    }

    /// The first of the bytes that nobody has written.
    #[inline]
    pub(crate) fn unwritten(&self, address: u64, bytes: u64) -> Option<u64> {
        if self.written.is_empty() {
            return None;
        }
        let first = address - self.start;
        (first..first + bytes)
            .find(|at| self.written[(at / 4) as usize].load(Relaxed) >> (at % 4) & 1 == 0)
            .map(|at| self.start + at)
    }

    fn read(&self, address: u64, out: &mut [u8]) {
        let first = address - self.start;
        let mut rest = out;
        let mut at = first;
        while !rest.is_empty() {
            let word = self.word(at / 4).load(Relaxed).to_le_bytes();
            let (_, part) = word.split_at((at % 4) as usize);
            let count = part.len().min(rest.len());
            let (now, later) = rest.split_at_mut(count);
            now.copy_from_slice(&part[..count]);
            rest = later;
            at += count as u64;
        }
    }

    fn write(&self, address: u64, bytes: &[u8]) {
        let mut rest = bytes;
        let mut at = address;
        while !rest.is_empty() {
            let inside = ((at - self.start) % 4) as usize;
            let count = (4 - inside).min(rest.len());
            let (now, later) = rest.split_at(count);
            if let Ok(word) = <[u8; 4]>::try_from(now) {
                self.word((at - self.start) / 4).store(u32::from_le_bytes(word), Relaxed);
            } else {
                self.change(at, |old| {
                    let mut word = old.to_le_bytes();
                    word[inside..inside + count].copy_from_slice(now);
                    u32::from_le_bytes(word)
                });
            }
            rest = later;
            at += count as u64;
        }
        self.mark(address - self.start, bytes.len() as u64);
    }

    fn fill(&self, address: u64, byte: u8, count: u64) {
        let mut at = address;
        let word = u32::from_le_bytes([byte; 4]);
        while at < address + count {
            if (at - self.start).is_multiple_of(4) && address + count - at >= 4 {
                self.word((at - self.start) / 4).store(word, Relaxed);
                at += 4;
            } else {
                self.write(at, &[byte]);
                at += 1;
            }
        }
        self.mark(address - self.start, count);
    }
}

/// All allocations that were ever made.
#[derive(Debug)]
pub(crate) struct GlobalMemory {
    allocations: Vec<Allocation>,
    /// The allocation of each slot.
    slots: Vec<u32>,
    /// Atomic operations on 64 bits take the lock of their address.
    locks: [Mutex<()>; 16],
    /// Whether reads of uninitialised bytes are looked for.
    checked: bool,
}

impl GlobalMemory {
    pub(crate) fn new(checked: bool) -> GlobalMemory {
        GlobalMemory { allocations: Vec::new(), slots: Vec::new(), locks: Default::default(), checked }
    }

    /// A new range, whose address nobody has had before.
    pub(crate) fn allocate(&mut self, bytes: u64, contents: Contents) -> Result<u64, NoMemory> {
        let start = GLOBAL + ((self.slots.len() as u64) << SLOT_BITS) + SLOT_START;
        let words = usize::try_from(bytes.div_ceil(4)).map_err(|_| NoMemory)?;
        let fill = if contents == Contents::Zeros { 0 } else { u32::MAX };
        let atomics = filled(words, || AtomicU32::new(fill))?;
        let mark = if contents == Contents::Zeros { 0xf } else { 0 };
        let written = filled(if self.checked { words } else { 0 }, || AtomicU8::new(mark))?;
        let slots = (SLOT_START + bytes).div_ceil(1 << SLOT_BITS).max(1);
        let index = self.allocations.len() as u32;
        self.slots.extend((0..slots).map(|_| index));
        self.allocations.push(Allocation {
            start,
            bytes,
            live_bytes: bytes,
            freed: false,
            read_only: false,
            words: atomics,
            written,
        });
        Ok(start)
    }

    /// Kernels may only read it from now on.
    pub(crate) fn protect(&mut self, start: u64) {
        if let Some(index) = self.index(start) {
            self.allocations[index].read_only = true;
        }
    }

    /// Whether kernels may only read what lies at the address.
    pub(crate) fn is_read_only(&self, address: u64) -> bool {
        self.index(address).is_some_and(|index| self.allocations[index].read_only)
    }

    /// Frees what begins at the address; false where nothing does.
    pub(crate) fn free(&mut self, start: u64) -> bool {
        let Some(allocation) = self.index(start).map(|index| &mut self.allocations[index]) else {
            return false;
        };
        if allocation.start != start || allocation.freed {
            return false;
        }
        allocation.freed = true;
        allocation.live_bytes = 0;
        allocation.words = Box::default();
        allocation.written = Box::default();
        true
    }

    fn index(&self, address: u64) -> Option<usize> {
        let slot = address.checked_sub(GLOBAL)? >> SLOT_BITS;
        self.slots.get(usize::try_from(slot).ok()?).map(|&index| index as usize)
    }

    /// The allocation that the bytes lie in, for a kernel.
    pub(crate) fn find(&self, address: u64, bytes: u32, access: Access) -> Result<&Allocation, FaultKind> {
        let allocation = self.index(address).map(|index| &self.allocations[index]);
        match allocation {
            Some(a) if a.holds(address, u64::from(bytes)) => {
                if a.read_only && access != Access::Read {
                    return Err(FaultKind::ReadOnly { address });
                }
                Ok(a)
            }
            Some(a) if a.freed => Err(FaultKind::Freed { access, address, allocation: (a.start, a.bytes) }),
            _ => {
                let nearest = allocation.map(|a| (a.start, a.bytes));
                Err(FaultKind::OutOfBounds { space: Space::Global, access, address, bytes, nearest })
            }
        }
    }

    /// The allocation that the bytes lie in, for the host.
    fn host(&self, address: u64, bytes: u64) -> Option<&Allocation> {
        let allocation = self.index(address).map(|index| &self.allocations[index])?;
        allocation.holds(address, bytes).then_some(allocation)
    }

    /// Copies to the host; false where the bytes lie in no allocation.
    pub(crate) fn read(&self, address: u64, out: &mut [u8]) -> bool {
        out.is_empty() || self.host(address, out.len() as u64).map(|a| a.read(address, out)).is_some()
    }

    /// Copies from the host; false where the bytes lie in no allocation.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> bool {
        bytes.is_empty() || self.host(address, bytes.len() as u64).map(|a| a.write(address, bytes)).is_some()
    }

    /// Writes one byte over and over; false where the bytes lie in no allocation.
    pub(crate) fn fill(&self, address: u64, byte: u8, count: u64) -> bool {
        count == 0 || self.host(address, count).map(|a| a.fill(address, byte, count)).is_some()
    }

    /// Held while the 8 bytes at the address are changed in more than one step.
    pub(crate) fn lock(&self, address: u64) -> MutexGuard<'_, ()> {
        self.locks[(address / 8 % 16) as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A slice of this many values, or an error where the host has no memory.
fn filled<T>(count: usize, value: impl FnMut() -> T) -> Result<Box<[T]>, NoMemory> {
    let mut all = Vec::new();
    all.try_reserve_exact(count).map_err(|_| NoMemory)?;
    all.resize_with(count, value);
    Ok(all.into_boxed_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_next_to_an_allocation_is_nobodys() {
        let mut memory = GlobalMemory::new(false);
        let first = memory.allocate(10, Contents::Zeros).unwrap();
        let second = memory.allocate(10, Contents::Zeros).unwrap();
        assert!(memory.find(first + 6, 4, Access::Read).is_ok());
        for (address, nearest) in [(first + 7, first), (first - 4, first), (second - 4, second)] {
            let fault = memory.find(address, 4, Access::Write).unwrap_err();
            let expected = FaultKind::OutOfBounds {
                space: Space::Global,
                access: Access::Write,
                address,
                bytes: 4,
                nearest: Some((nearest, 10)),
            };
            assert_eq!(fault, expected);
        }
        assert!(matches!(memory.find(0, 4, Access::Read), Err(FaultKind::OutOfBounds { nearest: None, .. })));
    }

    #[test]
    fn freed_addresses_never_come_back() {
        let mut memory = GlobalMemory::new(true);
        let first = memory.allocate(16, Contents::Zeros).unwrap();
        assert!(memory.free(first));
        assert!(!memory.free(first));
        assert!(!memory.free(first + 4));
        assert_ne!(memory.allocate(16, Contents::Zeros).unwrap(), first);
        assert!(matches!(memory.find(first, 4, Access::Read), Err(FaultKind::Freed { .. })));
    }

    #[test]
    fn bytes_are_written_one_by_one() {
        let mut memory = GlobalMemory::new(true);
        let start = memory.allocate(16, Contents::Uninitialised).unwrap();
        assert!(memory.write(start + 1, &[1, 2, 3, 4, 5, 6]));
        let allocation = memory.find(start, 16, Access::Read).unwrap();
        assert_eq!(allocation.unwritten(start, 16), Some(start));
        assert_eq!(allocation.unwritten(start + 1, 6), None);
        assert_eq!(allocation.unwritten(start + 1, 8), Some(start + 7));
        assert_eq!(allocation.load(start + 4, 4), 0xff06_0504);
        allocation.store(start + 2, 2, 0xabcd);
        allocation.store(start + 8, 8, 0x1122_3344_5566_7788);
        let mut out = [0; 15];
        assert!(memory.read(start + 1, &mut out));
        assert_eq!(out, [1, 0xcd, 0xab, 4, 5, 6, 0xff, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
        assert!(!memory.read(start + 2, &mut out));
        assert!(memory.fill(start + 3, 7, 6));
        assert!(memory.read(start + 1, &mut out));
        assert_eq!(out[..10], [1, 0xcd, 7, 7, 7, 7, 7, 7, 0x77, 0x66]);
    }
}
