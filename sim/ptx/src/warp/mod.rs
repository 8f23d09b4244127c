//! A warp: its registers, and its lanes in groups that execute together ([`groups`]).
//!
//! Lanes that part at a branch go on as two groups. The group that is least far in the text runs until it comes to where another
//! one is, and they unite: so lanes that parted meet again at the first instruction that both reach, as compilers lay out
//! code, and no analysis of the kernel is needed.

mod groups;
mod synchronize;

pub(crate) use groups::{Group, Waits};

use crate::block::State;
use crate::fault::{FaultKind, Problem};
use crate::ir::{Op, Source};
use crate::launch::Launch;
use crate::memory::Copies;
use crate::registers::{Registers, Specials};
use crate::step::{Flow, Step, each};

/// Instructions that a warp executes before others have their turn: who waits for what another warp writes gets on.
const TURN: u32 = 4096;
/// A warp of a block.
#[derive(Debug)]
pub(crate) struct Warp {
    pub(crate) index: usize,
    pub(crate) registers: Registers,
    pub(crate) specials: Specials,
    pub(crate) groups: Vec<Group>,
    copies: Copies,
    /// Lanes that are threads of the block and have not ended.
    live: u32,
    pub(crate) steps: u64,
    /// Steps since lanes parted or an extra turn.
    parted: u32,
}

/// A problem, and the instruction that has it.
pub(crate) type Failure = (usize, Box<Problem>);

impl Warp {
    pub(crate) fn new(index: usize, registers: u32, predicates: u32) -> Warp {
        Warp {
            index,
            registers: Registers::new(registers, predicates),
            specials: Specials::default(),
            groups: Vec::new(),
            copies: Copies::default(),
            live: 0,
            steps: 0,
            parted: 0,
        }
    }

    /// As at the start of a block.
    pub(crate) fn reset(&mut self, specials: Specials, lanes: u32) {
        self.registers.values.fill([0; 32]);
        self.registers.predicates.fill(0);
        self.registers.carry = 0;
        self.specials = specials;
        self.groups.clear();
        self.groups.push(Group { pc: 0, lanes, waits: Waits::No, chosen: 0 });
        self.copies.reset();
        self.live = lanes;
        self.steps = 0;
        self.parted = 0;
    }

    /// Whether all its threads have ended.
    pub(crate) fn is_done(&self) -> bool {
        self.groups.is_empty()
    }

    /// Executes until no lane can go on, or for a turn.
    pub(crate) fn run(&mut self, launch: &Launch<'_>, state: &mut State) -> Result<(), Failure> {
        let before = self.steps;
        let result = self.take_turn(launch, state);
        state.tally.instructions += self.steps - before;
        result
    }

