//! A block's shared memory, with what is remembered of each byte.

use super::access::fill_lanes;
use super::is_aligned;
use super::race::Races;
use super::tag::Race;
use crate::fault::{Access, FaultKind};
use crate::ir::Space;
use crate::registers::Lanes;

/// Nobody has written the byte.
const EMPTY: u8 = 0;
/// It holds a value.
const WRITTEN: u8 = 1;
/// A `cp.async` is yet to write it.
const UNDER_WAY: u8 = 2;

/// A block's shared memory.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) bytes: Vec<u8>,
    /// By byte, where reads of uninitialised bytes are looked for; empty else.
    state: Vec<u8>,
    /// Where races are looked for.
    pub(crate) races: Option<Races>,
}

impl Shared {
    pub(crate) fn new(bytes: usize, warps: usize, uninitialised: bool, races: bool) -> Shared {
        Shared {
            bytes: vec![0xff; bytes],
            state: vec![EMPTY; if uninitialised { bytes } else { 0 }],
            races: races.then(|| Races::new(bytes, warps)),
        }
    }

    /// As for a block that begins: all ones, NaN in every floating-point type.
    pub(crate) fn reset(&mut self) {
        self.bytes.fill(0xff);
        self.state.fill(EMPTY);
        if let Some(races) = &mut self.races {
            races.reset();
        }
    }

    /// Whether anything is remembered of its bytes.
    #[inline]
    pub(crate) fn is_checked(&self) -> bool {
        !self.state.is_empty() || self.races.is_some()
    }

    /// Whether the bytes exist, and the address is a multiple of `align`, a power of two.
    #[inline]
    pub(crate) fn check(
        &self,
        address: u64,
        bytes: u32,
        align: u32,
        access: Access,
    ) -> Result<(), FaultKind> {
        let size = self.bytes.len() as u64;
        if address > size || u64::from(bytes) > size - address {
            let nearest = Some((0, size));
            return Err(FaultKind::OutOfBounds { space: Space::Shared, access, address, bytes, nearest });
        }
        if !is_aligned(address, align) {
            return Err(FaultKind::Misaligned { space: Space::Shared, access, address, align });
        }
        Ok(())
    }

    /// A value of 1, 2, 4 or 8 bytes that [`Shared::check`] has let pass.
    #[inline(always)]
    pub(crate) fn load(&self, address: u64, width: u32) -> u64 {
        load(&self.bytes, address as usize, width)
    }

    /// Values of lanes, as [`Shared::load`] gives them, `offset` behind the addresses.
    #[inline]
    pub(super) fn gather(&self, lanes: u32, addresses: &Lanes, offset: u64, width: u32, into: &mut Lanes) {
        let at = |lane: usize| addresses[lane].wrapping_add(offset);
        match width {
            1 => fill_lanes(lanes, into, |lane| self.load(at(lane), 1)),
            2 => fill_lanes(lanes, into, |lane| self.load(at(lane), 2)),
            4 => fill_lanes(lanes, into, |lane| self.load(at(lane), 4)),
            _ => fill_lanes(lanes, into, |lane| self.load(at(lane), 8)),
        }
    }

    /// Writes a value of 1, 2, 4 or 8 bytes that [`Shared::check`] has let pass.
    #[inline(always)]
    pub(crate) fn store(&mut self, address: u64, width: u32, value: u64) {
        store(&mut self.bytes, address as usize, width, value);
    }

    /// What is wrong with a read, by what is remembered of the bytes.
    pub(crate) fn uninitialised(&self, address: u64, bytes: u32) -> Option<FaultKind> {
        let states = self.state.get(address as usize..address as usize + bytes as usize)?;
        // Most reads are of words.
        if states.len().is_multiple_of(4) && states.chunks_exact(4).all(|word| word == [WRITTEN; 4]) {
            return None;
        }
        let wrong = states.iter().position(|&state| state != WRITTEN)?;
        let address = address + wrong as u64;
        Some(if states[wrong] == UNDER_WAY {
            FaultKind::CopyUnderWay { access: Access::Read, address }
        } else {
            FaultKind::Uninitialised { space: Space::Shared, address }
        })
    }

    fn set(&mut self, address: u64, bytes: u32, state: u8) {
        if let Some(states) = self.state.get_mut(address as usize..address as usize + bytes as usize) {
            states.fill(state);
        }
    }

    /// Notes that bytes hold values now.
    #[inline]
    pub(crate) fn mark(&mut self, address: u64, bytes: u32) {
        self.set(address, bytes, WRITTEN);
    }

    /// Notes that a lane's `cp.async` is to write bytes.
    pub(crate) fn begin_copy(
        &mut self,
        address: u64,
        bytes: u32,
        by: (usize, usize),
        lane: usize,
    ) -> Option<Race> {
        self.set(address, bytes, UNDER_WAY);
        let races = self.races.as_mut()?;
        let tag = races.tag(by.0, by.1, false);
        races.begin_copy(address as usize, bytes as usize, tag, lane)
    }

    /// Notes that a lane's `cp.async` has written bytes.
    pub(crate) fn end_copy(&mut self, address: u64, bytes: u32, by: (usize, usize), lane: usize) {
        self.set(address, bytes, WRITTEN);
        if let Some(races) = &mut self.races {
            let tag = races.tag(by.0, by.1, false);
            races.end_copy(address as usize, bytes as usize, tag, lane);
        }
    }
}

/// A little-endian value of 1, 2, 4 or 8 bytes.
#[inline(always)]
pub(super) fn load(bytes: &[u8], at: usize, width: u32) -> u64 {
    // One look at the bounds a value.
    let bytes = &bytes[at..at + width as usize];
    match *bytes {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}

/// Writes a little-endian value of 1, 2, 4 or 8 bytes.
#[inline(always)]
pub(super) fn store(bytes: &mut [u8], at: usize, width: u32, value: u64) {
    let width = width as usize;
    bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
}
