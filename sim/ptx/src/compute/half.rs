//! Arithmetic on f16 and bf16, single and packed.

use super::context::{Context, halves1, halves2, halves3};
use super::format::{BF16, F16, Format};
use super::quick::{f32_of_f16, nearest_bf16, nearest_f16, odd_f32};
use super::{ComputeError, approximate, exact, unsupported};
use crate::ir::{BinaryOp, FloatMode, Register, Rounding, Source, TernaryOp, Type, UnaryOp};

/// The only rounding that arithmetic on halves has.
const NEAREST: Rounding = Rounding::NearestEven;

/// An instruction on f16 or, where `BRAIN`, on bf16.
#[derive(Clone, Copy)]
struct Half<const BRAIN: bool> {
    mode: FloatMode,
}

impl<const BRAIN: bool> Half<BRAIN> {
    const FORMAT: Format = if BRAIN { BF16 } else { F16 };

    /// A subnormal value's zero, where the instruction flushes.
    #[inline(always)]
    fn flushed(self, bits: u64) -> u64 {
        let zero = self.mode.flush_to_zero && Self::FORMAT.is_below_normal(bits);
        if zero { bits & 0x8000 } else { bits }
    }

    #[inline(always)]
    fn read(self, bits: u64) -> f64 {
        let bits = self.flushed(bits) as u32;
        f64::from(if BRAIN { f32::from_bits(bits << 16) } else { f32_of_f16(bits) })
    }

    /// An f64 rounded to odd becomes the instruction's result.
    #[inline(always)]
    fn result(self, value: f64) -> u64 {
        let mut value = value;
        if self.mode.saturate {
            value = if value > 0.0 { value.min(1.0) } else { 0.0 };
        }
        // `.relu` keeps NaN.
        if self.mode.relu && value <= 0.0 {
            value = 0.0;
        }
        let bits = odd_f32(value).to_bits();
        self.flushed(u64::from(if BRAIN { nearest_bf16(bits) } else { nearest_f16(bits) }))
    }

    /// The smaller or larger; -0 is below 0. A NaN loses, or wins where `.NaN`.
    fn extreme(self, maximum: bool, a: u64, b: u64) -> u64 {
        let (x, y) = (self.read(a), self.read(b));
        let chosen = match (x.is_nan(), y.is_nan()) {
            (true, true) => f64::NAN,
            (true, false) | (false, true) if self.mode.nan => f64::NAN,
            (true, false) => y,
            (false, true) => x,
            (false, false) => {
                let first = if x == y { x.is_sign_negative() } else { x < y };
                if first != maximum { x } else { y }
            }
        };
        self.result(chosen)
    }
}

/// The sum of two f16, or bf16 where `BRAIN`, rounded once.
pub(crate) fn sum<const BRAIN: bool>(a: u64, b: u64) -> u64 {
    let half = Half::<BRAIN> { mode: FloatMode::PLAIN };
    half.result(exact::sum(half.read(a), half.read(b), NEAREST))
}

/// `abs`, `neg`, `ex2`, `tanh`.
pub(super) fn unary(
    context: &mut Context<'_>,
    op: UnaryOp,
    ty: Type,
    mode: FloatMode,
    dst: Register,
    a: Source,
) -> Result<(), ComputeError> {
    match ty {
        Type::F16 | Type::F16x2 => unary_of::<false>(context, op, ty, mode, dst, a),
        Type::BF16 | Type::BF16x2 => unary_of::<true>(context, op, ty, mode, dst, a),
        _ => unsupported(&(op, ty)),
    }
}

fn unary_of<const BRAIN: bool>(
    context: &mut Context<'_>,
    op: UnaryOp,
    ty: Type,
    mode: FloatMode,
    dst: Register,
    a: Source,
) -> Result<(), ComputeError> {
    let half = Half::<BRAIN> { mode };
    let packed = matches!(ty, Type::F16x2 | Type::BF16x2);
    let sign = 0x8000;
    let f = move |a: u64| match op {
        UnaryOp::Absolute => half.flushed(a) & !sign,
        UnaryOp::Negate => half.flushed(a) ^ sign,
        _ => half.result(approximate::value(op, half.read(a)).unwrap_or(f64::NAN)),
    };
    if !matches!(op, UnaryOp::Absolute | UnaryOp::Negate | UnaryOp::Exponential | UnaryOp::HyperbolicTangent)
    {
        return unsupported(&(op, ty));
    }
    if packed {
        context.unary(dst, a, halves1(f));
    } else {
        context.unary(dst, a, f);
    }
    Ok(())
}

