//! Instructions among the lanes of a warp.

use super::super::error::{Problem, Result};
use super::form::Form;
use crate::ir::{AtomicOp, Op, ShuffleMode, Type, VoteMode};

pub(super) fn read(mut form: Form<'_, '_, '_>) -> Result<()> {
    match form.written.mnemonic.text {
        "shfl" => {
            form.must("sync")?;
            let mode = form.require(&[
                ("up", ShuffleMode::Up),
                ("down", ShuffleMode::Down),
                ("bfly", ShuffleMode::Butterfly),
                ("idx", ShuffleMode::Index),
            ])?;
            form.must("b32")?;
            let at = form.written.mnemonic.at;
            let (Some(dst), in_range) = form.dst_and_predicate(Type::B32)? else {
                return Err(Problem::quoted(at, "a register for the result", "_"));
            };
            let a = form.src(Type::B32)?;
            let (lane, clamp, members) = (form.src(Type::B32)?, form.src(Type::B32)?, form.src(Type::B32)?);
            form.done(Op::Shuffle { mode, dst, in_range, a, lane, clamp, members })
        }
        "vote" => {
            form.must("sync")?;
            let mode =
                form.choose(&[("all", VoteMode::All), ("any", VoteMode::Any), ("uni", VoteMode::Uniform)]);
            if let Some(mode) = mode {
                form.must("pred")?;
                let (dst, a, members) = (form.dst_predicate()?, form.src_predicate()?, form.src(Type::B32)?);
                return form.done(Op::Vote { mode, dst, a, members });
            }
            form.must("ballot")?;
            form.must("b32")?;
            let (dst, a, members) = (form.dst(Type::B32)?, form.src_predicate()?, form.src(Type::B32)?);
            form.done(Op::Ballot { dst, a, members })
        }
        "match" => {
            let all = form.require(&[("any", false), ("all", true)])?;
            form.must("sync")?;
            let ty = form.ty(&[Type::B32, Type::B64])?;
            let at = form.written.mnemonic.at;
            let (dst, predicate) = form.dst_and_predicate(Type::B32)?;
            let Some(dst) = dst.filter(|_| all || predicate.is_none()) else {
                return Err(Problem::quoted(
                    at,
                    "a register for the result, and a predicate only with `.all`",
                    "_",
                ));
            };
            let (a, members) = (form.src(ty)?, form.src(Type::B32)?);
            form.done(Op::Match { all, ty, dst, predicate, a, members })
        }
        "redux" => {
            form.must("sync")?;
            let op = form.require(&[
                ("add", AtomicOp::Add),
                ("min", AtomicOp::Minimum),
                ("max", AtomicOp::Maximum),
                ("and", AtomicOp::And),
                ("or", AtomicOp::Or),
                ("xor", AtomicOp::Xor),
            ])?;
            let ty = match op {
                AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => form.ty(&[Type::B32])?,
                _ => form.ty(&[Type::U32, Type::S32])?,
            };
            let (dst, a, members) = (form.dst(ty)?, form.src(ty)?, form.src(Type::B32)?);
            form.done(Op::WarpReduce { op, ty, dst, a, members })
        }
        "activemask" => {
            form.must("b32")?;
            let dst = form.dst(Type::B32)?;
            form.done(Op::ActiveMask { dst })
        }
        "elect" => {
            form.must("sync")?;
            let at = form.written.mnemonic.at;
            let (dst, Some(predicate)) = form.dst_and_predicate(Type::B32)? else {
                return Err(Problem::new(at, "a predicate, as in `d|p`", "none"));
            };
            let members = form.src(Type::B32)?;
            form.done(Op::Elect { dst, predicate, members })
        }
        _ => Err(form.unknown()),
    }
}
