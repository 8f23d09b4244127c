//! `ld` and `st`: values between registers and memories.

use super::global::{Allocation, GlobalMemory};
use super::window;
use crate::fault::{Access, FaultKind, Problem};
use crate::ir::{Address, Base, Order, Register, Source, Space, Type};
use crate::registers::{LANES, Lanes};
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
        let shift = 64 - self.from;
        let extended = (value << shift) as i64 >> shift;
        extended as u64 & u64::MAX >> (64 - self.into.min(64))
    }
}

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

    /// `ld`.
    pub(crate) fn load(
        &mut self,
        space: Space,
        (ty, into): (Type, Type),
        order: Order,
        dst: &[Option<Register>],
        address: Address,
    ) -> Result<(), Box<Problem>> {
        if ty.bytes() > 8 {
            return Err(Problem::at(0, FaultKind::Unsupported("a load of 128-bit values".to_owned())));
        }
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
                let _guard = (order != Order::Weak && bytes == 8)
                    .then(|| self.launch.memory.lock(addresses[lanes.trailing_zeros() as usize % LANES]));
                let mut known = None;
                for lane in each(lanes) {
                    let address = addresses[lane];
                    let allocation =
                        find(self.launch.memory, &mut known, lane, address, bytes, Access::Read)?;
                    if let Some(address) = allocation.unwritten(address, u64::from(bytes)) {
                        self.state.finding(lane, FaultKind::Uninitialised { space: Space::Global, address });
                    }
                    for (index, register) in dst.iter().enumerate() {
                        let Some(register) = register else { continue };
                        let value = allocation.load(address + u64::from(width) * index as u64, width);
                        self.registers.values[register.0 as usize][lane] = extension.apply(value);
                    }
                }
            }
            Space::Shared => {
                if self.state.tally.on {
                    self.state.tally.shared(self.pc, lanes, addresses, bytes);
                }
                for lane in each(lanes) {
                    let address = addresses[lane];
                    let check = self.state.shared.check(address, bytes, bytes, Access::Read);
                    check.map_err(|kind| Problem::at(lane, kind))?;
                    for (index, register) in dst.iter().enumerate() {
                        let Some(register) = register else { continue };
                        let value = self.state.shared.load(address + u64::from(width) * index as u64, width);
                        self.registers.values[register.0 as usize][lane] = extension.apply(value);
                    }
                }
                if self.state.shared.is_checked() {
                    for lane in each(lanes) {
                        self.note_read(lane, addresses[lane], bytes, order != Order::Weak);
                    }
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

    /// A value among the parameters.
    fn param(&self, address: u64, width: u32) -> Result<u64, FaultKind> {
        let params = &self.launch.params;
        let size = params.len() as u64;
        let (access, bytes) = (Access::Read, width);
        if address > size || u64::from(width) > size - address {
            let nearest = Some((0, size));
            return Err(FaultKind::OutOfBounds { space: Space::Param, access, address, bytes, nearest });
        }
        if !address.is_multiple_of(u64::from(width)) {
            return Err(FaultKind::Misaligned { space: Space::Param, access, address, align: width });
        }
        Ok(super::shared::load(params, address as usize, width))
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
                let kernel = self.launch.kernel;
                let kind = race.fault(Access::Read, |pc| kernel.instructions.get(pc).map_or(0, |i| i.line));
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
                let kernel = self.launch.kernel;
                let kind = race.fault(access, |pc| kernel.instructions.get(pc).map_or(0, |i| i.line));
                state.finding(lane % LANES, kind);
            }
        }
    }

    /// `st`.
    pub(crate) fn store(
        &mut self,
        space: Space,
        ty: Type,
        order: Order,
        src: &[Source],
        address: Address,
    ) -> Result<(), Box<Problem>> {
        if ty.bytes() > 8 {
            return Err(Problem::at(0, FaultKind::Unsupported("a store of 128-bit values".to_owned())));
        }
        self.order(order);
        let mut addresses = self.addresses(address);
        if space == Space::Generic {
            for (space, lanes) in self.split(&mut addresses) {
                if lanes != 0 {
                    self.store_in(space, lanes, &addresses, ty.bytes(), order, src)?;
                }
            }
            Ok(())
        } else {
            self.store_in(space, self.lanes, &addresses, ty.bytes(), order, src)
        }
    }

    fn store_in(
        &mut self,
        space: Space,
        lanes: u32,
        addresses: &Lanes,
        width: u32,
        order: Order,
        src: &[Source],
    ) -> Result<(), Box<Problem>> {
        let bytes = width * src.len() as u32;
        // All lanes are looked at before the first is written.
        let mut known = None;
        for lane in each(lanes) {
            let address = addresses[lane];
            let check = match space {
                Space::Global | Space::Generic => {
                    find(self.launch.memory, &mut known, lane, address, bytes, Access::Write)?;
                    Ok(())
                }
                Space::Shared => self.state.shared.check(address, bytes, bytes, Access::Write),
                Space::Local => self.state.local.check(address, bytes, bytes, Access::Write),
                Space::Const | Space::Param => Err(FaultKind::ReadOnly { address }),
            };
            check.map_err(|kind| Problem::at(lane, kind))?;
        }
        if self.state.tally.on {
            match space {
                Space::Shared => self.state.tally.shared(self.pc, lanes, addresses, bytes),
                Space::Global => self.state.tally.global(self.pc, lanes, addresses, bytes),
                _ => {}
            }
        }
        let _guard = (space == Space::Global && order != Order::Weak && bytes == 8)
            .then(|| self.launch.memory.lock(addresses[lanes.trailing_zeros() as usize % LANES]));
        for (index, source) in src.iter().enumerate() {
            let mut scratch = [0; LANES];
            let values = self.registers.operand(*source, self.specials, &mut scratch);
            let offset = u64::from(width) * index as u64;
            match space {
                Space::Shared if self.state.shared.is_checked() => {
                    let values = *values;
                    for lane in each(lanes) {
                        let address = addresses[lane] + offset;
                        let same = self.state.shared.load(address, width) == values[lane] & mask(width);
                        self.note_write(lane, address, width, Access::Write, order != Order::Weak, same);
                        self.state.shared.store(address, width, values[lane]);
                    }
                }
                Space::Shared => {
                    for lane in each(lanes) {
                        self.state.shared.store(addresses[lane] + offset, width, values[lane]);
                    }
                }
                Space::Local => {
                    for lane in each(lanes) {
                        let thread = self.warp * LANES + lane;
                        self.state.local.store(thread, addresses[lane] + offset, width, values[lane]);
                    }
                }
                _ => {
                    let values = *values;
                    let mut known = None;
                    for lane in each(lanes) {
                        let address = addresses[lane] + offset;
                        let allocation =
                            find(self.launch.memory, &mut known, lane, address, width, Access::Write)?;
                        allocation.store(address, width, values[lane]);
                    }
                }
            }
        }
        Ok(())
    }
}

/// All bits of a value of this many bytes.
pub(super) fn mask(width: u32) -> u64 {
    u64::MAX >> (64 - 8 * width.clamp(1, 8))
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
