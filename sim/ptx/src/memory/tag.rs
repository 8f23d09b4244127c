//! What is remembered of an access of shared memory, and a race between two.

use crate::fault::{Access, FaultKind, Other};

/// An access, packed: nothing at all is 0.
///
/// From the lowest: ordered (1 bit), under way (1), warp (5), lane (6, 32 means several), instruction (22), epoch (29).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Tag(u64);

pub(super) const ORDERED: u64 = 1;
pub(super) const UNDER_WAY: u64 = 2;
const WARP: u32 = 2;
const LANE: u32 = 7;
const PC: u32 = 13;
const EPOCH: u32 = 35;
const SEVERAL: u64 = 32;
const LAST_EPOCH: u64 = (1 << (64 - EPOCH)) - 1;

impl Tag {
    /// No access has this one: none is by lane 63.
    pub(super) const NOBODY: Tag = Tag(u64::MAX);

    pub(super) fn new(epoch: u64, pc: usize, warp: usize, ordered: bool) -> Tag {
        Tag(epoch.min(LAST_EPOCH) << EPOCH
            | (pc as u64 & ((1 << (EPOCH - PC)) - 1)) << PC
            | (warp as u64) << WARP
            | u64::from(ordered))
    }

    pub(super) fn warp(self) -> usize {
        (self.0 >> WARP & 31) as usize
    }

    pub(super) fn lane(self) -> u64 {
        self.0 >> LANE & 63
    }

    pub(super) fn pc(self) -> usize {
        (self.0 >> PC & ((1 << (EPOCH - PC)) - 1)) as usize
    }

    pub(super) fn epoch(self) -> u64 {
        self.0 >> EPOCH
    }

    pub(super) fn is(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    pub(super) fn under_way(self) -> Tag {
        Tag(self.0 | UNDER_WAY)
    }

    pub(super) fn of_several(self) -> Tag {
        Tag(self.0 & !(63 << LANE) | SEVERAL << LANE)
    }

    pub(super) fn with_lane(self, lane: usize) -> Tag {
        Tag(self.0 | (lane as u64) << LANE)
    }
}

/// A race that was found: the byte and the other access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Race {
    pub(super) address: usize,
    pub(super) other: Tag,
    pub(super) other_wrote: bool,
}

impl Race {
    /// As a fault; `line` tells an instruction's line.
    pub(crate) fn fault(self, access: Access, line: impl Fn(usize) -> u32) -> FaultKind {
        let address = self.address as u64;
        if self.other.is(UNDER_WAY) {
            return FaultKind::CopyUnderWay { access, address };
        }
        let other_access = match (self.other.is(ORDERED), self.other_wrote) {
            (true, true) => Access::Atomic,
            (false, true) => Access::Write,
            (_, false) => Access::Read,
        };
        let lane = self.other.lane();
        let other = Other {
            access: other_access,
            warp: self.other.warp() as u32,
            lane: (lane != SEVERAL).then_some(lane as u32),
            line: line(self.other.pc()),
        };
        FaultKind::Race { address, access, other }
    }
}
