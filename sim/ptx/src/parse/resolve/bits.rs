//! Logic and shifts.

use super::super::error::Result;
use super::arithmetic::{binary, unary};
use super::form::Form;
use crate::ir::{BinaryOp, BoolOp, FloatMode, Op, PermuteMode, PredicateSource, TernaryOp, Type, UnaryOp};

const BITS: &[Type] = &[Type::B16, Type::B32, Type::B64];
const PLAIN: FloatMode = FloatMode::PLAIN;

pub(super) fn read(mut form: Form<'_, '_, '_>) -> Result<()> {
    match form.written.mnemonic.text {
        "and" => logic(form, BinaryOp::And, BoolOp::And),
        "or" => logic(form, BinaryOp::Or, BoolOp::Or),
        "xor" => logic(form, BinaryOp::Xor, BoolOp::Xor),
        "not" => {
            let ty = form.ty(&[BITS, &[Type::Predicate]].concat())?;
            if ty != Type::Predicate {
                return unary(form, UnaryOp::Not, ty, PLAIN);
            }
            let dst = form.dst_predicate()?;
            let a = match form.src_predicate()? {
                PredicateSource::Register { predicate, negated } => {
                    PredicateSource::Register { predicate, negated: !negated }
                }
                PredicateSource::Constant(value) => PredicateSource::Constant(!value),
            };
            form.done(Op::PredicateLogic { op: BoolOp::Or, dst, a, b: PredicateSource::Constant(false) })
        }
        "cnot" => {
            let ty = form.ty(BITS)?;
            unary(form, UnaryOp::LogicalNot, ty, PLAIN)
        }
        "shl" => {
            let ty = form.ty(BITS)?;
            shift(form, BinaryOp::ShiftLeft, ty)
        }
        "shr" => {
            let ty = form.ty(&[BITS, super::arithmetic::INTEGERS].concat())?;
            shift(form, BinaryOp::ShiftRight, ty)
        }
        "shf" => {
            let left = form.require(&[("l", true), ("r", false)])?;
            let wrap = form.require(&[("wrap", true), ("clamp", false)])?;
            let ty = form.ty(&[Type::B32])?;
            super::arithmetic::ternary(form, TernaryOp::FunnelShift { left, wrap }, ty, PLAIN)
        }
        "lop3" => {
            let ty = form.ty(&[Type::B32])?;
            let (dst, a, b, c) = (form.dst(ty)?, form.src(ty)?, form.src(ty)?, form.src(ty)?);
            let table = form.constant("a table of eight bits", 255)?;
            let op = TernaryOp::Logic((table & 255) as u8);
            form.done(Op::Ternary { op, ty, mode: PLAIN, dst, a, b, c })
        }
        "prmt" => {
            let ty = form.ty(&[Type::B32])?;
            let mode = form.choose(&[
                ("f4e", PermuteMode::Forward4),
                ("b4e", PermuteMode::Backward4),
                ("rc8", PermuteMode::Replicate8),
                ("ecl", PermuteMode::EdgeClampLeft),
                ("ecr", PermuteMode::EdgeClampRight),
                ("rc16", PermuteMode::Replicate16),
            ]);
            let op = TernaryOp::Permute(mode.unwrap_or(PermuteMode::Index));
            super::arithmetic::ternary(form, op, ty, PLAIN)
        }
        _ => Err(form.unknown()),
    }
}

fn logic(mut form: Form<'_, '_, '_>, bits: BinaryOp, op: BoolOp) -> Result<()> {
    let ty = form.ty(&[BITS, &[Type::Predicate]].concat())?;
    if ty != Type::Predicate {
        return binary(form, bits, ty, PLAIN);
    }
    let (dst, a, b) = (form.dst_predicate()?, form.src_predicate()?, form.src_predicate()?);
    form.done(Op::PredicateLogic { op, dst, a, b })
}

/// The amount has 32 bits, whatever the value has.
fn shift(mut form: Form<'_, '_, '_>, op: BinaryOp, ty: Type) -> Result<()> {
    let (dst, a, b) = (form.dst(ty)?, form.src(ty)?, form.src(Type::U32)?);
    form.done(Op::Binary { op, ty, mode: PLAIN, dst, a, b })
}
