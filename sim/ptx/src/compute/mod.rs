//! Instructions that touch registers only, 32 lanes at a time.

mod approximate;
mod bits;
mod carry;
mod compare;
mod context;
mod convert;
mod directed;
mod dot;
mod double;
mod exact;
mod exchange;
mod float;
mod format;
pub(crate) mod fragment;
pub(crate) mod half;
mod integer;
mod matrix;
mod pack;
mod quick;

use std::fmt::Debug;

use crate::ir::{BinaryOp, Op, TernaryOp, Type, UnaryOp};
use crate::registers::{Registers, Specials};
use context::Context;

/// Why an instruction on registers has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ComputeError {
    /// The instruction's form is none that PTX has, or none that is modelled.
    Unsupported(String),
    /// A shuffle reads a lane that does not take part.
    InactiveSource { lane: u32, source_lane: u32 },
    /// A lane executes an instruction of a warp whose member mask does not name it.
    NotAMember { lane: u32, members: u32 },
}

/// Executes an instruction that touches registers only, for the mask's lanes.
///
/// An instruction with a member mask is given all lanes that came to it, and one of the whole warp all 32: the machine has
/// waited for them.
pub(crate) fn execute(
    op: &Op,
    lanes: u32,
    registers: &mut Registers,
    specials: &Specials,
) -> Result<(), ComputeError> {
    let context = &mut Context { lanes, registers, specials };
    match *op {
        Op::Move { dst, src, .. } => context.unary(dst, src, |value| value),
        Op::Pack { dst, ref parts, bits } => pack::pack(context, dst, parts, bits)?,
        Op::Unpack { ref dst, src, bits } => pack::unpack(context, dst, src, bits),
        Op::Unary { op, ty, mode, dst, a } => match op {
            UnaryOp::Not
            | UnaryOp::LogicalNot
            | UnaryOp::PopulationCount
            | UnaryOp::CountLeadingZeros
            | UnaryOp::BitReverse
            | UnaryOp::FindLeadingBit { .. } => bits::unary(context, op, ty, dst, a)?,
            _ => match family(ty) {
                Family::Integer => integer::unary(context, op, ty, dst, a)?,
                Family::Float => float::unary(context, op, ty, mode, dst, a)?,
                Family::Half => half::unary(context, op, ty, mode, dst, a)?,
            },
        },
        Op::Binary { op, ty, mode, dst, a, b } => match op {
            BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::ShiftLeft
            | BinaryOp::ShiftRight
            | BinaryOp::BitMask
            | BinaryOp::SignOrZeroExtend => bits::binary(context, op, ty, dst, [a, b])?,
            _ => match family(ty) {
                Family::Integer => integer::binary(context, op, ty, mode, dst, [a, b])?,
                Family::Float => float::binary(context, op, ty, mode, dst, [a, b])?,
                Family::Half => half::binary(context, op, ty, mode, dst, [a, b])?,
            },
        },
        Op::Ternary { op, ty, mode, dst, a, b, c } => match op {
            TernaryOp::Logic(_)
            | TernaryOp::FunnelShift { .. }
            | TernaryOp::Permute(_)
            | TernaryOp::BitFieldExtract => bits::ternary(context, op, ty, dst, [a, b, c])?,
            TernaryOp::Dot4 { a_signed, b_signed } => dot::four(context, a_signed, b_signed, dst, [a, b, c]),
            TernaryOp::Dot2 { a_signed, b_signed, high } => {
                dot::two(context, [a_signed, b_signed, high], dst, [a, b, c]);
            }
            _ => match family(ty) {
                Family::Integer => integer::ternary(context, op, ty, mode, dst, [a, b, c])?,
                Family::Float => float::ternary(context, op, ty, mode, dst, [a, b, c])?,
                Family::Half => half::ternary(context, op, ty, mode, dst, [a, b, c])?,
            },
        },
        Op::BitFieldInsert { ty, dst, a, b, position, length } => {
            bits::insert_field(context, ty, dst, [a, b], [position, length]);
        }
        Op::Carry { op, ty, reads, writes, dst, a, b, c } => {
            let c = c.unwrap_or(crate::ir::Source::Immediate(0));
            carry::execute(context, op, ty, carry::Flags { reads, writes }, dst, [a, b, c]);
        }
        Op::Convert { to, from, mode, dst_bits, dst, a, b } => {
            convert::execute(context, convert::Conversion { to, from, mode, dst_bits }, dst, a, b)?;
        }
        Op::ConvertPack { to, dst, a, b, c } => convert::pack(context, to, dst, [a, b], c),
        Op::Compare { compare, ty, flush_to_zero, combine, dst, second, a, b } => {
            let test = compare::Test { compare, ty, flush_to_zero, combine };
            compare::set_predicate(context, test, dst, second, [a, b])?;
        }
        Op::CompareInto { compare, to, ty, flush_to_zero, combine, dst, a, b } => {
            let test = compare::Test { compare, ty, flush_to_zero, combine };
            compare::set_value(context, test, to, dst, [a, b])?;
        }
        Op::TestFloat { test, ty, dst, a } => compare::test_float(context, test, ty, dst, a)?,
        Op::Select { dst, a, b, predicate, .. } => compare::select(context, dst, [a, b], predicate),
        Op::SelectBySign { ty, flush_to_zero, dst, a, b, c } => {
            compare::select_by_sign(context, ty, flush_to_zero, dst, [a, b, c])?;
        }
        Op::PredicateLogic { op, dst, a, b } => compare::combine(context, op, dst, [a, b]),
        Op::Shuffle { mode, dst, in_range, a, lane, clamp, members } => {
            let shuffle = exchange::Shuffle { mode, a, lane, clamp, members };
            exchange::shuffle(context, &shuffle, dst, in_range)?;
        }
        Op::Vote { mode, dst, a, members } => exchange::vote(context, mode, dst, a, members)?,
        Op::Ballot { dst, a, members } => exchange::ballot(context, dst, a, members)?,
        Op::Match { all, dst, predicate, a, members, .. } => {
            exchange::matching(context, all, dst, predicate, a, members)?;
        }
        Op::WarpReduce { op, ty, dst, a, members } => exchange::reduce(context, op, ty, dst, a, members)?,
        Op::ActiveMask { dst } => {
            let active = [u64::from(lanes); crate::registers::LANES];
            context.write(dst, &active);
        }
        Op::Elect { dst, predicate, members } => exchange::elect(context, dst, predicate, members)?,
        Op::TransposeMatrix { dst, a } => fragment::transpose(context, dst, a),
        Op::MatrixMultiply(ref mma) => matrix::multiply(context, mma)?,
        ref other => return unsupported(other),
    }
    Ok(())
}

/// Which file has a type's arithmetic.
enum Family {
    Integer,
    Float,
    Half,
}

fn family(ty: Type) -> Family {
    match ty {
        Type::F32 | Type::F64 => Family::Float,
        ty if ty.is_float() => Family::Half,
        _ => Family::Integer,
    }
}

/// The error for a form that no file knows.
fn unsupported_error(what: &dyn Debug) -> ComputeError {
    ComputeError::Unsupported(format!("{what:?}"))
}

fn unsupported<T>(what: &dyn Debug) -> Result<T, ComputeError> {
    Err(unsupported_error(what))
}
