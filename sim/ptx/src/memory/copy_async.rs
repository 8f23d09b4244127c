//! `cp.async`: copies from global to shared memory that arrive when their thread waits for them, and not before.

use super::access::find;
use super::global::GlobalMemory;
use super::is_aligned;
use crate::block::State;
use crate::fault::{Access, FaultKind, Problem};
use crate::ir::{Address, PredicateSource, Source, Space};
use crate::registers::LANES;
use crate::step::{Step, each};
use std::collections::VecDeque;

/// The copies that a warp's lanes have begun and not waited for.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    pending: VecDeque<Pending>,
    /// How many groups each lane has committed.
    committed: [u32; LANES],
}

/// The copies of one instruction that belong to the same group.
#[derive(Debug)]
struct Pending {
    lanes: u32,
    bytes: u32,
    /// How many groups its lanes had committed before.
    group: u32,
    pc: usize,
    dst: [u32; LANES],
    src: [u64; LANES],
    source_bytes: [u8; LANES],
}

impl Copies {
    /// As for a warp that begins.
    pub(crate) fn reset(&mut self) {
        self.pending.clear();
        self.committed = [0; LANES];
    }

    /// `cp.async.commit_group`.
    pub(crate) fn commit(&mut self, lanes: u32) {
        for lane in each(lanes) {
            self.committed[lane] += 1;
        }
    }

    /// Lets all but the newest `pending` groups of each lane arrive; all copies where that is `None`.
    pub(crate) fn wait(
        &mut self,
        lanes: u32,
        pending: Option<u32>,
        warp: usize,
        memory: &GlobalMemory,
        state: &mut State,
    ) {
        for copy in &mut self.pending {
            let mut done = copy.lanes & lanes;
            if let Some(pending) = pending {
                for lane in each(done) {
                    if copy.group >= self.committed[lane].saturating_sub(pending) {
                        done &= !(1 << lane);
                    }
                }
            }
            if done != 0 {
                copy.arrive(done, warp, memory, state);
                copy.lanes &= !done;
            }
        }
        while self.pending.front().is_some_and(|copy| copy.lanes == 0) {
            self.pending.pop_front();
        }
    }
}

impl Pending {
    fn arrive(&self, lanes: u32, warp: usize, memory: &GlobalMemory, state: &mut State) {
        let mut known = None;
        for lane in each(lanes) {
            let at = self.dst[lane] as usize;
            let Some(dst) = state.shared.bytes.get_mut(at..at + self.bytes as usize) else { continue };
            let count = u32::from(self.source_bytes[lane]);
            if count == self.bytes {
                // The instruction has found it to be there when it was executed.
                let source = find(memory, &mut known, lane, self.src[lane], self.bytes, Access::Read);
                let Ok(allocation) = source else { continue };
                for (index, word) in dst.chunks_exact_mut(4).enumerate() {
                    let value = allocation.load(self.src[lane] + 4 * index as u64, 4);
                    word.copy_from_slice(&(value as u32).to_le_bytes());
                }
            } else {
                dst.fill(0);
                let (read, _) = dst.split_at_mut(count as usize);
                memory.read(self.src[lane], read);
            }
            if state.shared.is_checked() {
                state.shared.end_copy(u64::from(self.dst[lane]), self.bytes, (warp, self.pc), lane);
            }
        }
    }
}

impl Step<'_> {
    /// `cp.async`.
    pub(crate) fn copy_async(
        &mut self,
        bytes: u32,
        dst: Address,
        src: Address,
        source_bytes: Option<Source>,
        ignore_source: Option<PredicateSource>,
    ) -> Result<(), Box<Problem>> {
        let (to, from) = (self.addresses(dst), self.addresses(src));
        let ignored = ignore_source.map_or(0, |ignore| self.registers.read_predicate(ignore));
        let counts = source_bytes.map(|count| self.registers.read(count, self.specials));
        let mut copy = Pending {
            lanes: self.lanes,
            bytes,
            group: 0,
            pc: self.pc,
            dst: [0; LANES],
            src: from,
            source_bytes: [0; LANES],
        };
        for lane in each(self.lanes) {
            let address = to[lane];
            let check = self.state.shared.check(address, bytes, bytes, Access::Write);
            check.map_err(|kind| Problem::at(lane, kind))?;
            let count = match counts {
                _ if ignored >> lane & 1 == 1 => 0,
                Some(counts) => (counts[lane] as u32).min(bytes),
                None => bytes,
            };
            copy.dst[lane] = address as u32;
            copy.source_bytes[lane] = count as u8;
            if count > 0 {
                self.source(lane, from[lane], count, bytes)?;
            }
        }
        if self.state.shared.is_checked() {
            for lane in each(self.lanes) {
                let race = self.state.shared.begin_copy(to[lane], bytes, (self.warp, self.pc), lane);
                if let Some(race) = race {
                    let kind = race.fault(Access::Write, |pc| self.launch.kernel.line(pc));
                    self.state.finding(lane, kind);
                }
            }
        }
        if self.state.tally.on {
            let reading =
                each(self.lanes).filter(|&lane| copy.source_bytes[lane] > 0).fold(0, |m, lane| m | 1 << lane);
            self.state.tally.global(self.pc, reading, &from, bytes);
            self.state.tally.shared(self.pc, self.lanes, &to, bytes);
        }
        // Lanes that have committed the same number of groups go together: all of them, most often.
        let mut rest = self.lanes;
        while rest != 0 {
            let group = self.copies.committed[rest.trailing_zeros() as usize];
            let lanes = each(rest)
                .filter(|&lane| self.copies.committed[lane] == group)
                .fold(0, |m, lane| m | 1 << lane);
            rest &= !lanes;
            self.copies.pending.push_back(Pending { lanes, group, ..copy });
        }
        Ok(())
    }

    /// Whether the bytes that are read exist, at a multiple of the copy's size.
    fn source(&mut self, lane: usize, address: u64, count: u32, bytes: u32) -> Result<(), Box<Problem>> {
        let access = Access::Read;
        let allocation =
            self.launch.memory.find(address, count, access).map_err(|kind| Problem::at(lane, kind))?;
        if !is_aligned(address, bytes) {
            let kind = FaultKind::Misaligned { space: Space::Global, access, address, align: bytes };
            return Err(Problem::at(lane, kind));
        }
        if let Some(address) = allocation.unwritten(address, u64::from(count)) {
            self.state.finding(lane, FaultKind::Uninitialised { space: Space::Global, address });
        }
        Ok(())
    }
}