    fn take_turn(&mut self, launch: &Launch<'_>, state: &mut State) -> Result<(), Failure> {
        let mut turn = TURN;
        while let Some((current, mut extra)) = self.choose() {
            // Asked whenever a turn begins, so that whoever gives each of them away is found too.
            if turn == TURN && self.steps > launch.options.max_steps {
                let Group { pc, lanes, .. } = self.groups[current];
                let kind = FaultKind::Endless { steps: launch.options.max_steps };
                return Err((pc, Problem::at(lanes.trailing_zeros() as usize, kind)));
            }
            loop {
                let Group { pc, lanes, .. } = self.groups[current];
                if turn == 0 {
                    return Ok(());
                }
                turn -= 1;
                let Some(instruction) = launch.kernel.instructions.get(pc) else {
                    self.end(current, lanes, state);
                    break;
                };
                self.steps += 1;
                self.specials.clock = self.steps;
                let executing = match instruction.guard {
                    None => lanes,
                    Some(guard) => {
                        let holds = self.registers.predicate(guard.predicate);
                        lanes & if guard.negated { !holds } else { holds }
                    }
                };
                if state.tally.on {
                    state.tally.lane_instructions += u64::from(executing.count_ones());
                }
                let flow = if executing == 0 {
                    self.groups[current].pc += 1;
                    Flow::Next
                } else {
                    let flow = self.step(launch, state, current, executing, &instruction.op);
                    if !state.findings.is_empty() {
                        launch.report_findings(state, self, pc);
                    }
                    flow.map_err(|problem| (pc, problem))?
                };
                match flow {
                    Flow::Next if self.groups.len() == 1 => {}
                    Flow::Next => {
                        if self.is_to_yield(current, extra > 0) {
                            break;
                        }
                        if extra > 0 {
                            extra -= 1;
                            if extra == 0 {
                                break;
                            }
                        }
                    }
                    Flow::Regroup => break,
                    Flow::Yield => {
                        self.give_way();
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// What the first of some lanes reads.
    fn first(&self, source: Source, lanes: u32) -> u32 {
        self.registers.read(source, &self.specials)[lanes.trailing_zeros() as usize % 32] as u32
    }

    fn step(
        &mut self,
        launch: &Launch<'_>,
        state: &mut State,
        current: usize,
        executing: u32,
        op: &Op,
    ) -> Result<Flow, Box<Problem>> {
        let Group { pc, lanes, .. } = self.groups[current];
        match op {
            &Op::Branch { target, .. } => {
                let whole = executing == lanes;
                self.groups[current].pc = pc + 1;
                self.part(current, executing, target);
                if whole {
                    return Ok(Flow::Next);
                }
                state.tally.divergent_branches += 1;
                Ok(Flow::Regroup)
            }
            Op::BranchIndexed { targets, index } => {
                let indices = self.registers.read(*index, &self.specials);
                self.groups[current].pc = pc + 1;
                let mut rest = executing;
                while rest != 0 {
                    let index = indices[rest.trailing_zeros() as usize];
                    let Some(&target) = usize::try_from(index).ok().and_then(|index| targets.get(index))
                    else {
                        let kind = FaultKind::BranchIndex { index, targets: targets.len() };
                        return Err(Problem::at(rest.trailing_zeros() as usize, kind));
                    };
                    let same =
                        each(rest).filter(|&lane| indices[lane] == index).fold(0, |m, lane| m | 1 << lane);
                    rest &= !same;
                    if self.groups[current].lanes != same {
                        state.tally.divergent_branches += 1;
                    }
                    self.part(current, same, target);
                }
                Ok(Flow::Regroup)
            }
            Op::Exit => {
                self.groups[current].pc = pc + 1;
                self.end(current, executing, state);
                Ok(Flow::Regroup)
            }
            &Op::Barrier { kind, barrier, threads } => {
                self.barrier(launch, state, current, executing, (kind, barrier, threads))
            }
            &Op::WarpBarrier { members } => self.warp_barrier(state, current, executing, members),
            _ => {
                let members = if executing == u32::MAX { None } else { self.members(op, executing) };
                let missing = members.map_or(0, |members| members & self.live & !executing);
                if missing & lanes != 0 {
                    let kind = FaultKind::MissingLanes { lanes: executing, missing: missing & lanes };
                    return Err(Problem::at(executing.trailing_zeros() as usize, kind));
                }
                if missing != 0 {
                    self.groups[current].waits = Waits::Lanes(missing);
                    return Ok(Flow::Regroup);
                }
                let mut step = Step {
                    launch,
                    state,
                    registers: &mut self.registers,
                    specials: &self.specials,
                    copies: &mut self.copies,
                    warp: self.index,
                    pc,
                    lanes: executing,
                };
                let flow = step.execute(op)?;
                self.groups[current].pc = pc + 1;
                Ok(flow)
            }
        }
    }

    /// The lanes that must execute an instruction together, where it names any.
    fn members(&self, op: &Op, executing: u32) -> Option<u32> {
        match op {
            Op::Shuffle { members, .. }
            | Op::Vote { members, .. }
            | Op::Ballot { members, .. }
            | Op::Match { members, .. }
            | Op::WarpReduce { members, .. }
            | Op::Elect { members, .. } => Some(self.first(*members, executing)),
            Op::LoadMatrix { .. }
            | Op::StoreMatrix { .. }
            | Op::TransposeMatrix { .. }
            | Op::MatrixMultiply(_) => Some(u32::MAX),
            _ => None,
        }
    }
}
