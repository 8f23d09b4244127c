//! Logic, shifts, bit fields, permutations of bytes.

use super::context::Context;
use super::{ComputeError, unsupported};
use crate::ir::{BinaryOp, PermuteMode, Register, Source, TernaryOp, Type, UnaryOp};
use crate::registers::{ones, sign_extended};

/// `not`, `cnot`, `popc`, `clz`, `brev`, `bfind`.
pub(super) fn unary(
    context: &mut Context<'_>,
    op: UnaryOp,
    ty: Type,
    dst: Register,
    a: Source,
) -> Result<(), ComputeError> {
    let bits = ty.bits();
    let all = ones(bits);
    match op {
        UnaryOp::Not => context.unary(dst, a, |a| !a & all),
        UnaryOp::LogicalNot => context.unary(dst, a, |a| u64::from(a & all == 0)),
        UnaryOp::PopulationCount => context.unary(dst, a, |a| u64::from((a & all).count_ones())),
        UnaryOp::CountLeadingZeros => {
            context.unary(dst, a, |a| u64::from((a & all).leading_zeros() + bits - 64));
        }
        UnaryOp::BitReverse => context.unary(dst, a, |a| (a & all).reverse_bits() >> (64 - bits)),
        UnaryOp::FindLeadingBit { shift } => {
            let signed = ty.is_signed();
            context.unary(dst, a, |a| {
                let negative = signed && sign_extended(a, bits) < 0;
                // The highest bit that differs from the sign; none: all ones.
                match (if negative { !a & all } else { a & all }).checked_ilog2() {
                    None => 0xffff_ffff,
                    Some(at) if shift => u64::from(bits - 1 - at),
                    Some(at) => u64::from(at),
                }
            });
        }
        _ => return unsupported(&(op, ty)),
    }
    Ok(())
}

/// `and`, `or`, `xor`, `shl`, `shr`, `bmsk`, `szext`.
pub(super) fn binary(
    context: &mut Context<'_>,
    op: BinaryOp,
    ty: Type,
    dst: Register,
    [a, b]: [Source; 2],
) -> Result<(), ComputeError> {
    let bits = ty.bits();
    let all = ones(bits);
    match op {
        BinaryOp::And => context.binary(dst, a, b, |a, b| a & b),
        BinaryOp::Or => context.binary(dst, a, b, |a, b| a | b),
        BinaryOp::Xor => context.binary(dst, a, b, |a, b| a ^ b),
        // Amounts are 32-bit, and those above the width are clamped to it.
        BinaryOp::ShiftLeft => context.binary(dst, a, b, |a, b| {
            let by = amount(b);
            if by >= bits { 0 } else { a << by & all }
        }),
        BinaryOp::ShiftRight if ty.is_signed() => context.binary(dst, a, b, |a, b| {
            let by = amount(b).min(bits - 1);
            (sign_extended(a, bits) >> by) as u64 & all
        }),
        BinaryOp::ShiftRight => context.binary(dst, a, b, |a, b| {
            let by = amount(b);
            if by >= bits { 0 } else { (a & all) >> by }
        }),
        BinaryOp::BitMask => context.binary(dst, a, b, |a, b| {
            let (position, width) = (amount(a), amount(b).min(32));
            if position >= 32 || width == 0 { 0 } else { ones(width) << position & 0xffff_ffff }
        }),
        BinaryOp::SignOrZeroExtend => {
            let signed = ty.is_signed();
            context.binary(dst, a, b, |a, b| match amount(b).min(32) {
                0 => 0,
                n if signed => sign_extended(a, n) as u64 & 0xffff_ffff,
                n => a & ones(n),
            });
        }
        _ => return unsupported(&(op, ty)),
    }
    Ok(())
}

