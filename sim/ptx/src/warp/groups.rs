//! The groups of a warp: how they part, unite, and take turns.

use super::Warp;
use crate::block::State;

/// Instructions of parted lanes after which a group that others keep from running has its turn.
const PATIENCE: u32 = 16_384;
/// How long that turn is.
const EXTRA_TURN: u32 = 1024;

/// Lanes that execute together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub(crate) pc: usize,
    pub(crate) lanes: u32,
    pub(crate) waits: Waits,
    /// The warp's step in which it was last chosen.
    pub(super) chosen: u64,
}

/// What a group waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Nothing.
    No,
    /// These lanes are to come to its instruction.
    Lanes(u32),
    /// The lanes of this mask are to come to a `bar.warp.sync`.
    WarpBarrier(u32),
    /// The block's barrier.
    Barrier(u32),
}

impl Warp {
    /// A group lets others go first: what it waits for may be up to another one of this warp.
    pub(super) fn give_way(&mut self) {
        self.parted += PATIENCE / 8;
    }

    /// A group has executed an instruction; `leads`: it may be further than others. Whether another one is to be chosen.
    pub(super) fn is_to_yield(&mut self, current: usize, leads: bool) -> bool {
        self.parted += 1;
        self.meets(current, leads) || self.parted > PATIENCE
    }

    /// The group that runs next, and for how many instructions it may run before others that are less far.
    pub(super) fn choose(&mut self) -> Option<(usize, u32)> {
        if self.groups.len() == 1 {
            self.parted = 0;
            return (self.groups[0].waits == Waits::No).then_some((0, 0));
        }
        self.unite();
        let ready = |group: &&(usize, &Group)| group.1.waits == Waits::No;
        let groups = || self.groups.iter().enumerate();
        let (index, extra) = if self.parted > PATIENCE {
            self.parted = 0;
            (groups().filter(|g| ready(&g)).min_by_key(|(_, group)| group.chosen)?.0, EXTRA_TURN)
        } else {
            (groups().filter(|g| ready(&g)).min_by_key(|(_, group)| group.pc)?.0, 0)
        };
        self.groups[index].chosen = self.steps;
        Some((index, extra))
    }

    /// Groups at the same instruction become one.
    fn unite(&mut self) {
        let mut first = 0;
        while first < self.groups.len() {
            let mut second = first + 1;
            while second < self.groups.len() {
                let (a, b) = (self.groups[first], self.groups[second]);
                let movable = |group: Group| matches!(group.waits, Waits::No | Waits::Lanes(_));
                if a.pc == b.pc && movable(a) && movable(b) {
                    // Who waited for lanes looks again.
                    self.groups[first] = Group { lanes: a.lanes | b.lanes, waits: Waits::No, ..a };
                    self.groups.swap_remove(second);
                } else {
                    second += 1;
                }
            }
            first += 1;
        }
    }

    /// Whether the group has come to where another one is, or (unless it may) is further than another one.
    fn meets(&self, current: usize, may_lead: bool) -> bool {
        let own = self.groups[current].pc;
        self.groups.iter().enumerate().any(|(index, group)| {
            index != current
                && match group.waits {
                    Waits::No => group.pc == own || group.pc < own && !may_lead,
                    Waits::Lanes(_) => group.pc == own,
                    Waits::WarpBarrier(_) | Waits::Barrier(_) => false,
                }
        })
    }

    /// Lanes of a group end.
    pub(super) fn end(&mut self, current: usize, lanes: u32, state: &mut State) {
        self.live &= !lanes;
        state.live -= lanes.count_ones();
        if let Some(races) = &mut state.shared.races {
            races.end(self.index);
        }
        self.groups[current].lanes &= !lanes;
        if self.groups[current].lanes == 0 {
            self.groups.swap_remove(current);
        }
        // Who waited for them need not any more.
        for group in &mut self.groups {
            if matches!(group.waits, Waits::Lanes(_) | Waits::WarpBarrier(_)) {
                group.waits = Waits::No;
            }
        }
    }

    /// Lanes go to another instruction; the others of their group to the next.
    pub(super) fn part(&mut self, current: usize, lanes: u32, target: usize) {
        let group = &mut self.groups[current];
        if group.lanes == lanes {
            group.pc = target;
            return;
        }
        group.lanes &= !lanes;
        let parted = Group { pc: target, lanes, ..*group };
        self.groups.push(parted);
    }
}
