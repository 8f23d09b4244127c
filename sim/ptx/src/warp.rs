//! A warp: its registers, and its lanes in groups that execute together.
//!
//! Lanes that part at a branch go on as two groups. The group that is least far in the text runs until it comes to where another
//! one is, and they unite: so lanes that parted meet again at the first instruction that both reach, as compilers lay out
//! code, and no analysis of the kernel is needed.

use crate::block::State;
use crate::fault::{FaultKind, Problem, Waiting, WaitingFor};
use crate::ir::{BarrierKind, Op, Source};
use crate::launch::Launch;
use crate::memory::Copies;
use crate::registers::{Registers, Specials};
use crate::step::{Flow, Step, each};

/// Instructions that a warp executes before others have their turn: who waits for what another warp writes gets on.
const TURN: u32 = 4096;
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
    chosen: u64,
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
            loop {
                let Group { pc, lanes, .. } = self.groups[current];
                if turn == 0 {
                    if self.steps > launch.options.max_steps {
                        let kind = FaultKind::Endless { steps: launch.options.max_steps };
                        return Err((pc, Problem::at(lanes.trailing_zeros() as usize, kind)));
                    }
                    return Ok(());
                }
                turn -= 1;
                let Some(instruction) = launch.kernel.instructions.get(pc) else {
                    self.end(current, lanes, state);
                    break;
                };
                self.steps += 1;
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
                let turned = if executing == 0 {
                    self.groups[current].pc += 1;
                    Turned::On
                } else {
                    let turned = self.step(launch, state, current, executing, &instruction.op);
                    if !state.findings.is_empty() {
                        launch.report_findings(state, self, pc);
                    }
                    turned.map_err(|problem| (pc, problem))?
                };
                match turned {
                    Turned::On if self.groups.len() == 1 => {}
                    Turned::On => {
                        self.parted += 1;
                        if self.meets(current, extra > 0) || self.parted > PATIENCE {
                            break;
                        }
                        if extra > 0 {
                            extra -= 1;
                            if extra == 0 {
                                break;
                            }
                        }
                    }
                    Turned::Anew => break,
                    Turned::Away => {
                        // What it waits for may be up to another group of this warp.
                        self.parted += PATIENCE / 8;
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// The group that runs next, and for how many instructions it may run before others that are less far.
    fn choose(&mut self) -> Option<(usize, u32)> {
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
    fn end(&mut self, current: usize, lanes: u32, state: &mut State) {
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

    /// What the first of some lanes reads.
    fn first(&self, source: Source, lanes: u32) -> u32 {
        self.registers.read(source, &self.specials)[lanes.trailing_zeros() as usize % 32] as u32
    }

    /// Lanes go to another instruction; the others of their group to the next.
    fn part(&mut self, current: usize, lanes: u32, target: usize) {
        let group = &mut self.groups[current];
        if group.lanes == lanes {
            group.pc = target;
            return;
        }
        group.lanes &= !lanes;
        let parted = Group { pc: target, lanes, ..*group };
        self.groups.push(parted);
    }

    fn step(
        &mut self,
        launch: &Launch<'_>,
        state: &mut State,
        current: usize,
        executing: u32,
        op: &Op,
    ) -> Result<Turned, Box<Problem>> {
        let Group { pc, lanes, .. } = self.groups[current];
        match op {
            &Op::Branch { target, .. } => {
                let whole = executing == lanes;
                self.groups[current].pc = pc + 1;
                self.part(current, executing, target);
                if whole {
                    return Ok(Turned::On);
                }
                state.tally.divergent_branches += 1;
                Ok(Turned::Anew)
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
                Ok(Turned::Anew)
            }
            Op::Exit => {
                self.groups[current].pc = pc + 1;
                self.end(current, executing, state);
                Ok(Turned::Anew)
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
                    return Ok(Turned::Anew);
                }
                self.specials.clock = self.steps;
                self.specials.global_timer = self.steps;
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
                Ok(match flow {
                    Flow::Next => Turned::On,
                    Flow::Yield => Turned::Away,
                })
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

    /// `bar.warp.sync`, whose lanes may stand at different ones.
    fn warp_barrier(
        &mut self,
        state: &mut State,
        current: usize,
        executing: u32,
        members: Source,
    ) -> Result<Turned, Box<Problem>> {
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
        Ok(Turned::Anew)
    }

    /// `bar` and `barrier`.
    fn barrier(
        &mut self,
        launch: &Launch<'_>,
        state: &mut State,
        current: usize,
        executing: u32,
        (kind, barrier, threads): (BarrierKind, Source, Option<Source>),
    ) -> Result<Turned, Box<Problem>> {
        let lane = executing.trailing_zeros() as usize;
        let number = self.first(barrier, executing);
        let threads = threads.map(|threads| self.first(threads, executing));
        let pc = self.groups[current].pc;
        for other in &self.groups {
            if other.waits == Waits::Barrier(number) && other.pc != pc {
                let other_line = launch.kernel.instructions.get(other.pc).map_or(0, |i| i.line);
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
        Ok(Turned::Anew)
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

/// How a group goes on after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turned {
    /// With its next one.
    On,
    /// The groups have changed: one is chosen anew.
    Anew,
    /// After other warps.
    Away,
}
