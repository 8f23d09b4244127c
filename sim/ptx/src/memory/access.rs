//! What all accesses have in common: addresses, allocations, and notes of what was touched.

use super::allocation::Allocation;
use super::global::GlobalMemory;
use super::window;
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

    /// Looks at what is remembered of shared bytes that a lane reads.
    #[inline]
    pub(super) fn note_read(&mut self, lane: usize, address: u64, bytes: u32, ordered: bool) {
        let state = &mut *self.state;
        if let Some(kind) = state.shared.uninitialised(address, bytes) {
            state.finding(lane % LANES, kind);
            return;
        }
        if let Some(races) = &mut state.shared.races {
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
            let tag = races.tag(self.warp, self.pc, ordered);
            if let Some(race) = races.write(address as usize, bytes as usize, tag, lane, same) {
                let kind = race.fault(access, |pc| self.launch.kernel.line(pc));
                state.finding(lane % LANES, kind);
            }
        }
    }
}

/// The allocation that a lane's bytes lie in, most often the one of the lane before. They begin at a multiple of their
/// number.
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
    if !address.is_multiple_of(u64::from(bytes)) {
        let kind = FaultKind::Misaligned { space: Space::Global, access, address, align: bytes };
        return Err(Problem::at(lane, kind));
    }
    Ok(allocation)
}
