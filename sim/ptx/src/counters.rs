//! What a launch counts.

use crate::step::each;

/// What the warps of a launch did. All zeros where [`Checks::counters`](crate::Checks) is off, but for
/// [`Counters::instructions`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Instructions, each counted once a warp and group of lanes that executed it.
    pub instructions: u64,
    /// The same, once a lane.
    pub lane_instructions: u64,
    /// Branches that parted lanes.
    pub divergent_branches: u64,
    /// Times that a barrier of the block let threads go on.
    pub barriers: u64,
    /// `mma` instructions.
    pub matrix_multiplies: u64,
    /// Accesses of shared memory.
    pub shared: SharedCounts,
    /// Accesses of global memory.
    pub global: GlobalCounts,
    /// The same by line of the PTX text, for lines that access memory, in order.
    pub lines: Vec<LineCounts>,
}

/// Shared memory: 32 banks of 4 bytes serve one word each at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedCounts {
    /// Instructions of a warp.
    pub requests: u64,
    /// Passes over the banks that they took.
    pub passes: u64,
    /// Passes that they would have taken without conflicts.
    pub ideal_passes: u64,
}

impl SharedCounts {
    /// Passes that bank conflicts cost.
    pub fn conflicts(&self) -> u64 {
        self.passes - self.ideal_passes
    }
}

/// Global memory: it is moved in sectors of 32 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GlobalCounts {
    /// Instructions of a warp.
    pub requests: u64,
    /// Sectors that they touched.
    pub sectors: u64,
    /// Sectors that the same bytes would fill, side by side and aligned.
    pub ideal_sectors: u64,
}

/// What one line of the PTX text did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LineCounts {
    /// The line, from 1.
    pub line: u32,
    /// File and line that it was compiled from.
    pub source: Option<(String, u32)>,
    /// Its accesses of shared memory.
    pub shared: SharedCounts,
    /// Its accesses of global memory.
    pub global: GlobalCounts,
}

impl SharedCounts {
    fn add(&mut self, other: &SharedCounts) {
        self.requests += other.requests;
        self.passes += other.passes;
        self.ideal_passes += other.ideal_passes;
    }
}

impl GlobalCounts {
    fn add(&mut self, other: &GlobalCounts) {
        self.requests += other.requests;
        self.sectors += other.sectors;
        self.ideal_sectors += other.ideal_sectors;
    }
}

/// The counts of a host thread, by instruction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// Whether anything but instructions is counted.
    pub(crate) on: bool,
    pub(crate) instructions: u64,
    pub(crate) lane_instructions: u64,
    pub(crate) divergent_branches: u64,
    pub(crate) barriers: u64,
    pub(crate) matrix_multiplies: u64,
    by_instruction: Vec<(SharedCounts, GlobalCounts)>,
}

impl Tally {
    pub(crate) fn new(on: bool, instructions: usize) -> Tally {
        let by_instruction = if on {
            vec![(SharedCounts::default(), GlobalCounts::default()); instructions]
        } else {
            Vec::new()
        };
        Tally { on, by_instruction, ..Tally::default() }
    }

    /// An access of shared memory by the mask's lanes, `bytes` each. Wide accesses take a pass each 8 lanes of 16 bytes or
    /// 16 lanes of 8.
    pub(crate) fn shared(&mut self, pc: usize, lanes: u32, addresses: &[u64; 32], bytes: u32) {
        let Some((shared, _)) = self.by_instruction.get_mut(pc) else { return };
        let step = match bytes {
            0..=4 => 32,
            5..=8 => 16,
            _ => 8,
        };
        shared.requests += 1;
        for first in (0..32).step_by(step) {
            let part: u32 = if step == 32 { u32::MAX } else { ((1 << step) - 1) << first };
            if lanes & part == 0 {
                continue;
            }
            shared.passes += bank_passes(lanes & part, addresses, bytes);
            shared.ideal_passes += 1;
        }
    }

    /// An access of global memory by the mask's lanes, `bytes` each.
    pub(crate) fn global(&mut self, pc: usize, lanes: u32, addresses: &[u64; 32], bytes: u32) {
        let Some((_, global)) = self.by_instruction.get_mut(pc) else { return };
        if lanes == 0 {
            return;
        }
        let bytes = u64::from(bytes);
        let mut firsts = [0u64; 32];
        let mut count = 0;
        for lane in each(lanes) {
            firsts[count] = addresses[lane];
            count += 1;
        }
        let firsts = &mut firsts[..count];
        if !firsts.is_sorted() {
            firsts.sort_unstable();
        }
        let (mut sectors, mut distinct, mut end, mut next_sector) = (0, 0, 0, 0);
        for &mut first in firsts {
            let last = first.saturating_add(bytes);
            distinct += last.saturating_sub(first.max(end));
            end = end.max(last);
            let from = (first / 32).max(next_sector);
            let to = last.div_ceil(32);
            sectors += to.saturating_sub(from);
            next_sector = next_sector.max(to);
        }
        global.requests += 1;
        global.sectors += sectors;
        global.ideal_sectors += distinct.div_ceil(32);
    }

