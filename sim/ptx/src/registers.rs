//! What a warp's registers hold, and what its special registers say.

use crate::ir::{LaneMask, Predicate, PredicateSource, Register, Source, Special};

/// Threads of a warp.
pub(crate) const LANES: usize = 32;

/// A value of each lane; bits above the value's own are zero.
pub(crate) type Lanes = [u64; LANES];

/// Ones in the low `bits`, of which there are 1 to 64.
pub(crate) const fn ones(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// The low `bits` of a value as a signed number.
pub(crate) const fn sign_extended(value: u64, bits: u32) -> i64 {
    let above = 64 - bits;
    ((value << above) as i64) >> above
}

/// The registers of a warp.
///
/// Indices are those of the kernel that the warp runs: they lie within what [`Registers::new`] was told.
#[derive(Clone, Debug)]
pub(crate) struct Registers {
    /// By [`Register`].
    pub(crate) values: Vec<Lanes>,
    /// By [`Predicate`]: a bit a lane.
    pub(crate) predicates: Vec<u32>,
    /// The carry flag of each lane: a bit a lane.
    pub(crate) carry: u32,
    /// Where what is no register is laid out by lane, an operand each.
    pub(crate) scratch: [Lanes; 3],
}

impl Registers {
    /// All zeros.
    pub(crate) fn new(registers: u32, predicates: u32) -> Registers {
        Registers {
            values: vec![[0; LANES]; registers as usize],
            predicates: vec![0; predicates as usize],
            carry: 0,
            scratch: [[0; LANES]; 3],
        }
    }

    /// A register's lanes.
    #[inline]
    pub(crate) fn get(&self, register: Register) -> &Lanes {
        &self.values[register.0 as usize]
    }

    /// What a source says, by lane, without a copy where it is a register; `scratch` holds it else.
    #[inline]
    pub(crate) fn operand<'a>(
        &'a self,
        source: Source,
        specials: &Specials,
        scratch: &'a mut Lanes,
    ) -> &'a Lanes {
        operand(&self.values, source, specials, scratch)
    }

    /// What a source says, by lane.
    #[inline]
    pub(crate) fn read(&self, source: Source, specials: &Specials) -> Lanes {
        match source {
            Source::Register(register) => *self.get(register),
            Source::Immediate(value) => [value; LANES],
            Source::Special(special) => specials.read(special),
        }
    }

    /// Writes the lanes of the mask.
    #[inline]
    pub(crate) fn write(&mut self, register: Register, lanes: u32, values: &Lanes) {
        let old = &mut self.values[register.0 as usize];
        if lanes == u32::MAX {
            *old = *values;
        } else {
            write_some(old, lanes, values);
        }
    }

    /// A predicate: a bit a lane.
    #[inline]
    pub(crate) fn predicate(&self, predicate: Predicate) -> u32 {
        self.predicates[predicate.0 as usize]
    }

    /// What a predicate's source says: a bit a lane.
    #[inline]
    pub(crate) fn read_predicate(&self, source: PredicateSource) -> u32 {
        match source {
            PredicateSource::Register { predicate, negated: false } => self.predicate(predicate),
            PredicateSource::Register { predicate, negated: true } => !self.predicate(predicate),
            PredicateSource::Constant(true) => u32::MAX,
            PredicateSource::Constant(false) => 0,
        }
    }

    /// Writes the mask's lanes of a predicate.
    #[inline]
    pub(crate) fn write_predicate(&mut self, predicate: Predicate, lanes: u32, bits: u32) {
        let old = &mut self.predicates[predicate.0 as usize];
        *old = *old & !lanes | bits & lanes;
    }
}

/// What a source says, by lane, as [`Registers::operand`] does.
#[inline]
pub(crate) fn operand<'a>(
    registers: &'a [Lanes],
    source: Source,
    specials: &Specials,
    scratch: &'a mut Lanes,
) -> &'a Lanes {
    match source {
        Source::Register(register) => &registers[register.0 as usize],
        Source::Immediate(value) => {
            *scratch = [value; LANES];
            scratch
        }
        Source::Special(special) => {
            *scratch = specials.read(special);
            scratch
        }
    }
}

/// Writes the lanes of the mask: with a bit a lane instead of a shift, vector instructions choose.
#[inline(never)]
fn write_some(old: &mut Lanes, lanes: u32, values: &Lanes) {
    const BITS: [u32; LANES] = {
        let mut bits = [0; LANES];
        let mut lane = 0;
        while lane < LANES {
            bits[lane] = 1 << lane;
            lane += 1;
        }
        bits
    };
    for ((old, &new), bit) in old.iter_mut().zip(values).zip(BITS) {
        *old = if lanes & bit == 0 { *old } else { new };
    }
}

