//! Instructions that integers and floating-point numbers share, and those of floating-point numbers.

use super::super::error::Result;
use super::form::Form;
use crate::ir::{BinaryOp, CarryOp, FloatMode, Op, Rounding, TernaryOp, Type, UnaryOp};

pub(super) const INTEGERS: &[Type] = &[Type::U16, Type::U32, Type::U64, Type::S16, Type::S32, Type::S64];
const PACKED_INTEGERS: &[Type] = &[Type::U16x2, Type::S16x2];
const FLOATS: &[Type] = &[Type::F32, Type::F64];
const HALVES: &[Type] = &[Type::F16, Type::F16x2, Type::BF16, Type::BF16x2];
const ROUNDED: &[&str] = &["rn", "rz", "rm", "rp", "ftz", "sat"];

pub(super) fn read(mut form: Form<'_, '_, '_>) -> Result<()> {
    match form.written.mnemonic.text {
        "add" => sum(form, BinaryOp::Add, CarryOp::Add),
        "sub" => sum(form, BinaryOp::Subtract, CarryOp::Subtract),
        "addc" => carried(form, CarryOp::Add, true),
        "subc" => carried(form, CarryOp::Subtract, true),
        "mul" => product(form),
        "mad" => multiply_add(form, false),
        "madc" => multiply_add(form, true),
        "fma" => {
            let mode = form.mode(&["rn", "rz", "rm", "rp", "ftz", "sat", "relu"]);
            if mode.rounding.is_none() {
                return Err(form.unexpected_modifier("a rounding"));
            }
            let ty = form.ty(&[FLOATS, HALVES].concat())?;
            check_mode(&form, ty, mode)?;
            ternary(form, TernaryOp::FusedMultiplyAdd, ty, mode)
        }
        "div" => {
            let mode = form.mode(&["approx", "full", "rn", "rz", "rm", "rp", "ftz"]);
            let ty = form.ty(&[INTEGERS, FLOATS].concat())?;
            if ty.is_float() && mode.rounding.is_none() && !mode.approximate {
                return Err(form.conflict("`.approx`, `.full` or a rounding before the type"));
            }
            check_mode(&form, ty, mode)?;
            binary(form, BinaryOp::Divide, ty, mode)
        }
        "min" => extreme(form, BinaryOp::Minimum, TernaryOp::Minimum3),
        "max" => extreme(form, BinaryOp::Maximum, TernaryOp::Maximum3),
        "abs" => {
            let mode = form.mode(&["ftz"]);
            let ty = form.ty(&[&[Type::S16, Type::S32, Type::S64], FLOATS, HALVES].concat())?;
            unary(form, UnaryOp::Absolute, ty, mode)
        }
        "neg" => {
            let mode = form.mode(&["ftz"]);
            let ty = form.ty(&[&[Type::S16, Type::S32, Type::S64], FLOATS, HALVES].concat())?;
            unary(form, UnaryOp::Negate, ty, mode)
        }
        "copysign" => {
            let ty = form.ty(FLOATS)?;
            // PTX names the sign first: `copysign d, a, b` is b with the sign of a.
            binary(form, BinaryOp::CopySign, ty, FloatMode::PLAIN)
        }
        "rcp" => rounded_or_approximate(form, UnaryOp::Reciprocal),
        "sqrt" => rounded_or_approximate(form, UnaryOp::SquareRoot),
        "rsqrt" => approximate(form, UnaryOp::ReciprocalSquareRoot, FLOATS),
        "sin" => approximate(form, UnaryOp::Sine, &[Type::F32]),
        "cos" => approximate(form, UnaryOp::Cosine, &[Type::F32]),
        "lg2" => approximate(form, UnaryOp::Logarithm, &[Type::F32]),
        "ex2" => approximate(form, UnaryOp::Exponential, &[&[Type::F32], HALVES].concat()),
        "tanh" => approximate(form, UnaryOp::HyperbolicTangent, &[&[Type::F32], HALVES].concat()),
        _ => Err(form.unknown()),
    }
}

pub(super) fn unary(mut form: Form<'_, '_, '_>, op: UnaryOp, ty: Type, mode: FloatMode) -> Result<()> {
    let (dst, a) = (form.dst(ty)?, form.src(ty)?);
    form.done(Op::Unary { op, ty, mode, dst, a })
}

