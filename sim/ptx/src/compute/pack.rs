//! `mov` of several registers into one, and of one into several.

use super::context::Context;
use super::{ComputeError, unsupported};
use crate::ir::{Register, Source};
use crate::registers::{LANES, ones};

/// Parts of `bits` each; the first is the lowest.
pub(super) fn pack(
    context: &mut Context<'_>,
    dst: Register,
    parts: &[Source],
    bits: u32,
) -> Result<(), ComputeError> {
    if parts.len() as u32 * bits > 64 {
        return unsupported(&("mov", parts.len(), bits));
    }
    let mut result = [0; LANES];
    for (shift, &part) in (0..).step_by(bits as usize).zip(parts) {
        let part = context.read(part);
        for (result, part) in result.iter_mut().zip(part) {
            *result |= (part & ones(bits)) << shift;
        }
    }
    context.write(dst, &result);
    Ok(())
}

/// The same backwards; parts that nobody wants are left out.
pub(super) fn unpack(context: &mut Context<'_>, dst: &[Option<Register>], src: Source, bits: u32) {
    // Read first: a destination may be the source.
    let value = context.read(src);
    for (shift, &dst) in (0..).step_by(bits as usize).zip(dst) {
        if let Some(dst) = dst {
            let part = value.map(|value| value.checked_shr(shift).unwrap_or(0) & ones(bits));
            context.write(dst, &part);
        }
    }
}
