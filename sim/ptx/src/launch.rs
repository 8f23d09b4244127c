//! A launch: the blocks of a grid on the host's threads.

use crate::block::{Block, State};
use crate::counters::{Counters, Tally};
use crate::error::{Error, Faults};
use crate::fault::{Fault, Place, Problem};
use crate::ir::Kernel;
use crate::memory::GlobalMemory;
use crate::options::Options;
use crate::warp::Warp;
use std::mem::discriminant;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// What all blocks of a launch have in common.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    pub(crate) kernel: &'a Kernel,
    /// The source files, by the numbers that lines name.
    pub(crate) files: &'a [(u32, String)],
    pub(crate) memory: &'a GlobalMemory,
    /// The addresses of the module's variables.
    pub(crate) variables: &'a [u64],
    /// The parameters' bytes.
    pub(crate) params: Vec<u8>,
    pub(crate) grid: [u32; 3],
    pub(crate) block_shape: [u32; 3],
    pub(crate) dynamic_shared_bytes: u32,
    pub(crate) options: &'a Options,
    /// `%gridid`.
    pub(crate) id: u64,
    /// The faults, with the instructions that had them.
    pub(crate) faults: Mutex<Vec<(usize, Fault)>>,
    pub(crate) stopped: AtomicBool,
}

impl Launch<'_> {
    /// Threads of a block.
    pub(crate) fn threads(&self) -> usize {
        self.block_shape.iter().map(|&n| n as usize).product()
    }

    /// Bytes of shared memory of a block.
    pub(crate) fn shared_bytes(&self) -> usize {
        self.kernel.shared_bytes as usize + self.dynamic_shared_bytes as usize
    }

    /// Whether blocks are to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// Line and source of an instruction.
    pub(crate) fn line(&self, pc: usize) -> (u32, Option<(String, u32)>) {
        let Some(instruction) = self.kernel.instructions.get(pc) else { return (0, None) };
        let source = instruction.source.map(|source| {
            let file = self.files.iter().find(|(number, _)| *number == source.file);
            (file.map_or_else(|| format!("file {}", source.file), |(_, name)| name.clone()), source.line)
        });
        (instruction.line, source)
    }

    /// Takes the faults of an instruction that went on.
    #[cold]
    pub(crate) fn report_findings(&self, state: &mut State, warp: &Warp, pc: usize) {
        for problem in std::mem::take(&mut state.findings) {
            self.report(state, warp, pc, problem, false);
        }
    }

    /// Takes a fault; `fatal`: the launch cannot go on.
    #[cold]
    pub(crate) fn report(&self, state: &State, warp: &Warp, pc: usize, problem: Problem, fatal: bool) {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let Problem { lane, kind } = problem;
        let known =
            |(at, fault): &(usize, Fault)| *at == pc && discriminant(&fault.kind) == discriminant(&kind);
        let limit = self.options.max_faults.max(1);
        if !faults.iter().any(known) && faults.len() < limit {
            let (line, source) = self.line(pc);
            let thread = warp.specials.thread.map(|axis| axis[lane as usize % 32] as u32);
            let kernel = self.kernel.name.clone();
            let (block, warp) = (state.index, warp.index as u32);
            let place = Place { kernel, line, source, block, thread, warp, lane };
            faults.push((pc, Fault { kind, place }));
        }
        if fatal || faults.len() >= limit {
            self.stopped.store(true, Relaxed);
        }
    }

    /// Executes all blocks.
    pub(crate) fn run(self) -> Result<Counters, Error> {
        let blocks: u64 = self.grid.iter().map(|&n| u64::from(n)).product();
        let next = AtomicU64::new(0);
        let work = || {
            let mut block = Block::new(&self);
            loop {
                let index = next.fetch_add(1, Relaxed);
                if index >= blocks || self.is_stopped() {
                    return block.state.tally;
                }
                let [x, y, _] = self.grid.map(u64::from);
                block.run(&self, [(index % x) as u32, (index / x % y) as u32, (index / x / y) as u32]);
            }
        };
        let threads = (self.options.threads.max(1) as u64).min(blocks) as usize;
        let tallies: Vec<Tally> = if threads <= 1 {
            vec![work()]
        } else {
            std::thread::scope(|scope| {
                // Where the host has no more threads, those that there are do it all; this one is among them.
                let start = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
                let workers: Vec<_> = (1..threads).map_while(start).collect();
                let own = work();
                let others = workers
                    .into_iter()
                    .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
                std::iter::once(own).chain(others).collect()
            })
        };
        let mut tally = Tally::new(self.options.checks.counters, self.kernel.instructions.len());
        for other in &tallies {
            tally.add(other);
        }
        let counters = tally.counters(|pc| self.line(pc));
        let faults: Vec<Fault> = {
            let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
            faults.drain(..).map(|(_, fault)| fault).collect()
        };
        if faults.is_empty() { Ok(counters) } else { Err(Error::Faults(Faults(faults))) }
    }
}
