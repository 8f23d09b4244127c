//! `mbarrier`: barriers that are objects in shared memory.
//!
//! The object's 8 bytes, which PTX leaves open: the arrivals that a phase expects (20 bits), those that are still missing (20),
//! the number of the phase (24). A phase's state is the object as an arrival found it.

use super::window::in_shared;
use crate::fault::{Access, FaultKind, Problem};
use crate::ir::{Address, Mbarrier};
use crate::registers::LANES;
use crate::step::{Flow, Step, each};

const BYTES: u32 = 8;
const COUNT: u64 = (1 << 20) - 1;

/// The object, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Object {
    expected: u64,
    missing: u64,
    phase: u64,
}

impl Object {
    fn unpack(bits: u64) -> Object {
        Object { expected: bits & COUNT, missing: bits >> 20 & COUNT, phase: bits >> 40 }
    }

    fn pack(self) -> u64 {
        self.expected | self.missing << 20 | (self.phase & 0xff_ffff) << 40
    }

    /// `count` threads arrive; `drop`: and are not expected in later phases. False where fewer are missing.
    fn arrive(&mut self, count: u64, drop: bool) -> bool {
        if count == 0 || count > self.missing || drop && count > self.expected {
            return false;
        }
        self.missing -= count;
        if drop {
            self.expected -= count;
        }
        if self.missing == 0 {
            self.phase += 1;
            self.missing = self.expected;
        }
        true
    }
}