pub(super) fn binary(mut form: Form<'_, '_, '_>, op: BinaryOp, ty: Type, mode: FloatMode) -> Result<()> {
    let (dst, a, b) = (form.dst(ty)?, form.src(ty)?, form.src(ty)?);
    form.done(Op::Binary { op, ty, mode, dst, a, b })
}

pub(super) fn ternary(mut form: Form<'_, '_, '_>, op: TernaryOp, ty: Type, mode: FloatMode) -> Result<()> {
    let (dst, a, b, c) = (form.dst(ty)?, form.src(ty)?, form.src(ty)?, form.src(ty)?);
    form.done(Op::Ternary { op, ty, mode, dst, a, b, c })
}

/// Integers have none of these modifiers but `.sat` where it is said, and an f64 is never flushed.
fn check_mode(form: &Form<'_, '_, '_>, ty: Type, mode: FloatMode) -> Result<()> {
    let integer = !ty.is_float() && mode != FloatMode::PLAIN;
    let half = ty.is_float() && ty.bits() == 16 || matches!(ty, Type::F16x2 | Type::BF16x2);
    // Halves have one rounding, and `.relu` is theirs alone.
    let nearest = mode.rounding() == Rounding::NearestEven;
    if (half && !nearest) || (mode.relu && !half) || (ty == Type::F64 && mode.approximate) {
        return Err(form.conflict("a type that the modifiers before it go with"));
    }
    if integer || (ty == Type::F64 && (mode.flush_to_zero || mode.saturate)) {
        return Err(form.conflict("a type that the modifiers before it go with"));
    }
    Ok(())
}

fn sum(mut form: Form<'_, '_, '_>, op: BinaryOp, carry: CarryOp) -> Result<()> {
    if form.flag("cc") {
        return carry_operands(form, carry, false, true);
    }
    let mode = form.mode(ROUNDED);
    let ty = form.ty(&[INTEGERS, PACKED_INTEGERS, FLOATS, HALVES].concat())?;
    let saturated = FloatMode { saturate: true, ..FloatMode::PLAIN };
    if ty != Type::S32 || mode != saturated {
        check_mode(&form, ty, mode)?;
    }
    binary(form, op, ty, mode)
}

fn carried(mut form: Form<'_, '_, '_>, op: CarryOp, reads: bool) -> Result<()> {
    let writes = form.flag("cc");
    carry_operands(form, op, reads, writes)
}

fn carry_operands(mut form: Form<'_, '_, '_>, op: CarryOp, reads: bool, writes: bool) -> Result<()> {
    let ty = form.ty(&[Type::U32, Type::S32, Type::U64, Type::S64])?;
    let (dst, a, b) = (form.dst(ty)?, form.src(ty)?, form.src(ty)?);
    let c = match op {
        CarryOp::Add | CarryOp::Subtract => None,
        CarryOp::MultiplyAddLow | CarryOp::MultiplyAddHigh => Some(form.src(ty)?),
    };
    form.done(Op::Carry { op, ty, reads, writes, dst, a, b, c })
}

fn product(mut form: Form<'_, '_, '_>) -> Result<()> {
    let part = [("lo", BinaryOp::Multiply), ("hi", BinaryOp::MultiplyHigh), ("wide", BinaryOp::MultiplyWide)];
    match form.choose(&part) {
        Some(BinaryOp::MultiplyWide) => {
            let ty = form.ty(&[Type::U16, Type::U32, Type::S16, Type::S32])?;
            let (dst, a, b) = (form.dst(wide(ty))?, form.src(ty)?, form.src(ty)?);
            form.done(Op::Binary { op: BinaryOp::MultiplyWide, ty, mode: FloatMode::PLAIN, dst, a, b })
        }
        Some(op) => {
            let ty = form.ty(INTEGERS)?;
            binary(form, op, ty, FloatMode::PLAIN)
        }
        None => {
            let mode = form.mode(ROUNDED);
            let ty = form.ty(&[FLOATS, HALVES].concat())?;
            check_mode(&form, ty, mode)?;
            binary(form, BinaryOp::Multiply, ty, mode)
        }
    }
}

