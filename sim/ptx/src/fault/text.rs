//! How faults read.

use super::{Access, Fault, FaultKind, Other, Place, WaitingFor};
use crate::ir::Space;
use std::fmt;

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.kind)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, PTX line {}", self.kernel, self.line)?;
        if let Some((file, line)) = &self.source {
            write!(f, " ({file}:{line})")?;
        }
        let [x, y, z] = self.block;
        let [tx, ty, tz] = self.thread;
        write!(f, ", block ({x}, {y}, {z}), thread ({tx}, {ty}, {tz}) = ")?;
        write!(f, "warp {} lane {}", self.warp, self.lane)
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Access::Read => "reads",
            Access::Write => "writes",
            Access::Atomic => "changes atomically",
        })
    }
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let did = match self.access {
            Access::Read => "read",
            Access::Write => "written",
            Access::Atomic => "changed atomically",
        };
        write!(f, "{did} by warp {}", self.warp)?;
        match self.lane {
            Some(lane) => write!(f, " lane {lane}")?,
            None => write!(f, " (several lanes)")?,
        }
        write!(f, " at PTX line {}", self.line)
    }
}

/// The name of a memory, in a sentence.
fn memory(space: Space) -> &'static str {
    match space {
        Space::Generic => "memory",
        Space::Global => "global memory",
        Space::Shared => "shared memory",
        Space::Local => "local memory",
        Space::Param => "the parameters",
        Space::Const => "constant memory",
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::OutOfBounds { space, access, address, bytes, nearest } => {
                write!(f, "{access} {bytes} bytes of {} at {address:#x}, out of bounds", memory(*space))?;
                match *nearest {
                    Some((start, size)) if *address < start => {
                        write!(f, ": {} bytes before {size} bytes that begin at {start:#x}", start - address)
                    }
                    Some((start, size)) => {
                        write!(f, ": at offset {} of {size} bytes that begin at {start:#x}", address - start)
                    }
                    None => write!(f, ": nothing is allocated there"),
                }
            }
            FaultKind::Freed { access, address, allocation: (start, size) } => {
                write!(f, "{access} global memory at {address:#x}, which was freed: ")?;
                write!(f, "offset {} of {size} bytes that began at {start:#x}", address.wrapping_sub(*start))
            }
            FaultKind::Misaligned { space, access, address, align } => {
                write!(f, "{access} {} at {address:#x}, which is no multiple of {align}", memory(*space))
            }
            FaultKind::ReadOnly { address } => write!(f, "writes read-only memory at {address:#x}"),
            FaultKind::Uninitialised { space, address } => {
                write!(f, "reads {} at {address:#x}, which nobody has written", memory(*space))
            }
            FaultKind::CopyUnderWay { access, address } => {
                write!(f, "{access} shared memory at {address:#x}, which a cp.async is yet to write: ")?;
                write!(f, "its thread has not waited for it")
            }
            FaultKind::Race { address, access, other } => {
                write!(f, "{access} shared memory at {address:#x}, {other}, and no barrier lies between")
            }
            FaultKind::Deadlock { waiting } => {
                write!(f, "nobody in the block can go on")?;
                for (index, w) in waiting.iter().enumerate() {
                    let comma = if index == 0 { ":" } else { ";" };
                    write!(
                        f,
                        "{comma} warp {} lanes {:#010x} wait at PTX line {} for ",
                        w.warp, w.lanes, w.line
                    )?;
                    match w.what {
                        WaitingFor::Barrier(number) => write!(f, "barrier {number}")?,
                        WaitingFor::Lanes(lanes) => write!(f, "lanes {lanes:#010x}")?,
                    }
                }
                Ok(())
            }
            FaultKind::DivergentBarrier { barrier, other_line } => {
                write!(
                    f,
                    "waits at barrier {barrier}, where other lanes of its warp wait at PTX line {other_line}"
                )
            }
            FaultKind::Barrier(problem) => f.write_str(problem),
            FaultKind::MissingLanes { lanes, missing } => {
                write!(
                    f,
                    "lanes {lanes:#010x} execute an instruction that lanes {missing:#010x} must execute too"
                )
            }
            FaultKind::NotAMember { members } => {
                write!(f, "executes an instruction whose member mask {members:#010x} does not name its lane")
            }
            FaultKind::InactiveSource { source_lane } => {
                write!(f, "reads lane {source_lane}, which does not take part in the shuffle")
            }
            FaultKind::Mbarrier { address, problem } => write!(f, "mbarrier at {address:#x}: {problem}"),
            FaultKind::BranchIndex { index, targets } => {
                write!(f, "branches to number {index} of {targets} targets")
            }
            FaultKind::Trap => f.write_str("executes trap"),
            FaultKind::Endless { steps } => {
                write!(
                    f,
                    "its warp executed more than {steps} instructions; `Options::max_steps` is the limit"
                )
            }
            FaultKind::Unsupported(what) => write!(f, "{what} is not modelled"),
        }
    }
}