/// `add`, `sub`, `mul`, `min`, `max`.
pub(super) fn binary(
    context: &mut Context<'_>,
    op: BinaryOp,
    ty: Type,
    mode: FloatMode,
    dst: Register,
    [a, b]: [Source; 2],
) -> Result<(), ComputeError> {
    match ty {
        Type::F16 | Type::F16x2 => binary_of::<false>(context, op, ty, mode, dst, [a, b]),
        Type::BF16 | Type::BF16x2 => binary_of::<true>(context, op, ty, mode, dst, [a, b]),
        _ => unsupported(&(op, ty)),
    }
}

fn binary_of<const BRAIN: bool>(
    context: &mut Context<'_>,
    op: BinaryOp,
    ty: Type,
    mode: FloatMode,
    dst: Register,
    [a, b]: [Source; 2],
) -> Result<(), ComputeError> {
    let half = Half::<BRAIN> { mode };
    let packed = matches!(ty, Type::F16x2 | Type::BF16x2);
    let nearest = mode.rounding() == NEAREST;
    macro_rules! apply {
        ($f:expr) => {
            if packed { context.binary(dst, a, b, halves2($f)) } else { context.binary(dst, a, b, $f) }
        };
    }
    match op {
        BinaryOp::Add if nearest => {
            apply!(|a, b| half.result(exact::sum(half.read(a), half.read(b), NEAREST)))
        }
        BinaryOp::Subtract if nearest => {
            apply!(|a, b| half.result(exact::sum(half.read(a), -half.read(b), NEAREST)));
        }
        BinaryOp::Multiply if nearest => apply!(|a, b| half.result(half.read(a) * half.read(b))),
        BinaryOp::Minimum => apply!(|a, b| half.extreme(false, a, b)),
        BinaryOp::Maximum => apply!(|a, b| half.extreme(true, a, b)),
        _ => return unsupported(&(op, ty)),
    }
    Ok(())
}

/// `fma`.
pub(super) fn ternary(
    context: &mut Context<'_>,
    op: TernaryOp,
    ty: Type,
    mode: FloatMode,
    dst: Register,
    sources: [Source; 3],
) -> Result<(), ComputeError> {
    match ty {
        Type::F16 | Type::F16x2 => ternary_of::<false>(context, op, ty, mode, dst, sources),
        Type::BF16 | Type::BF16x2 => ternary_of::<true>(context, op, ty, mode, dst, sources),
        _ => unsupported(&(op, ty)),
    }
}

fn ternary_of<const BRAIN: bool>(
    context: &mut Context<'_>,
    op: TernaryOp,
    ty: Type,
    mode: FloatMode,
    dst: Register,
    sources: [Source; 3],
) -> Result<(), ComputeError> {
    let half = Half::<BRAIN> { mode };
    let packed = matches!(ty, Type::F16x2 | Type::BF16x2);
    macro_rules! apply {
        ($f:expr) => {
            if packed {
                context.ternary(dst, sources, halves3($f))
            } else {
                context.ternary(dst, sources, $f)
            }
        };
    }
    match op {
        TernaryOp::FusedMultiplyAdd if mode.rounding() == NEAREST => apply!(|a, b, c| {
            half.result(exact::multiply_add(half.read(a), half.read(b), half.read(c), NEAREST))
        }),
        TernaryOp::Minimum3 | TernaryOp::Maximum3 => {
            let maximum = op == TernaryOp::Maximum3;
            apply!(|a, b, c| half.extreme(maximum, half.extreme(maximum, a, b), c));
        }
        _ => return unsupported(&(op, ty)),
    }
    Ok(())
}