/// What a warp's special registers say. The machine fills it when a warp starts, and counts its instructions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Specials {
    /// `%tid` by axis, by lane.
    pub(crate) thread: [Lanes; 3],
    /// `%ntid`.
    pub(crate) block_shape: [u32; 3],
    /// `%ctaid`.
    pub(crate) block: [u32; 3],
    /// `%nctaid`.
    pub(crate) grid_shape: [u32; 3],
    /// `%warpid`: the warp in its block.
    pub(crate) warp: u32,
    /// `%gridid`.
    pub(crate) grid: u64,
    /// `%clock64` and `%globaltimer`; `%clock` is its low half: instructions of the warp.
    pub(crate) clock: u64,
    /// `%dynamic_smem_size`.
    pub(crate) dynamic_shared_bytes: u32,
    /// `%total_smem_size`.
    pub(crate) total_shared_bytes: u32,
}

impl Specials {
    /// Those of a warp: its threads are numbered along x first, then y, then z.
    pub(crate) fn new(block_shape: [u32; 3], grid_shape: [u32; 3], block: [u32; 3], warp: u32) -> Specials {
        let [x, y, _] = block_shape.map(|n| u64::from(n.max(1)));
        let linear: Lanes = std::array::from_fn(|lane| u64::from(warp) * LANES as u64 + lane as u64);
        Specials {
            thread: [linear.map(|i| i % x), linear.map(|i| i / x % y), linear.map(|i| i / x / y)],
            block_shape,
            block,
            grid_shape,
            warp,
            ..Specials::default()
        }
    }

    /// What a special register says, by lane. All blocks are on one multiprocessor,
    /// and launches without clusters have clusters of one block.
    pub(crate) fn read(&self, special: Special) -> Lanes {
        let axis = |values: [u32; 3], axis: u8| values.get(axis as usize).map_or(0, |&n| u64::from(n));
        let value = match special {
            Special::Thread(axis) => return self.thread.get(axis as usize).copied().unwrap_or([0; LANES]),
            Special::Lane => return std::array::from_fn(|lane| lane as u64),
            Special::LaneMask(mask) => return std::array::from_fn(|lane| u64::from(lane_mask(mask, lane))),
            Special::BlockShape(a) => axis(self.block_shape, a),
            Special::Block(a) => axis(self.block, a),
            Special::GridShape(a) => axis(self.grid_shape, a),
            Special::Warp => u64::from(self.warp),
            Special::Warps => {
                let threads: u64 = self.block_shape.iter().map(|&n| u64::from(n)).product();
                threads.div_ceil(LANES as u64)
            }
            Special::Grid => self.grid,
            Special::Clock => self.clock & u64::from(u32::MAX),
            Special::Clock64 | Special::GlobalTimer => self.clock,
            Special::DynamicSharedBytes => u64::from(self.dynamic_shared_bytes),
            Special::TotalSharedBytes => u64::from(self.total_shared_bytes),
            Special::Multiprocessor | Special::BlockInCluster(_) | Special::RankInCluster => 0,
            Special::Multiprocessors | Special::ClusterShape(_) | Special::BlocksInCluster => 1,
            Special::WarpSize => LANES as u64,
        };
        [value; LANES]
    }
}

/// The lanes that a lane's mask register names.
fn lane_mask(mask: LaneMask, lane: usize) -> u32 {
    let own = 1u32 << lane;
    let below = own - 1;
    match mask {
        LaneMask::Equal => own,
        LaneMask::Less => below,
        LaneMask::LessOrEqual => below | own,
        LaneMask::Greater => !(below | own),
        LaneMask::GreaterOrEqual => !below,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lanes_of_the_mask_are_written() {
        let mut registers = Registers::new(1, 1);
        registers.write(Register(0), u32::MAX, &[7; LANES]);
        registers.write(Register(0), 0b101, &[9; LANES]);
        assert_eq!(registers.get(Register(0))[..4], [9, 7, 9, 7]);
        registers.write_predicate(Predicate(0), 0b110, u32::MAX);
        assert_eq!(registers.predicate(Predicate(0)), 0b110);
        let negated = PredicateSource::Register { predicate: Predicate(0), negated: true };
        assert_eq!(registers.read_predicate(negated), !0b110);
    }

    #[test]
    fn threads_are_numbered_along_x_first() {
        let specials = Specials::new([5, 3, 4], [2, 1, 1], [1, 0, 0], 1);
        // Thread 32 + 2 = 34 of 5 x 3 x 4: 34 = 4 + 5 (0 + 3 · 2).
        assert_eq!([0, 1, 2].map(|axis| specials.read(Special::Thread(axis))[2]), [4, 0, 2]);
        assert_eq!(specials.read(Special::Warps)[0], 2);
        assert_eq!(specials.read(Special::Block(0))[9], 1);
    }

    #[test]
    fn lane_masks() {
        let specials = Specials::new([32, 1, 1], [1; 3], [0; 3], 0);
        let read = |mask| specials.read(Special::LaneMask(mask));
        assert_eq!(read(LaneMask::Less)[0], 0);
        assert_eq!(read(LaneMask::Less)[31], 0x7fff_ffff);
        assert_eq!(read(LaneMask::LessOrEqual)[31], 0xffff_ffff);
        assert_eq!(read(LaneMask::Greater)[31], 0);
        assert_eq!(read(LaneMask::Greater)[3], 0xffff_fff0);
        assert_eq!(read(LaneMask::GreaterOrEqual)[3], 0xffff_fff8);
        assert_eq!(read(LaneMask::Equal)[3], 8);
    }
}
