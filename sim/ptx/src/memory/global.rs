//! Global memory: a table of allocations, each alone in its range of addresses.

use super::allocation::{Allocation, Contents, NoMemory};
use super::window::{GLOBAL, SLOT_BITS, SLOT_START};
use crate::fault::{Access, FaultKind};
use crate::ir::Space;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
        let allocation = Allocation::new(start, bytes, contents, self.checked)?;
        let slots = (SLOT_START + bytes).div_ceil(1 << SLOT_BITS).max(1);
        let index = self.allocations.len() as u32;
        self.slots.extend((0..slots).map(|_| index));
        self.allocations.push(allocation);
        Ok(start)
    }

    /// Kernels may only read it from now on.
    pub(crate) fn protect(&mut self, start: u64) {
        if let Some(index) = self.index(start) {
            self.allocations[index].protect();
        }
    }

    /// Whether kernels may only read what lies at the address.
    pub(crate) fn is_read_only(&self, address: u64) -> bool {
        self.index(address).is_some_and(|index| self.allocations[index].is_read_only())
    }

    /// Frees what begins at the address; false where nothing does.
    pub(crate) fn free(&mut self, start: u64) -> bool {
        let Some(allocation) = self.index(start).map(|index| &mut self.allocations[index]) else {
            return false;
        };
        if allocation.start != start || allocation.is_freed() {
            return false;
        }
        allocation.free();
        true
    }

    fn index(&self, address: u64) -> Option<usize> {
        let slot = address.checked_sub(GLOBAL)? >> SLOT_BITS;
        self.slots.get(usize::try_from(slot).ok()?).map(|&index| index as usize)
    }

    /// The allocation that has the address, which need not lie in it.
    pub(super) fn at(&self, address: u64) -> Option<&Allocation> {
        self.index(address).map(|index| &self.allocations[index])
    }

    /// The allocation that the bytes lie in, for a kernel.
    pub(crate) fn find(&self, address: u64, bytes: u32, access: Access) -> Result<&Allocation, FaultKind> {
        let allocation = self.at(address);
        match allocation {
            Some(a) if a.holds(address, u64::from(bytes)) => {
                if a.is_read_only() && access != Access::Read {
                    return Err(FaultKind::ReadOnly { address });
                }
                Ok(a)
            }
            Some(a) if a.is_freed() => {
                Err(FaultKind::Freed { access, address, allocation: (a.start, a.bytes) })
            }
            _ => {
                let nearest = allocation.map(|a| (a.start, a.bytes));
                Err(FaultKind::OutOfBounds { space: Space::Global, access, address, bytes, nearest })
            }
        }
    }

    /// The allocation that the bytes lie in, for the host.
    fn host(&self, address: u64, bytes: u64) -> Option<&Allocation> {
        let allocation = self.at(address)?;
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
