//! What all accesses have in common: addresses, allocations, and notes of what was touched.

use super::allocation::Allocation;
use super::global::GlobalMemory;
use super::{is_aligned, window};
use crate::fault::{Access, FaultKind, Problem};
use crate::ir::{Address, Base, Order, Space};
use crate::registers::{LANES, Lanes};
use crate::step::{Step, each};

impl Step<'_> {
    /// The addresses that an operand means, by lane.
    #[inline]
    pub(crate) fn addresses(&self, address: Address) -> Lanes {
        let offset = address.offset as u64;
        match address.base {
            Base::Register(register) => {
                let mut addresses = *self.registers.get(register);
                for address in &mut addresses {
                    *address = address.wrapping_add(offset);
                }
                addresses
            }
            Base::Space => [offset; LANES],
            Base::Variable(index) => {
                let start = self.launch.variables.get(index as usize).copied().unwrap_or(0);
                [start.wrapping_add(offset); LANES]
            }
        }
    }

    /// Generic addresses, made addresses of the memories that they mean, with the lanes of each.
    pub(crate) fn split(&self, addresses: &mut Lanes) -> [(Space, u32); 4] {
        let mut parts = [(Space::Global, 0), (Space::Shared, 0), (Space::Local, 0), (Space::Param, 0)];
        for lane in each(self.lanes) {
            let (space, address) = window::resolve(addresses[lane]);
            addresses[lane] = address;
            for (known, lanes) in &mut parts {
                if *known == space {
                    *lanes |= 1 << lane;
                }
            }
        }
        parts
    }

    /// An access with an order publishes or learns what fences do.
    pub(crate) fn order(&mut self, order: Order) {
        let orders = matches!(order, Order::Acquire | Order::Release | Order::AcquireRelease);
        if let Some(races) = self.state.shared.races.as_mut().filter(|_| orders) {
            races.fence(self.warp);
        }
    }

    /// A strong access of global memory; one place stands for all of it.
    pub(super) fn note_global(&mut self, access: Access) {
        if let Some(races) = &mut self.state.shared.races {
            if access != Access::Write {
                races.observe(self.warp, u64::MAX);
            }
            if access != Access::Read {
                races.publish(self.warp, u64::MAX);
            }
        }
    }

    /// Looks at what is remembered of shared bytes that lanes read.
    pub(super) fn note_reads(&mut self, lanes: u32, addresses: &Lanes, bytes: u32, ordered: bool) {
        // How many lanes in a row have read the same, and whether one more would change nothing.
        let (mut previous, mut repeats, mut alike) = (u64::MAX, 0, false);
        for lane in each(lanes) {
            let address = addresses[lane];
            if address != previous {
                (previous, repeats, alike) = (address, 0, false);
            }
            repeats += 1;
            if repeats == 3
                && let Some(races) = &mut self.state.shared.races
            {
                alike = races.reads_alike(address as usize, bytes as usize, self.warp);
            }
            if !alike {
                self.note_read(lane, address, bytes, ordered);
            }
        }
    }

    /// Looks at what is remembered of shared bytes that a lane reads.
    #[inline]
    pub(super) fn note_read(&mut self, lane: usize, address: u64, bytes: u32, ordered: bool) {
        let state = &mut *self.state;
        if let Some(kind) = state.shared.uninitialised(address, bytes) {
            state.finding(lane % LANES, kind);
            return;
        }
        if let Some(races) = &mut state.shared.races {
            if ordered {
                races.observe(self.warp, place(address));
            }
            let tag = races.tag(self.warp, self.pc, ordered);
            if let Some(race) = races.read(address as usize, bytes as usize, tag, lane) {
                let kind = race.fault(Access::Read, |pc| self.launch.kernel.line(pc));
                state.finding(lane % LANES, kind);
            }
        }
    }

    /// Looks at what is remembered of shared bytes that a lane is about to write.
    #[inline]
    pub(super) fn note_write(
        &mut self,
        lane: usize,
        address: u64,
        bytes: u32,
        access: Access,
        ordered: bool,
        same: bool,
    ) {
        let state = &mut *self.state;
        state.shared.mark(address, bytes);
        if let Some(races) = &mut state.shared.races {
            if ordered {
                if access == Access::Atomic {
                    races.observe(self.warp, place(address));
                }
                races.publish(self.warp, place(address));
            }
            let tag = races.tag(self.warp, self.pc, ordered);
            if let Some(race) = races.write(address as usize, bytes as usize, tag, lane, same) {
                let kind = race.fault(access, |pc| self.launch.kernel.line(pc));
                state.finding(lane % LANES, kind);
            }
        }
    }
}

/// Where strong accesses of shared memory meet, of whatever width: its words of 8 bytes.
fn place(address: u64) -> u64 {
    address / 8
}

/// The allocation that a lane's bytes lie in, most often the one of the lane before. They begin at a multiple of their
/// number, a power of two.
#[inline]
pub(super) fn find<'m>(
    memory: &'m GlobalMemory,
    known: &mut Option<&'m Allocation>,
    lane: usize,
    address: u64,
    bytes: u32,
    access: Access,
) -> Result<&'m Allocation, Box<Problem>> {
    let allocation = match *known {
        Some(allocation) if allocation.holds(address, u64::from(bytes)) => allocation,
        _ => memory.find(address, bytes, access).map_err(|kind| Problem::at(lane, kind))?,
    };
    *known = Some(allocation);
    if !is_aligned(address, bytes) {
        let kind = FaultKind::Misaligned { space: Space::Global, access, address, align: bytes };
        return Err(Problem::at(lane, kind));
    }
    Ok(allocation)
}

/// The allocation that the bytes of all lanes lie in, if it is one and they begin at multiples of their number, a power of
/// two.
#[inline]
pub(super) fn find_all<'m>(
    memory: &'m GlobalMemory,
    lanes: u32,
    addresses: &Lanes,
    bytes: u32,
) -> Option<&'m Allocation> {
    let allocation = memory.at(addresses[lanes.trailing_zeros() as usize % LANES])?;
    let (mut last, mut bits) = (0, 0);
    let mut look = |address: u64| {
        last = last.max(address.wrapping_sub(allocation.start));
        bits |= address;
    };
    if lanes == u32::MAX {
        addresses.iter().for_each(|&address| look(address));
    } else {
        each(lanes).for_each(|lane| look(addresses[lane]));
    }
    let fits = allocation.holds(allocation.start.wrapping_add(last), u64::from(bytes));
    (fits && is_aligned(bits, bytes)).then_some(allocation)
}

/// Makes a value for each lane of the mask.
#[inline(always)]
pub(super) fn fill_lanes(lanes: u32, into: &mut Lanes, value: impl Fn(usize) -> u64) {
    if lanes == u32::MAX {
        for (lane, into) in into.iter_mut().enumerate() {
            *into = value(lane);
        }
    } else {
        for lane in each(lanes) {
            into[lane] = value(lane);
        }
    }
}
