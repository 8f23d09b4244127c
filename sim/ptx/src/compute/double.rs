//! Arithmetic on f64.

use super::context::Context;
use super::format::f64_bits;
use super::{ComputeError, approximate, directed, exact, unsupported};
use crate::ir::{BinaryOp, FloatMode, Register, Rounding, Source, TernaryOp, UnaryOp};

pub(super) fn unary(
    context: &mut Context<'_>,
    op: UnaryOp,
    mode: FloatMode,
    dst: Register,
    a: Source,
) -> Result<(), ComputeError> {
    match op {
        UnaryOp::Absolute => context.unary(dst, a, |a| a & !(1 << 63)),
        UnaryOp::Negate => context.unary(dst, a, |a| a ^ 1 << 63),
        // The approximate forms with `.ftz` see the upper half of their operand and make the upper half of their result.
        UnaryOp::Reciprocal | UnaryOp::ReciprocalSquareRoot if mode.approximate && mode.flush_to_zero => {
            context.unary(dst, a, |a| {
                let upper = f64::from_bits(a & !0xffff_ffff);
                let upper = if upper.is_subnormal() { 0f64.copysign(upper) } else { upper };
                let value = approximate::value(op, upper).unwrap_or(f64::NAN);
                let value = if value.is_subnormal() { 0f64.copysign(value) } else { value };
                f64_bits(value) & !0xffff_ffff
            });
        }
        UnaryOp::SquareRoot if mode.rounding() != Rounding::NearestEven => {
            let rounding = mode.rounding();
            context.unary(dst, a, |a| f64_bits(directed::square_root(f64::from_bits(a), rounding)));
        }
        UnaryOp::Reciprocal if mode.rounding() != Rounding::NearestEven => {
            let rounding = mode.rounding();
            context.unary(dst, a, |a| f64_bits(directed::quotient(1.0, f64::from_bits(a), rounding)));
        }
        UnaryOp::Reciprocal | UnaryOp::SquareRoot | UnaryOp::ReciprocalSquareRoot => {
            context
                .unary(dst, a, |a| f64_bits(approximate::value(op, f64::from_bits(a)).unwrap_or(f64::NAN)));
        }
        _ => return unsupported(&(op, crate::ir::Type::F64)),
    }
    Ok(())
}

pub(super) fn binary(
    context: &mut Context<'_>,
    op: BinaryOp,
    mode: FloatMode,
    dst: Register,
    [a, b]: [Source; 2],
) -> Result<(), ComputeError> {
    let rounding = mode.rounding();
    let of = f64::from_bits;
    match op {
        BinaryOp::Add if rounding != Rounding::NearestEven => {
            context.binary(dst, a, b, |a, b| f64_bits(exact::sum_rounded(of(a), of(b), rounding)));
        }
        BinaryOp::Subtract if rounding != Rounding::NearestEven => {
            context.binary(dst, a, b, |a, b| f64_bits(exact::sum_rounded(of(a), -of(b), rounding)));
        }
        BinaryOp::Multiply if rounding != Rounding::NearestEven => {
            context.binary(dst, a, b, |a, b| f64_bits(directed::product(of(a), of(b), rounding)));
        }
        BinaryOp::Divide if rounding != Rounding::NearestEven => {
            context.binary(dst, a, b, |a, b| f64_bits(directed::quotient(of(a), of(b), rounding)));
        }
        BinaryOp::Add => context.binary(dst, a, b, |a, b| f64_bits(of(a) + of(b))),
        BinaryOp::Subtract => context.binary(dst, a, b, |a, b| f64_bits(of(a) - of(b))),
        BinaryOp::Multiply => context.binary(dst, a, b, |a, b| f64_bits(of(a) * of(b))),
        BinaryOp::Divide => context.binary(dst, a, b, |a, b| f64_bits(of(a) / of(b))),
        BinaryOp::Minimum => context.binary(dst, a, b, |a, b| f64_bits(extreme(false, of(a), of(b)))),
        BinaryOp::Maximum => context.binary(dst, a, b, |a, b| f64_bits(extreme(true, of(a), of(b)))),
        BinaryOp::CopySign => context.binary(dst, a, b, |a, b| a & 1 << 63 | b & !(1 << 63)),
        _ => return unsupported(&(op, crate::ir::Type::F64)),
    }
    Ok(())
}

pub(super) fn ternary(
    context: &mut Context<'_>,
    op: TernaryOp,
    mode: FloatMode,
    dst: Register,
    sources: [Source; 3],
) -> Result<(), ComputeError> {
    let of = f64::from_bits;
    match op {
        TernaryOp::FusedMultiplyAdd if mode.rounding() != Rounding::NearestEven => {
            let rounding = mode.rounding();
            context.ternary(dst, sources, |a, b, c| {
                f64_bits(directed::multiply_add(of(a), of(b), of(c), rounding))
            });
        }
        TernaryOp::FusedMultiplyAdd => {
            context.ternary(dst, sources, |a, b, c| f64_bits(of(a).mul_add(of(b), of(c))));
        }
        _ => return unsupported(&(op, crate::ir::Type::F64)),
    }
    Ok(())
}

/// The smaller or larger; -0 is below 0. A NaN loses.
#[inline(always)]
fn extreme(maximum: bool, a: f64, b: f64) -> f64 {
    if a.is_nan() {
        return b;
    }
    if b.is_nan() {
        return a;
    }
    let first = if a == b { a.is_sign_negative() } else { a < b };
    if first != maximum { a } else { b }
}
