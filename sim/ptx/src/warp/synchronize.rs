//! Barriers of the block and of the warp.

use super::{Group, Waits, Warp};
use crate::block::State;
use crate::fault::{FaultKind, Problem, Waiting, WaitingFor};
use crate::ir::{BarrierKind, Op, Source};
use crate::launch::Launch;
use crate::step::Flow;

impl Warp {
    /// `bar.warp.sync`, whose lanes may stand at different ones.
    pub(super) fn warp_barrier(
        &mut self,
        state: &mut State,
        current: usize,
        executing: u32,
        members: Source,
    ) -> Result<Flow, Box<Problem>> {
        let members = self.first(members, executing);
        if executing & !members != 0 {
            let lane = (executing & !members).trailing_zeros() as usize;
            return Err(Problem::at(lane, FaultKind::NotAMember { members }));
        }
        let skipping = self.groups[current].lanes & members & !executing;
        if skipping != 0 {
            let kind = FaultKind::MissingLanes { lanes: executing, missing: skipping };
            return Err(Problem::at(executing.trailing_zeros() as usize, kind));
        }
        if self.groups[current].lanes != executing {
            // Those that the guard keeps from it, and that it does not name, go on.
            let pc = self.groups[current].pc;
            let others = self.groups[current].lanes & !executing;
            self.part(current, others, pc + 1);
        }
        self.groups[current].waits = Waits::WarpBarrier(members);
        let here = |group: &Group| group.waits == Waits::WarpBarrier(members);
        let met = self.groups.iter().filter(|g| here(g)).fold(0, |lanes, group| lanes | group.lanes);
        if members & self.live & !met == 0 {
            for group in self.groups.iter_mut().filter(|g| here(g)) {
                group.waits = Waits::No;
                group.pc += 1;
            }
            if let Some(races) = &mut state.shared.races {
                races.warp_barrier(self.index);
            }
        }
        Ok(Flow::Regroup)
    }

    /// `bar` and `barrier`.
    pub(super) fn barrier(
        &mut self,
        launch: &Launch<'_>,
        state: &mut State,
        current: usize,
        executing: u32,
        (kind, barrier, threads): (BarrierKind, Source, Option<Source>),
    ) -> Result<Flow, Box<Problem>> {
        let lane = executing.trailing_zeros() as usize;
        let number = self.first(barrier, executing);
        let threads = threads.map(|threads| self.first(threads, executing));
        let pc = self.groups[current].pc;
        for other in &self.groups {
            if other.waits == Waits::Barrier(number) && other.pc != pc {
                let other_line = launch.kernel.line(other.pc);
                return Err(Problem::at(lane, FaultKind::DivergentBarrier { barrier: number, other_line }));
            }
        }
        let Some(state_of) = state.barriers.get_mut(number as usize) else {
            let problem = format!("barrier {number}: a block has the barriers 0 to 15");
            return Err(Problem::at(lane, FaultKind::Barrier(problem)));
        };
        let arrival = state_of.arrive(number, executing, self.live, threads);
        arrival.map_err(|problem| Problem::at(lane, FaultKind::Barrier(problem)))?;
        if let BarrierKind::Count { a, .. } | BarrierKind::Reduce { a, .. } = kind {
            state_of.bring(executing, self.registers.read_predicate(a));
        }
        if let Some(races) = &mut state.shared.races {
            races.arrive(self.index, &mut state_of.clock);
        }
        if self.groups[current].lanes != executing {
            let others = self.groups[current].lanes & !executing;
            self.part(current, others, pc + 1);
        }
        if kind == BarrierKind::Arrive {
            self.groups[current].pc = pc + 1;
        } else {
            self.groups[current].waits = Waits::Barrier(number);
        }
        Ok(Flow::Regroup)
    }

    /// The block's barrier lets the groups go that wait at it.
    pub(crate) fn leave_barrier(&mut self, launch: &Launch<'_>, state: &mut State, number: u32) {
        for group in self.groups.iter_mut().filter(|group| group.waits == Waits::Barrier(number)) {
            let barrier = &state.barriers[number as usize];
            if let Some(Op::Barrier { kind, .. }) = launch.kernel.instructions.get(group.pc).map(|i| &i.op) {
                match *kind {
                    BarrierKind::Count { dst, .. } => {
                        self.registers.write(dst, group.lanes, &[u64::from(barrier.count()); 32]);
                    }
                    BarrierKind::Reduce { op, dst, .. } => {
                        let bits = if barrier.reduce(op) { u32::MAX } else { 0 };
                        self.registers.write_predicate(dst, group.lanes, bits);
                    }
                    BarrierKind::Synchronize | BarrierKind::Arrive => {}
                }
            }
            group.waits = Waits::No;
            group.pc += 1;
            if let Some(races) = &mut state.shared.races {
                races.depart(self.index, &barrier.clock, barrier.is_for_all());
            }
        }
    }

    /// Where its lanes wait, and for what.
    pub(crate) fn waiting(&self, line: impl Fn(usize) -> u32) -> impl Iterator<Item = Waiting> {
        self.groups.iter().filter_map(move |group| {
            let what = match group.waits {
                Waits::No => return None,
                Waits::Lanes(lanes) => WaitingFor::Lanes(lanes),
                Waits::WarpBarrier(members) => WaitingFor::Lanes(members & !group.lanes),
                Waits::Barrier(number) => WaitingFor::Barrier(number),
            };
            Some(Waiting { warp: self.index as u32, lanes: group.lanes, line: line(group.pc), what })
        })
    }
}
