//! One instruction of some lanes of a warp.

use crate::block::State;
use crate::compute::{self, ComputeError};
use crate::fault::{FaultKind, Problem};
use crate::ir::{Op, Space};
use crate::launch::Launch;
use crate::memory::{Atomic, Copies, window};
use crate::registers::{LANES, Registers, Specials};

/// What an instruction works with.
pub(crate) struct Step<'a> {
    pub(crate) launch: &'a Launch<'a>,
    pub(crate) state: &'a mut State,
    pub(crate) registers: &'a mut Registers,
    pub(crate) specials: &'a Specials,
    pub(crate) copies: &'a mut Copies,
    /// The warp in its block.
    pub(crate) warp: usize,
    /// The instruction.
    pub(crate) pc: usize,
    /// The lanes that execute it.
    pub(crate) lanes: u32,
}

/// How the lanes go on that executed an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// With the next instruction.
    Next,
    /// Their warp's groups have changed: one is chosen anew.
    Regroup,
    /// With the next instruction, after others have had their turn.
    Yield,
}

/// The lanes of a mask, lowest first.
#[inline]
pub(crate) fn each(mut lanes: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if lanes == 0 {
            return None;
        }
        let lane = lanes.trailing_zeros() as usize;
        lanes &= lanes - 1;
        // The mask tells the compiler that no lane is above 31.
        Some(lane % LANES)
    })
}

impl Step<'_> {
    /// Executes what neither branches nor waits for other lanes.
    pub(crate) fn execute(&mut self, op: &Op) -> Result<Flow, Box<Problem>> {
        match op {
            Op::Load { space, ty, into, order, dst, address } => {
                self.load(*space, (*ty, *into), *order, dst, *address)?;
            }
            Op::Store { space, ty, order, src, address } => self.store(*space, *ty, *order, src, *address)?,
            &Op::CopyAsync { bytes, dst, src, source_bytes, ignore_source } => {
                self.copy_async(bytes, dst, src, source_bytes, ignore_source)?;
            }
            Op::CopyAsyncCommit => self.copies.commit(self.lanes),
            Op::CopyAsyncWait { pending } => {
                self.copies.wait(self.lanes, *pending, self.warp, self.launch.memory, self.state);
            }
            Op::LoadMatrix { transposed, dst, address } => {
                self.whole_warp()?;
                self.load_matrix(*transposed, dst, *address)?;
            }
            Op::StoreMatrix { transposed, src, address } => {
                self.whole_warp()?;
                self.store_matrix(*transposed, src, *address)?;
            }
            Op::MatrixMultiply(_) => {
                self.whole_warp()?;
                self.state.tally.matrix_multiplies += 1;
                self.compute(op)?;
            }
            Op::TransposeMatrix { .. } => {
                self.whole_warp()?;
                self.compute(op)?;
            }
            &Op::Atomic { space, op, ty, order, dst, address, b, c } => {
                self.atomic(&Atomic { space, op, ty, order, dst, address, b, c })?;
            }
            &Op::CopyAsyncArrive { barrier, no_increment } => {
                self.copy_async_arrive(barrier, no_increment)?
            }
            Op::Mbarrier(op) => return self.mbarrier(op),
            Op::Fence { .. } => {
                if let Some(races) = &mut self.state.shared.races {
                    races.fence(self.warp);
                }
            }
            &Op::AddressOf { dst, space, address, generic } => {
                let mut addresses = self.addresses(address);
                if generic {
                    addresses = addresses.map(|address| address.wrapping_add(window::start(space)));
                }
                self.registers.write(dst, self.lanes, &addresses);
            }
            &Op::ConvertAddress { space, to_generic, dst, src } => {
                let start = window::start(space);
                let addresses = self.registers.read(src, self.specials).map(|address| {
                    if to_generic { address.wrapping_add(start) } else { address.wrapping_sub(start) }
                });
                self.registers.write(dst, self.lanes, &addresses);
            }
            &Op::IsSpace { space, dst, src } => {
                let addresses = self.registers.read(src, self.specials);
                let is = |&lane: &usize| {
                    let (found, address) = window::resolve(addresses[lane]);
                    match space {
                        Space::Const => found == Space::Global && self.launch.memory.is_read_only(address),
                        Space::Global => found == Space::Global && !self.launch.memory.is_read_only(address),
                        _ => found == space,
                    }
                };
                let bits = each(self.lanes).filter(is).fold(0, |bits, lane| bits | 1 << lane);
                self.registers.write_predicate(dst, self.lanes, bits);
            }
            Op::Prefetch { .. } | Op::Nothing => {}
            Op::Trap => return Err(Problem::at(self.first_lane(), FaultKind::Trap)),
            _ => self.compute(op)?,
        }
        Ok(Flow::Next)
    }

    /// All 32 lanes must execute it together.
    fn whole_warp(&self) -> Result<(), Box<Problem>> {
        match self.lanes {
            u32::MAX => Ok(()),
            lanes => Err(Problem::at(self.first_lane(), FaultKind::MissingLanes { lanes, missing: !lanes })),
        }
    }

    fn first_lane(&self) -> usize {
        each(self.lanes).next().unwrap_or(0)
    }

    fn compute(&mut self, op: &Op) -> Result<(), Box<Problem>> {
        compute::execute(op, self.lanes, self.registers, self.specials).map_err(|error| self.computing(error))
    }

    #[cold]
    fn computing(&self, error: ComputeError) -> Box<Problem> {
        let first = self.first_lane();
        match error {
            ComputeError::Unsupported(what) => Problem::at(first, FaultKind::Unsupported(what)),
            ComputeError::InactiveSource { lane, source_lane } => {
                Problem::at(lane as usize, FaultKind::InactiveSource { source_lane })
            }
            ComputeError::NotAMember { lane, members } => {
                Problem::at(lane as usize, FaultKind::NotAMember { members })
            }
        }
    }
}