fn multiply_add(mut form: Form<'_, '_, '_>, reads: bool) -> Result<()> {
    let part = [
        ("lo", (TernaryOp::MultiplyAdd, CarryOp::MultiplyAddLow)),
        ("hi", (TernaryOp::MultiplyAddHigh, CarryOp::MultiplyAddHigh)),
        ("wide", (TernaryOp::MultiplyAddWide, CarryOp::MultiplyAddLow)),
    ];
    match form.choose(&part) {
        Some((TernaryOp::MultiplyAddWide, _)) if !reads => {
            let ty = form.ty(&[Type::U16, Type::U32, Type::S16, Type::S32])?;
            let (dst, a, b, c) = (form.dst(wide(ty))?, form.src(ty)?, form.src(ty)?, form.src(wide(ty))?);
            let mode = FloatMode::PLAIN;
            form.done(Op::Ternary { op: TernaryOp::MultiplyAddWide, ty, mode, dst, a, b, c })
        }
        Some((TernaryOp::MultiplyAddWide, _)) => Err(form.conflict("`.lo` or `.hi`")),
        Some((op, carry)) => {
            let writes = form.flag("cc");
            if reads || writes {
                return carry_operands(form, carry, reads, writes);
            }
            let mode = form.mode(&["sat"]);
            let ty = form.ty(INTEGERS)?;
            if mode.saturate && (op != TernaryOp::MultiplyAddHigh || ty != Type::S32) {
                return Err(form.conflict("`.hi` and `.s32` with `.sat`"));
            }
            ternary(form, op, ty, mode)
        }
        None if reads => Err(form.unexpected_modifier("")),
        None => {
            let mode = form.mode(ROUNDED);
            let ty = form.ty(FLOATS)?;
            check_mode(&form, ty, mode)?;
            ternary(form, TernaryOp::FusedMultiplyAdd, ty, mode)
        }
    }
}

/// The type of twice the width.
fn wide(ty: Type) -> Type {
    match ty {
        Type::U16 => Type::U32,
        Type::S16 => Type::S32,
        Type::U32 => Type::U64,
        _ => Type::S64,
    }
}

fn extreme(mut form: Form<'_, '_, '_>, two: BinaryOp, three: TernaryOp) -> Result<()> {
    let mode = form.mode(&["ftz", "NaN", "relu"]);
    let ty = form.ty(&[INTEGERS, PACKED_INTEGERS, FLOATS, HALVES].concat())?;
    let relu = FloatMode { relu: true, ..FloatMode::PLAIN };
    let allowed = match ty {
        Type::S32 | Type::S16x2 => mode == relu || mode == FloatMode::PLAIN,
        Type::F32 => !mode.relu,
        Type::F64 => mode == FloatMode::PLAIN,
        half if half.is_float() => !mode.relu,
        _ => mode == FloatMode::PLAIN,
    };
    if !allowed {
        return Err(form.conflict("a type that the modifiers before it go with"));
    }
    if ty == Type::F32 && form.operands_left() == 4 {
        return ternary(form, three, ty, mode);
    }
    binary(form, two, ty, mode)
}

fn rounded_or_approximate(mut form: Form<'_, '_, '_>, op: UnaryOp) -> Result<()> {
    let mode = form.mode(&["approx", "rn", "rz", "rm", "rp", "ftz"]);
    if mode.approximate == mode.rounding.is_some() {
        return Err(form.unexpected_modifier("`.approx` or a rounding"));
    }
    let ty = form.ty(FLOATS)?;
    // Of f64 there is one approximation, and it flushes; nothing else does.
    let flushed = op == UnaryOp::Reciprocal && mode.approximate && mode.flush_to_zero;
    if ty == Type::F64 && !flushed && (mode.approximate || mode.flush_to_zero) {
        return Err(form.conflict("a type that the modifiers before it go with"));
    }
    unary(form, op, ty, mode)
}

fn approximate(mut form: Form<'_, '_, '_>, op: UnaryOp, types: &[Type]) -> Result<()> {
    form.must("approx")?;
    let mode = FloatMode { approximate: true, ..form.mode(&["ftz"]) };
    let ty = form.ty(types)?;
    unary(form, op, ty, mode)
}