    /// Adds what another host thread has counted.
    pub(crate) fn add(&mut self, other: &Tally) {
        self.instructions += other.instructions;
        self.lane_instructions += other.lane_instructions;
        self.divergent_branches += other.divergent_branches;
        self.barriers += other.barriers;
        self.matrix_multiplies += other.matrix_multiplies;
        for (own, theirs) in self.by_instruction.iter_mut().zip(&other.by_instruction) {
            own.0.add(&theirs.0);
            own.1.add(&theirs.1);
        }
    }

    /// The counts as the caller sees them; `place` tells an instruction's line.
    pub(crate) fn counters(self, place: impl Fn(usize) -> (u32, Option<(String, u32)>)) -> Counters {
        let mut counters = Counters {
            instructions: self.instructions,
            lane_instructions: self.lane_instructions,
            divergent_branches: self.divergent_branches,
            barriers: self.barriers,
            matrix_multiplies: self.matrix_multiplies,
            ..Counters::default()
        };
        for (index, (shared, global)) in self.by_instruction.into_iter().enumerate() {
            if shared.requests + global.requests == 0 {
                continue;
            }
            counters.shared.add(&shared);
            counters.global.add(&global);
            let (line, source) = place(index);
            counters.lines.push(LineCounts { line, source, shared, global });
        }
        counters
    }
}

/// Passes over the banks that some lanes take: the most distinct words of a bank. A word that several lanes read is served
/// once.
fn bank_passes(lanes: u32, addresses: &[u64; 32], bytes: u32) -> u64 {
    const WORDS: usize = 64;
    let mut words = [0u64; WORDS];
    // The words of a bank are a chain, from the last one on; numbers begin at 1.
    let (mut last, mut before) = ([0u8; 32], [0u8; WORDS]);
    let (mut count, mut passes, mut passes_of) = (0, 0, [0u8; 32]);
    for lane in each(lanes) {
        let start = addresses[lane] / 4;
        for word in start..=addresses[lane].saturating_add(u64::from(bytes.max(1)) - 1) / 4 {
            let bank = (word % 32) as usize;
            let mut known = last[bank];
            while known != 0 && words[usize::from(known - 1) % WORDS] != word {
                known = before[usize::from(known - 1) % WORDS];
            }
            if known == 0 && count < WORDS {
                words[count] = word;
                before[count] = last[bank];
                count += 1;
                last[bank] = count as u8;
                passes_of[bank] += 1;
                passes = passes.max(passes_of[bank]);
            }
        }
    }
    u64::from(passes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(lanes: u32, bytes: u32, address: impl Fn(u64) -> u64) -> SharedCounts {
        let mut tally = Tally::new(true, 1);
        tally.shared(0, lanes, &std::array::from_fn(|lane| address(lane as u64)), bytes);
        tally.counters(|_| (1, None)).shared
    }

    fn global(lanes: u32, bytes: u32, address: impl Fn(u64) -> u64) -> GlobalCounts {
        let mut tally = Tally::new(true, 1);
        tally.global(0, lanes, &std::array::from_fn(|lane| address(lane as u64)), bytes);
        tally.counters(|_| (1, None)).global
    }

    #[test]
    fn banks_are_four_bytes_wide() {
        assert_eq!(shared(u32::MAX, 4, |lane| 4 * lane).conflicts(), 0);
        assert_eq!(shared(u32::MAX, 4, |lane| 8 * lane).conflicts(), 1);
        assert_eq!(shared(u32::MAX, 4, |lane| 128 * lane).conflicts(), 31);
        // One word for all, and bytes of the same words.
        assert_eq!(shared(u32::MAX, 4, |_| 64).conflicts(), 0);
        assert_eq!(shared(u32::MAX, 1, |lane| lane).conflicts(), 0);
    }

    #[test]
    fn wide_accesses_go_in_parts() {
        let rows = shared(u32::MAX, 16, |lane| 16 * lane);
        assert_eq!((rows.passes, rows.ideal_passes), (4, 4));
        // Rows of 128 bytes: eight lanes on the same four banks.
        assert_eq!(shared(u32::MAX, 16, |lane| 128 * lane).passes, 32);
        assert_eq!(shared(0xff, 16, |lane| 16 * lane).ideal_passes, 1);
    }

    #[test]
    fn sectors_are_counted_once() {
        let side_by_side = global(u32::MAX, 4, |lane| 4096 + 4 * lane);
        assert_eq!((side_by_side.sectors, side_by_side.ideal_sectors), (4, 4));
        let strided = global(u32::MAX, 4, |lane| 128 * lane);
        assert_eq!((strided.sectors, strided.ideal_sectors), (32, 4));
        let shifted = global(u32::MAX, 4, |lane| 4100 + 4 * lane);
        assert_eq!((shifted.sectors, shifted.ideal_sectors), (5, 4));
        let one = global(u32::MAX, 4, |_| 4096);
        assert_eq!((one.sectors, one.ideal_sectors), (1, 1));
    }
}
