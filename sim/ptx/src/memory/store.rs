//! `st`: values from registers to memories.

use super::access::{find, find_all};
use crate::fault::{Access, FaultKind, Problem};
use crate::ir::{Address, Order, Source, Space, Type};
use crate::registers::{LANES, Lanes, ones};
use crate::step::{Step, each};

impl Step<'_> {
    /// `st`.
    pub(crate) fn store(
        &mut self,
        space: Space,
        ty: Type,
        order: Order,
        src: &[Source],
        address: Address,
    ) -> Result<(), Box<Problem>> {
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
        let global = matches!(space, Space::Global | Space::Generic);
        let all = if global { find_all(self.launch.memory, lanes, addresses, bytes) } else { None };
        let all = all.filter(|allocation| !allocation.is_read_only());
        let mut known = None;
        for lane in each(if all.is_some() { 0 } else { lanes }) {
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
        if order != Order::Weak && global {
            self.note_global(Access::Write);
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
                        let same = self.state.shared.load(address, width) == values[lane] & ones(8 * width);
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
                    let mut known = all;
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