impl Step<'_> {
    /// The address of the object in shared memory, where it lies there.
    fn object_address(&self, lane: usize, address: u64) -> Result<u64, Box<Problem>> {
        let address = in_shared(address);
        let check = self.state.shared.check(address, BYTES, BYTES, Access::Atomic);
        check.map_err(|kind| Problem::at(lane, kind))?;
        Ok(address)
    }

    fn object(&self, lane: usize, address: u64) -> Result<Object, Box<Problem>> {
        let bits = self.state.shared.load(address, BYTES);
        let object = Object::unpack(bits);
        let written = self.state.shared.uninitialised(address, BYTES).is_none();
        if bits == u64::MAX || object.missing == 0 || !written {
            let problem = "it was not initialised";
            return Err(Problem::at(lane, FaultKind::Mbarrier { address, problem }));
        }
        Ok(object)
    }

    fn put(&mut self, address: u64, object: Object) {
        self.state.shared.store(address, BYTES, object.pack());
    }

    fn arrive(&mut self, lane: usize, address: u64, count: u64, drop: bool) -> Result<u64, Box<Problem>> {
        let address = self.object_address(lane, address)?;
        let mut object = self.object(lane, address)?;
        let state = object.pack();
        if !object.arrive(count, drop) {
            let problem = "more threads arrive than it expects";
            return Err(Problem::at(lane, FaultKind::Mbarrier { address, problem }));
        }
        if self.state.shared.is_checked() {
            // Not as a write: that the object was initialised must be known to all, not to the first alone.
            self.note_read(lane, address, BYTES, true);
        }
        self.put(address, object);
        self.state.progress = true;
        if let Some(races) = &mut self.state.shared.races {
            races.arrive_at(self.warp, address);
        }
        Ok(state)
    }

    /// `cp.async.mbarrier.arrive`: arrives when the thread's copies have, which is at once. Without `.noinc` the arrival is
    /// one that is added to the expected ones first, so nothing remains of it.
    pub(crate) fn copy_async_arrive(
        &mut self,
        barrier: Address,
        no_increment: bool,
    ) -> Result<(), Box<Problem>> {
        self.copies.wait(self.lanes, None, self.warp, self.launch.memory, self.state);
        if no_increment {
            let addresses = self.addresses(barrier);
            for lane in each(self.lanes) {
                self.arrive(lane, addresses[lane], 1, false)?;
            }
        }
        Ok(())
    }

    /// One of `mbarrier.*`.
    pub(crate) fn mbarrier(&mut self, op: &Mbarrier) -> Result<Flow, Box<Problem>> {
        match *op {
            Mbarrier::Initialize { barrier, count } => {
                let addresses = self.addresses(barrier);
                let counts = self.registers.read(count, self.specials);
                for lane in each(self.lanes) {
                    let address = self.object_address(lane, addresses[lane])?;
                    let expected = counts[lane];
                    if expected == 0 || expected > COUNT {
                        let problem = "its count is not 1 to 2^20 - 1";
                        return Err(Problem::at(lane, FaultKind::Mbarrier { address, problem }));
                    }
                    if self.state.shared.is_checked() {
                        // Like a plain write: who uses the object must know that it is there.
                        self.note_write(lane, address, BYTES, Access::Write, false, false);
                    }
                    self.put(address, Object { expected, missing: expected, phase: 0 });
                }
            }
            Mbarrier::Invalidate { barrier } => {
                let addresses = self.addresses(barrier);
                for lane in each(self.lanes) {
                    let address = self.object_address(lane, addresses[lane])?;
                    self.object(lane, address)?;
                    if self.state.shared.is_checked() {
                        self.note_write(lane, address, BYTES, Access::Write, false, false);
                    }
                    self.state.shared.store(address, BYTES, 0);
                }
            }
            Mbarrier::Arrive { barrier, state, count, drop } => {
                let addresses = self.addresses(barrier);
                let counts = count.map_or([1; LANES], |count| self.registers.read(count, self.specials));
                for lane in each(self.lanes) {
                    let old = self.arrive(lane, addresses[lane], counts[lane], drop)?;
                    if let Some(state) = state {
                        self.registers.values[state.0 as usize][lane] = old;
                    }
                }
            }
            Mbarrier::Test { dst, barrier, state, .. } => {
                let states = self.registers.read(state, self.specials);
                return self
                    .test(dst, barrier, |lane, object| object.phase != Object::unpack(states[lane]).phase);
            }
            Mbarrier::TestParity { dst, barrier, parity, .. } => {
                let parities = self.registers.read(parity, self.specials);
                return self.test(dst, barrier, |lane, object| object.phase & 1 != parities[lane] & 1);
            }
            Mbarrier::PendingCount { dst, state } => {
                let states = self.registers.read(state, self.specials);
                let counts = states.map(|state| Object::unpack(state).missing);
                self.registers.write(dst, self.lanes, &counts);
            }
        }
        Ok(Flow::Next)
    }

    /// Whether a phase is over, by lane. Who has to wait lets other warps go on first.
    fn test(
        &mut self,
        dst: crate::ir::Predicate,
        barrier: Address,
        over: impl Fn(usize, Object) -> bool,
    ) -> Result<Flow, Box<Problem>> {
        let addresses = self.addresses(barrier);
        let mut done = 0;
        for lane in each(self.lanes) {
            let address = self.object_address(lane, addresses[lane])?;
            let object = self.object(lane, address)?;
            if self.state.shared.is_checked() {
                self.note_read(lane, address, BYTES, true);
            }
            if over(lane, object) {
                done |= 1 << lane;
                if let Some(races) = &mut self.state.shared.races {
                    races.learn_from(self.warp, address);
                }
            } else {
                self.state.polled = address;
            }
        }
        self.state.progress |= done != 0;
        self.registers.write_predicate(dst, self.lanes, done);
        Ok(if done == self.lanes { Flow::Next } else { Flow::Yield })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_ends_with_the_last_arrival() {
        let mut object = Object { expected: 3, missing: 3, phase: 0 };
        assert!(object.arrive(2, false));
        assert_eq!(object, Object { expected: 3, missing: 1, phase: 0 });
        assert!(!object.arrive(2, false));
        assert!(object.arrive(1, true));
        assert_eq!(object, Object { expected: 2, missing: 2, phase: 1 });
        assert_eq!(Object::unpack(object.pack()), object);
    }
}
