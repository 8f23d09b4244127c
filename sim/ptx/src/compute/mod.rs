//! Instructions that touch registers only, 32 lanes at a time.

use crate::ir::Op;
use crate::registers::{Registers, Specials};

/// Whether an instruction was one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Handled {
    /// It was executed.
    Done,
    /// It needs memory, barriers or control flow: the machine's part.
    Elsewhere,
}

/// Why an instruction on registers has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ComputeError {
    /// The instruction's form is none that PTX has, or none that is modelled.
    #[error("{0} is not modelled")]
    Unsupported(String),
    /// A shuffle reads a lane that does not take part.
    #[error("lane {lane} reads lane {source_lane}, which does not take part in the shuffle")]
    InactiveSource { lane: u32, source_lane: u32 },
    /// A lane executes an instruction of a warp whose member mask does not name it.
    #[error("lane {lane} executes the instruction, but its member mask {members:#010x} does not name it")]
    NotAMember { lane: u32, members: u32 },
    /// `match.all`, `elect` and others need one mask for all.
    #[error("an instruction of the whole warp is executed by the lanes {lanes:#010x} only")]
    PartOfWarp { lanes: u32 },
}

/// Executes an instruction for the mask's lanes, where it touches registers only.
///
/// An instruction with a member mask is given all lanes that came to it: the machine has waited for them.
#[allow(clippy::unnecessary_wraps, reason = "families that can fail follow")]
pub(crate) fn execute(
    op: &Op,
    lanes: u32,
    registers: &mut Registers,
    specials: &Specials,
) -> Result<Handled, ComputeError> {
    match *op {
        Op::Move { dst, src, .. } => {
            let value = registers.read(src, specials);
            registers.write(dst, lanes, &value);
        }
        _ => return Ok(Handled::Elsewhere),
    }
    Ok(Handled::Done)
}
