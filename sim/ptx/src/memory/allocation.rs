//! An allocation of global memory.
//!
//! Blocks run on several host threads, and a kernel may race; so memory is made of atomic words, read and written without
//! order. That costs nothing a plain word would not, but where less than a word is written.

use super::access::fill_lanes;
use crate::registers::Lanes;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

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
    pub(super) fn new(
        start: u64,
        bytes: u64,
        contents: Contents,
        checked: bool,
    ) -> Result<Allocation, NoMemory> {
        let count = usize::try_from(bytes.div_ceil(4)).map_err(|_| NoMemory)?;
        let (fill, mark) = if contents == Contents::Zeros { (0, 0xf) } else { (u32::MAX, 0) };
        let words = filled(count, || AtomicU32::new(fill))?;
        let written = filled(if checked { count } else { 0 }, || AtomicU8::new(mark))?;
        Ok(Allocation { start, bytes, live_bytes: bytes, freed: false, read_only: false, words, written })
    }

    /// Kernels may only read it from now on.
    pub(super) fn protect(&mut self) {
        self.read_only = true;
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Nothing lies in it any more.
    pub(super) fn free(&mut self) {
        self.freed = true;
        self.live_bytes = 0;
        self.words = Box::default();
        self.written = Box::default();
    }

    pub(super) fn is_freed(&self) -> bool {
        self.freed
    }

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

    /// Values of lanes, as [`Allocation::load`] gives them, `offset` behind the addresses.
    #[inline]
    pub(super) fn gather(&self, lanes: u32, addresses: &Lanes, offset: u64, width: u32, into: &mut Lanes) {
        let add = offset.wrapping_sub(self.start);
        let word = |at: u64| u64::from(self.word(at / 4).load(Relaxed));
        let at = |lane: usize| addresses[lane].wrapping_add(add);
        match width {
            1 => fill_lanes(lanes, into, |lane| word(at(lane)) >> (8 * (at(lane) % 4)) & 0xff),
            2 => fill_lanes(lanes, into, |lane| word(at(lane)) >> (8 * (at(lane) % 4)) & 0xffff),
            4 => fill_lanes(lanes, into, |lane| word(at(lane))),
            _ => fill_lanes(lanes, into, |lane| word(at(lane)) | word(at(lane) + 4) << 32),
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
        if (offset | bytes).is_multiple_of(4) {
            for word in &self.written[(offset / 4) as usize..][..(bytes / 4) as usize] {
                // Most writes repeat earlier ones: those need no exclusive access to the line.
                if word.load(Relaxed) != 0xf {
                    word.store(0xf, Relaxed);
                }
            }
            return;
        }
        let mut at = offset;
        while at < offset + bytes {
            let count = (4 - at % 4).min(offset + bytes - at);
            let mask = ((1u8 << count) - 1) << (at % 4);
            let word = &self.written[(at / 4) as usize];
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
        // Most reads are of whole words.
        if (first | bytes).is_multiple_of(4) {
            let words = &self.written[(first / 4) as usize..][..(bytes / 4) as usize];
            if words.iter().all(|word| word.load(Relaxed) == 0xf) {
                return None;
            }
        }
        (first..first + bytes)
            .find(|at| self.written[(at / 4) as usize].load(Relaxed) >> (at % 4) & 1 == 0)
            .map(|at| self.start + at)
    }

    /// Copies bytes to the host.
    pub(super) fn read(&self, address: u64, out: &mut [u8]) {
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

    /// Copies bytes from the host.
    pub(super) fn write(&self, address: u64, bytes: &[u8]) {
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

    /// Writes one byte over and over.
    pub(super) fn fill(&self, address: u64, byte: u8, count: u64) {
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

/// A slice of this many values, or an error where the host has no memory.
fn filled<T>(count: usize, value: impl FnMut() -> T) -> Result<Box<[T]>, NoMemory> {
    let mut all = Vec::new();
    all.try_reserve_exact(count).map_err(|_| NoMemory)?;
    all.resize_with(count, value);
    Ok(all.into_boxed_slice())
}
