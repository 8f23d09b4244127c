//! `ld`: values from memories to registers.

use super::access::{find, find_all};
use super::allocation::Allocation;
use super::is_aligned;
use crate::fault::{Access, FaultKind, Problem};
use crate::ir::{Address, Order, Register, Space, Type};
use crate::registers::{LANES, Lanes, ones, sign_extended};
use crate::step::{Step, each};

/// A load's or store's values: their type, and what becomes of them in a register.
#[derive(Clone, Copy)]
struct Extension {
    signed: bool,
    from: u32,
    into: u32,
}

impl Extension {
    #[inline]
    fn apply(self, value: u64) -> u64 {
        if !self.signed || self.from >= self.into {
            return value;
        }
        sign_extended(value, self.from) as u64 & ones(self.into)
    }

    #[inline]
    fn apply_all(self, lanes: u32, values: &mut Lanes) {
        if self.signed && self.from < self.into {
            each(lanes).for_each(|lane| values[lane] = self.apply(values[lane]));
        }
    }
}

impl Step<'_> {
    /// `ld`.
    pub(crate) fn load(
        &mut self,
        space: Space,
        (ty, into): (Type, Type),
        order: Order,
        dst: &[Option<Register>],
        address: Address,
    ) -> Result<(), Box<Problem>> {
        let extension = Extension { signed: ty.is_signed(), from: ty.bits(), into: into.bits() };
        let mut addresses = self.addresses(address);
        if space == Space::Generic {
            for (space, lanes) in self.split(&mut addresses) {
                if lanes != 0 {
                    self.load_in(space, lanes, &addresses, ty.bytes(), extension, order, dst)?;
                }
            }
        } else {
            self.load_in(space, self.lanes, &addresses, ty.bytes(), extension, order, dst)?;
        }
        self.order(order);
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "what a load is made of")]
    fn load_in(
        &mut self,
        space: Space,
        lanes: u32,
        addresses: &Lanes,
        width: u32,
        extension: Extension,
        order: Order,
        dst: &[Option<Register>],
    ) -> Result<(), Box<Problem>> {
        let bytes = width * dst.len() as u32;
        match space {
            Space::Global | Space::Const | Space::Generic => {
                if self.state.tally.on && space == Space::Global {
                    self.state.tally.global(self.pc, lanes, addresses, bytes);
                }
                if order != Order::Weak {
                    self.note_global(Access::Read);
                }
                let _guard = (order != Order::Weak && bytes == 8)
                    .then(|| self.launch.memory.lock(addresses[lanes.trailing_zeros() as usize % LANES]));
                if let Some(allocation) = find_all(self.launch.memory, lanes, addresses, bytes) {
                    self.load_global(allocation, lanes, addresses, width, extension, dst);
                    return Ok(());
                }
                // Lane by lane, to the one whose bytes are not there.
                let mut known = None;
                for lane in each(lanes) {
                    let address = addresses[lane];
                    let allocation =
                        find(self.launch.memory, &mut known, lane, address, bytes, Access::Read)?;
                    self.load_global(allocation, 1 << lane, addresses, width, extension, dst);
                }
            }
            Space::Shared => {
                if self.state.tally.on {
                    self.state.tally.shared(self.pc, lanes, addresses, bytes);
                }
                for lane in each(lanes) {
                    let check = self.state.shared.check(addresses[lane], bytes, bytes, Access::Read);
                    check.map_err(|kind| Problem::at(lane, kind))?;
                }
                for (index, register) in dst.iter().enumerate() {
                    let Some(register) = register else { continue };
                    let values = &mut self.registers.values[register.0 as usize];
                    let offset = u64::from(width) * index as u64;
                    self.state.shared.gather(lanes, addresses, offset, width, values);
                    extension.apply_all(lanes, values);
                }
                if self.state.shared.is_checked() {
                    self.note_reads(lanes, addresses, bytes, order != Order::Weak);
                }
            }
            Space::Local => {
                for lane in each(lanes) {
                    let address = addresses[lane];
                    let thread = self.warp * LANES + lane;
                    let check = self.state.local.check(address, bytes, bytes, Access::Read);
                    check.map_err(|kind| Problem::at(lane, kind))?;
                    if let Some(address) = self.state.local.unwritten(thread, address, bytes) {
                        self.state.finding(lane, FaultKind::Uninitialised { space: Space::Local, address });
                    }
                    for (index, register) in dst.iter().enumerate() {
                        let Some(register) = register else { continue };
                        let value =
                            self.state.local.load(thread, address + u64::from(width) * index as u64, width);
                        self.registers.values[register.0 as usize][lane] = extension.apply(value);
                    }
                }
            }
            Space::Param => {
                // Most often all lanes read the same.
                let first = addresses[lanes.trailing_zeros() as usize % LANES];
                if addresses.iter().all(|&address| address == first) {
                    for (index, register) in dst.iter().enumerate() {
                        let Some(register) = register else { continue };
                        let address = first.wrapping_add(u64::from(width) * index as u64);
                        let lane = lanes.trailing_zeros() as usize % LANES;
                        let value = self.param(address, width).map_err(|kind| Problem::at(lane, kind))?;
                        self.registers.write(*register, lanes, &[extension.apply(value); LANES]);
                    }
                    return Ok(());
                }
                for lane in each(lanes) {
                    let address = addresses[lane];
                    for (index, register) in dst.iter().enumerate() {
                        let Some(register) = register else { continue };
                        let address = address.wrapping_add(u64::from(width) * index as u64);
                        let value = self.param(address, width).map_err(|kind| Problem::at(lane, kind))?;
                        self.registers.values[register.0 as usize][lane] = extension.apply(value);
                    }
                }
            }
        }
        Ok(())
    }

    /// Values of lanes whose bytes lie in the allocation.
    #[inline]
    fn load_global(
        &mut self,
        allocation: &Allocation,
        lanes: u32,
        addresses: &Lanes,
        width: u32,
        extension: Extension,
        dst: &[Option<Register>],
    ) {
        let bytes = u64::from(width) * dst.len() as u64;
        let unwritten = |lane| Some((lane, allocation.unwritten(addresses[lane], bytes)?));
        if let Some((lane, address)) = each(lanes).find_map(unwritten) {
            self.state.finding(lane, FaultKind::Uninitialised { space: Space::Global, address });
        }
        for (index, register) in dst.iter().enumerate() {
            let Some(register) = register else { continue };
            let values = &mut self.registers.values[register.0 as usize];
            allocation.gather(lanes, addresses, u64::from(width) * index as u64, width, values);
            extension.apply_all(lanes, values);
        }
    }

    /// A value among the parameters.
    fn param(&self, address: u64, width: u32) -> Result<u64, FaultKind> {
        let params = &self.launch.params;
        let size = params.len() as u64;
        let (access, bytes) = (Access::Read, width);
        if address > size || u64::from(width) > size - address {
            let nearest = Some((0, size));
            return Err(FaultKind::OutOfBounds { space: Space::Param, access, address, bytes, nearest });
        }
        if !is_aligned(address, width) {
            return Err(FaultKind::Misaligned { space: Space::Param, access, address, align: width });
        }
        Ok(super::shared::load(params, address as usize, width))
    }
}
