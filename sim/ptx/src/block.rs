//! A block: its warps in turn, its memories and barriers.

use crate::barrier::{BARRIERS, Barrier};
use crate::counters::Tally;
use crate::fault::{FaultKind, Problem};
use crate::launch::Launch;
use crate::memory::{Local, Shared};
use crate::registers::{LANES, Specials};
use crate::warp::{Waits, Warp};

/// What a block's warps share.
#[derive(Debug)]
pub(crate) struct State {
    /// The block in the grid.
    pub(crate) index: [u32; 3],
    pub(crate) shared: Shared,
    pub(crate) local: Local,
    pub(crate) barriers: [Barrier; BARRIERS],
    pub(crate) tally: Tally,
    /// Threads that have not ended.
    pub(crate) live: u32,
    /// What the instruction under way did wrong that does not keep it from going on.
    pub(crate) findings: Vec<Problem>,
}

impl State {
    /// Notes a fault that does not stop the kernel; one of a kind an instruction is enough.
    #[cold]
    pub(crate) fn finding(&mut self, lane: usize, kind: FaultKind) {
        let discriminant = std::mem::discriminant(&kind);
        if self.findings.iter().all(|known| std::mem::discriminant(&known.kind) != discriminant) {
            self.findings.push(Problem { lane: lane as u32, kind });
        }
    }
}

/// A block, made once a host thread and used for one block of the grid after another.
#[derive(Debug)]
pub(crate) struct Block {
    warps: Vec<Warp>,
    pub(crate) state: State,
    used: bool,
}

impl Block {
    pub(crate) fn new(launch: &Launch<'_>) -> Block {
        let threads = launch.threads();
        let warps = threads.div_ceil(LANES);
        let kernel = launch.kernel;
        let checks = launch.options.checks;
        Block {
            warps: (0..warps).map(|index| Warp::new(index, kernel.registers, kernel.predicates)).collect(),
            state: State {
                index: [0; 3],
                shared: Shared::new(launch.shared_bytes(), warps, checks.uninitialised, checks.races),
                local: Local::new(warps * LANES, kernel.local_bytes as usize, checks.uninitialised),
                barriers: Default::default(),
                tally: Tally::new(checks.counters, kernel.instructions.len()),
                live: 0,
                findings: Vec::new(),
            },
            used: false,
        }
    }

    fn reset(&mut self, launch: &Launch<'_>, index: [u32; 3]) {
        let threads = launch.threads();
        self.state.index = index;
        self.state.live = threads as u32;
        for barrier in &mut self.state.barriers {
            barrier.reset();
        }
        if self.used {
            self.state.shared.reset();
            self.state.local.reset();
        }
        self.used = true;
        for (number, warp) in self.warps.iter_mut().enumerate() {
            let rest = threads - number * LANES;
            let lanes = if rest >= LANES { u32::MAX } else { (1 << rest) - 1 };
            let specials = Specials {
                grid: launch.id,
                dynamic_shared_bytes: launch.dynamic_shared_bytes,
                total_shared_bytes: launch.shared_bytes() as u32,
                ..Specials::new(launch.block_shape, launch.grid, index, number as u32)
            };
            warp.reset(specials, lanes);
        }
    }

    /// Executes a block of the grid to its end, or until a fault stops the launch.
    pub(crate) fn run(&mut self, launch: &Launch<'_>, index: [u32; 3]) {
        self.reset(launch, index);
        loop {
            let mut moved = false;
            for number in 0..self.warps.len() {
                let warp = &mut self.warps[number];
                if warp.is_done() {
                    continue;
                }
                let before = warp.steps;
                if let Err((pc, problem)) = warp.run(launch, &mut self.state) {
                    launch.report(&self.state, warp, pc, *problem, true);
                    return;
                }
                moved |= self.warps[number].steps != before;
                moved |= self.open_barriers(launch);
            }
            if self.warps.iter().all(Warp::is_done) || launch.is_stopped() {
                return;
            }
            if !moved {
                self.deadlock(launch);
                return;
            }
        }
    }

    /// Lets those go whose barrier is complete.
    fn open_barriers(&mut self, launch: &Launch<'_>) -> bool {
        let mut opened = false;
        for number in 0..BARRIERS {
            if !self.state.barriers[number].is_complete(self.state.live) {
                continue;
            }
            for warp in &mut self.warps {
                warp.leave_barrier(launch, &mut self.state, number as u32);
            }
            self.state.barriers[number].reset();
            self.state.tally.barriers += 1;
            opened = true;
        }
        opened
    }

    fn deadlock(&self, launch: &Launch<'_>) {
        let waiting = self.warps.iter().flat_map(|warp| warp.waiting(|pc| launch.kernel.line(pc))).collect();
        let first = self.warps.iter().find_map(|warp| {
            let group = warp.groups.iter().find(|group| group.waits != Waits::No)?;
            Some((warp, group.pc, group.lanes.trailing_zeros()))
        });
        if let Some((warp, pc, lane)) = first {
            let problem = Problem { lane, kind: FaultKind::Deadlock { waiting } };
            launch.report(&self.state, warp, pc, problem, true);
        }
    }
}
