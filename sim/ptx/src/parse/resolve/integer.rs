//! Instructions of integers only.

use super::super::error::Result;
use super::arithmetic::{INTEGERS, binary, ternary};
use super::form::Form;
use crate::ir::{BinaryOp, FloatMode, Op, TernaryOp, Type, UnaryOp};

const WORDS: &[Type] = &[Type::U32, Type::S32];
const WIDE: &[Type] = &[Type::U32, Type::S32, Type::U64, Type::S64];
const BITS: &[Type] = &[Type::B32, Type::B64];
const PLAIN: FloatMode = FloatMode::PLAIN;

pub(super) fn read(mut form: Form<'_, '_, '_>) -> Result<()> {
    match form.written.mnemonic.text {
        "rem" => {
            let ty = form.ty(INTEGERS)?;
            binary(form, BinaryOp::Remainder, ty, PLAIN)
        }
        "mul24" => {
            form.must("lo")?;
            let ty = form.ty(WORDS)?;
            binary(form, BinaryOp::Multiply24, ty, PLAIN)
        }
        "mad24" => {
            form.must("lo")?;
            let ty = form.ty(WORDS)?;
            ternary(form, TernaryOp::MultiplyAdd24, ty, PLAIN)
        }
        "sad" => {
            let ty = form.ty(INTEGERS)?;
            ternary(form, TernaryOp::SumOfAbsoluteDifferences, ty, PLAIN)
        }
        "dp4a" => {
            let (a_signed, b_signed) = signs(&mut form)?;
            dot(form, TernaryOp::Dot4 { a_signed, b_signed }, a_signed || b_signed)
        }
        "dp2a" => {
            let high = form.require(&[("lo", false), ("hi", true)])?;
            let (a_signed, b_signed) = signs(&mut form)?;
            dot(form, TernaryOp::Dot2 { a_signed, b_signed, high }, a_signed || b_signed)
        }
        "popc" => count(form, UnaryOp::PopulationCount, BITS),
        "clz" => count(form, UnaryOp::CountLeadingZeros, BITS),
        "bfind" => {
            let shift = form.flag("shiftamt");
            count(form, UnaryOp::FindLeadingBit { shift }, WIDE)
        }
        "brev" => {
            let ty = form.ty(BITS)?;
            let (dst, a) = (form.dst(ty)?, form.src(ty)?);
            form.done(Op::Unary { op: UnaryOp::BitReverse, ty, mode: PLAIN, dst, a })
        }
        "bfe" => {
            let ty = form.ty(WIDE)?;
            let (dst, a) = (form.dst(ty)?, form.src(ty)?);
            let (b, c) = (form.src(Type::U32)?, form.src(Type::U32)?);
            form.done(Op::Ternary { op: TernaryOp::BitFieldExtract, ty, mode: PLAIN, dst, a, b, c })
        }
        "bfi" => {
            let ty = form.ty(BITS)?;
            let (dst, a, b) = (form.dst(ty)?, form.src(ty)?, form.src(ty)?);
            let (position, length) = (form.src(Type::U32)?, form.src(Type::U32)?);
            form.done(Op::BitFieldInsert { ty, dst, a, b, position, length })
        }
        "szext" => {
            form.must("clamp")?;
            let ty = form.ty(WORDS)?;
            let (dst, a, b) = (form.dst(ty)?, form.src(ty)?, form.src(Type::U32)?);
            form.done(Op::Binary { op: BinaryOp::SignOrZeroExtend, ty, mode: PLAIN, dst, a, b })
        }
        "bmsk" => {
            form.must("clamp")?;
            let ty = form.ty(&[Type::B32])?;
            binary(form, BinaryOp::BitMask, ty, PLAIN)
        }
        _ => Err(form.unknown()),
    }
}

fn signs(form: &mut Form<'_, '_, '_>) -> Result<(bool, bool)> {
    Ok((form.ty(WORDS)?.is_signed(), form.ty(WORDS)?.is_signed()))
}

fn dot(form: Form<'_, '_, '_>, op: TernaryOp, signed: bool) -> Result<()> {
    ternary(form, op, if signed { Type::S32 } else { Type::U32 }, PLAIN)
}

/// A result of 32 bits, whatever the operand has.
fn count(mut form: Form<'_, '_, '_>, op: UnaryOp, types: &[Type]) -> Result<()> {
    let ty = form.ty(types)?;
    let (dst, a) = (form.dst(Type::U32)?, form.src(ty)?);
    form.done(Op::Unary { op, ty, mode: PLAIN, dst, a })
}
