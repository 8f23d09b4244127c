//! Arithmetic on f32 and f64.

use super::context::Context;
use super::format::{F32, f32_bits, f32_of, flushed};
use super::{ComputeError, approximate, double, exact, unsupported};
use crate::ir::{BinaryOp, FloatMode, Register, Rounding, Source, TernaryOp, Type, UnaryOp};

/// `abs`, `neg`, `rcp`, `sqrt`, `rsqrt`, `sin`, `cos`, `lg2`, `ex2`, `tanh`.
pub(super) fn unary(
    context: &mut Context<'_>,
    op: UnaryOp,
    ty: Type,
    mode: FloatMode,
    dst: Register,
    a: Source,
) -> Result<(), ComputeError> {
    if ty == Type::F64 {
        return double::unary(context, op, mode, dst, a);
    }
    let input = reader(mode);
    match op {
        UnaryOp::Absolute => {
            context.unary(dst, a, |a| u64::from(input(a).to_bits()) & 0x7fff_ffff);
        }
        UnaryOp::Negate => context.unary(dst, a, |a| u64::from(input(a).to_bits()) ^ 0x8000_0000),
        UnaryOp::SquareRoot if mode.rounding() == Rounding::NearestEven => {
            context.unary(dst, a, |a| output(mode, input(a).sqrt()));
        }
        UnaryOp::SquareRoot => {
            context.unary(dst, a, |a| narrowed(mode, exact::square_root(f64::from(input(a)))));
        }
        UnaryOp::Reciprocal => {
            context.unary(dst, a, |a| narrowed(mode, exact::quotient(1.0, f64::from(input(a)))));
        }
        _ => {
            if approximate::value(op, 1.0).is_none() {
                return unsupported(&(op, ty));
            }
            context.unary(dst, a, |a| {
                let value = approximate::value(op, f64::from(input(a))).unwrap_or(f64::NAN);
                output(mode, value as f32)
            });
        }
    }
    Ok(())
}

/// `add`, `sub`, `mul`, `div`, `min`, `max`, `copysign`.
pub(super) fn binary(
    context: &mut Context<'_>,
    op: BinaryOp,
    ty: Type,
    mode: FloatMode,
    dst: Register,
    [a, b]: [Source; 2],
) -> Result<(), ComputeError> {
    if ty == Type::F64 {
        return double::binary(context, op, mode, dst, [a, b]);
    }
    let input = reader(mode);
    let plain = !mode.flush_to_zero && !mode.saturate;
    let nearest = mode.rounding() == Rounding::NearestEven;
    match op {
        // The common forms as the vector instructions that they are.
        BinaryOp::Add if nearest && plain => {
            context.binary(dst, a, b, |a, b| f32_bits(f32_of(a) + f32_of(b)));
        }
        BinaryOp::Subtract if nearest && plain => {
            context.binary(dst, a, b, |a, b| f32_bits(f32_of(a) - f32_of(b)));
        }
        BinaryOp::Multiply if nearest && plain => {
            context.binary(dst, a, b, |a, b| f32_bits(f32_of(a) * f32_of(b)));
        }
        BinaryOp::Divide if nearest && plain => {
            context.binary(dst, a, b, |a, b| f32_bits(f32_of(a) / f32_of(b)));
        }
        BinaryOp::Add => context.binary(dst, a, b, |a, b| {
            narrowed(mode, exact::sum(f64::from(input(a)), f64::from(input(b)), mode.rounding()))
        }),
        BinaryOp::Subtract => context.binary(dst, a, b, |a, b| {
            narrowed(mode, exact::sum(f64::from(input(a)), -f64::from(input(b)), mode.rounding()))
        }),
        BinaryOp::Multiply => {
            context.binary(dst, a, b, |a, b| narrowed(mode, f64::from(input(a)) * f64::from(input(b))));
        }
        BinaryOp::Divide => context.binary(dst, a, b, |a, b| {
            narrowed(mode, exact::quotient(f64::from(input(a)), f64::from(input(b))))
        }),
        BinaryOp::Minimum | BinaryOp::Maximum => {
            let maximum = op == BinaryOp::Maximum;
            context.binary(dst, a, b, |a, b| f32_bits(extreme(maximum, mode.nan, input(a), input(b))));
        }
        BinaryOp::CopySign => {
            context.binary(dst, a, b, |a, b| a & 0x8000_0000 | b & 0x7fff_ffff);
        }
        _ => return unsupported(&(op, ty)),
    }
    Ok(())
}

/// `fma`, `mad`, `min` and `max` of three.
pub(super) fn ternary(
    context: &mut Context<'_>,
    op: TernaryOp,
    ty: Type,
    mode: FloatMode,
    dst: Register,
    sources: [Source; 3],
) -> Result<(), ComputeError> {
    if ty == Type::F64 {
        return double::ternary(context, op, mode, dst, sources);
    }
    let input = reader(mode);
    let plain = !mode.flush_to_zero && !mode.saturate;
    let wide = |x: u64| f64::from(input(x));
    match op {
        TernaryOp::FusedMultiplyAdd if plain && mode.rounding() == Rounding::NearestEven => {
            let wide = |x: u64| f64::from(f32_of(x));
            context.ternary(dst, sources, |a, b, c| {
                f32_bits(exact::multiply_add(wide(a), wide(b), wide(c), Rounding::NearestEven) as f32)
            });
        }
        TernaryOp::FusedMultiplyAdd => {
            context.ternary(dst, sources, |a, b, c| {
                narrowed(mode, exact::multiply_add(wide(a), wide(b), wide(c), mode.rounding()))
            });
        }
        TernaryOp::Minimum3 | TernaryOp::Maximum3 => {
            let maximum = op == TernaryOp::Maximum3;
            context.ternary(dst, sources, |a, b, c| {
                let first = extreme(maximum, mode.nan, input(a), input(b));
                f32_bits(extreme(maximum, mode.nan, first, input(c)))
            });
        }
        _ => return unsupported(&(op, ty)),
    }
    Ok(())
}

/// How a lane is read.
fn reader(mode: FloatMode) -> impl Fn(u64) -> f32 + Copy {
    let flush = mode.flush_to_zero;
    move |lane| if flush { flushed(f32_of(lane)) } else { f32_of(lane) }
}

/// What follows a result: the flush, the clamp, the one NaN.
#[inline(always)]
fn output(mode: FloatMode, value: f32) -> u64 {
    let value = if mode.flush_to_zero { flushed(value) } else { value };
    f32_bits(if mode.saturate { clamped(value) } else { value })
}

/// An f64 rounded to odd becomes the instruction's f32.
#[inline]
fn narrowed(mode: FloatMode, value: f64) -> u64 {
    match mode.rounding() {
        Rounding::NearestEven => output(mode, value as f32),
        rounding => output(mode, f32_of(F32.encode(value, rounding, false))),
    }
}

/// `.sat`: into [0, 1]; NaN and -0 become 0.
#[inline(always)]
pub(super) fn clamped(value: f32) -> f32 {
    if value > 0.0 { value.min(1.0) } else { 0.0 }
}

/// The smaller or larger; -0 is below 0. A NaN loses, or wins where `nan`.
#[inline(always)]
fn extreme(maximum: bool, nan: bool, a: f32, b: f32) -> f32 {
    if a.is_nan() || b.is_nan() {
        return if nan || a.is_nan() && b.is_nan() {
            f32::NAN
        } else if a.is_nan() {
            b
        } else {
            a
        };
    }
    let first = if a == b { a.is_sign_negative() } else { a < b };
    if first != maximum { a } else { b }
}