/// `lop3`, `shf`, `prmt`, `bfe`.
pub(super) fn ternary(
    context: &mut Context<'_>,
    op: TernaryOp,
    ty: Type,
    dst: Register,
    sources: [Source; 3],
) -> Result<(), ComputeError> {
    match op {
        TernaryOp::Logic(table) => logic(context, table, dst, sources),
        TernaryOp::FunnelShift { left, wrap } => context.ternary(dst, sources, |a, b, c| {
            let by = if wrap { amount(c) & 31 } else { amount(c).min(32) };
            let both = b << 32 | a & 0xffff_ffff;
            if left { both << by >> 32 & 0xffff_ffff } else { both >> by & 0xffff_ffff }
        }),
        TernaryOp::Permute(mode) => context.ternary(dst, sources, |a, b, c| permute(mode, a, b, c)),
        TernaryOp::BitFieldExtract => {
            let (bits, signed) = (ty.bits(), ty.is_signed());
            context.ternary(dst, sources, |a, b, c| bit_field(a, b, c, bits, signed));
        }
        _ => return unsupported(&(op, ty)),
    }
    Ok(())
}

/// `bfi`: `a`'s low bits take `b`'s place from `position` on, `length` of them.
pub(super) fn insert_field(
    context: &mut Context<'_>,
    ty: Type,
    dst: Register,
    [a, b]: [Source; 2],
    [position, length]: [Source; 2],
) {
    let bits = ty.bits();
    let (a, b, position, length) =
        (context.read(a), context.read(b), context.read(position), context.read(length));
    let result = std::array::from_fn(|lane| {
        let (at, n) = (position[lane] as u32 & 0xff, (length[lane] as u32 & 0xff).min(64));
        if n == 0 || at >= bits {
            return b[lane] & ones(bits);
        }
        let field = ones(n) << at & ones(bits);
        b[lane] & ones(bits) & !field | a[lane] << at & field
    });
    context.write(dst, &result);
}

/// A shift's amount.
fn amount(lane: u64) -> u32 {
    lane as u32
}

/// Each bit of the result is the table's bit at 4 a + 2 b + c.
fn logic(context: &mut Context<'_>, table: u8, dst: Register, sources: [Source; 3]) {
    // All ones for each of the table's bits that is set: no branches a lane.
    let rows: [u64; 8] = std::array::from_fn(|row| u64::from(table >> row & 1).wrapping_neg());
    context.ternary(dst, sources, |a, b, c| {
        let mut result = 0;
        for (row, set) in rows.iter().enumerate() {
            let of = |x: u64, bit: usize| if row & bit == 0 { !x } else { x };
            result |= set & of(a, 4) & of(b, 2) & of(c, 1);
        }
        result & 0xffff_ffff
    });
}

/// Four of the eight bytes of `b:a`.
fn permute(mode: PermuteMode, a: u64, b: u64, selector: u64) -> u64 {
    let bytes = (b << 32 | a & 0xffff_ffff).to_le_bytes();
    let by = selector & 3;
    let mut result = [0; 4];
    for (i, byte) in (0..).zip(&mut result) {
        let nibble = selector >> (4 * i) & 0xf;
        let from = match mode {
            PermuteMode::Index => nibble & 7,
            PermuteMode::Forward4 => by + i,
            PermuteMode::Backward4 => by.wrapping_sub(i) & 7,
            PermuteMode::Replicate8 => by,
            PermuteMode::EdgeClampLeft => by.max(i),
            PermuteMode::EdgeClampRight => by.min(i),
            PermuteMode::Replicate16 => (by & 1) * 2 + (i & 1),
        };
        let chosen = bytes[from as usize & 7];
        let sign_only = mode == PermuteMode::Index && nibble & 8 != 0;
        *byte = if sign_only { ((chosen as i8) >> 7) as u8 } else { chosen };
    }
    u64::from(u32::from_le_bytes(result))
}

/// `bfe`: the field's bits, and above them its highest bit where the type is signed.
fn bit_field(a: u64, position: u64, length: u64, bits: u32, signed: bool) -> u64 {
    let (at, n) = (position as u32 & 0xff, length as u32 & 0xff);
    if n == 0 {
        return 0;
    }
    let value = if signed { sign_extended(a, bits) } else { (a & ones(bits)) as i64 };
    // A field that reaches beyond the value ends with the value's own sign.
    let shifted = match (signed, at >= bits) {
        (true, _) => (value >> at.min(63)) as u64,
        (false, true) => 0,
        (false, false) => value as u64 >> at,
    };
    let field = if n >= 64 {
        shifted
    } else if signed {
        sign_extended(shifted, n) as u64
    } else {
        shifted & ones(n)
    };
    field & ones(bits)
}
