//! Branches, ends, barriers and fences.

use super::super::error::Result;
use super::form::Form;
use crate::ir::{BarrierKind, BoolOp, Op, Scope, Type};

pub(super) fn read(mut form: Form<'_, '_, '_>) -> Result<()> {
    match form.written.mnemonic.text {
        "bra" => {
            let uniform = form.flag("uni");
            let name = form.name("a label")?;
            let target = form.builder().find_label(name)?.0;
            form.done(Op::Branch { target, uniform })
        }
        "brx" => {
            form.must("idx")?;
            form.flag("uni");
            let index = form.src(Type::U32)?;
            let name = form.name("a list of `.branchtargets`")?;
            let targets = form.builder().find_table(name)?.iter().map(|label| label.0).collect();
            form.done(Op::BranchIndexed { targets, index })
        }
        "ret" => {
            let uniform = form.flag("uni");
            let op = match form.builder().returns_to {
                Some(label) => Op::Branch { target: label.0, uniform },
                None => Op::Exit,
            };
            form.done(op)
        }
        "exit" => form.done(Op::Exit),
        "trap" => form.done(Op::Trap),
        "brkpt" => form.done(Op::Nothing),
        "nanosleep" => {
            form.must("u32")?;
            form.src(Type::U32)?;
            form.done(Op::Nothing)
        }
        "pmevent" => {
            form.flag("mask");
            form.constant("an event", 0xFFFF)?;
            form.done(Op::Nothing)
        }
        "setmaxnreg" => {
            form.require(&[("inc", ()), ("dec", ())])?;
            for name in ["sync", "aligned", "u32"] {
                form.must(name)?;
            }
            form.constant("registers", 256)?;
            form.done(Op::Nothing)
        }
        "griddepcontrol" => {
            form.require(&[("launch_dependents", ()), ("wait", ())])?;
            form.done(Op::Nothing)
        }
        "membar" => {
            let scopes = [("cta", Scope::Block), ("gl", Scope::Device), ("sys", Scope::System)];
            let scope = form.require(&scopes)?;
            form.done(Op::Fence { scope })
        }
        "fence" => {
            form.choose(&[("sc", ()), ("acq_rel", ()), ("acquire", ()), ("release", ())]);
            let scope = form.require(&[
                ("cta", Scope::Block),
                ("cluster", Scope::Cluster),
                ("gpu", Scope::Device),
                ("sys", Scope::System),
            ])?;
            form.done(Op::Fence { scope })
        }
        _ => barrier(form),
    }
}

/// `bar`, `barrier`.
fn barrier(mut form: Form<'_, '_, '_>) -> Result<()> {
    if form.flag("warp") {
        form.must("sync")?;
        let members = form.src(Type::B32)?;
        return form.done(Op::WarpBarrier { members });
    }
    form.flag("cta");
    // `barrier` may be reached by some lanes of a warp only; `.aligned` says that it is not, as `bar` does always.
    if form.flag("sync") {
        form.flag("aligned");
        let barrier = form.src(Type::U32)?;
        let threads = if form.operands_left() > 0 { Some(form.src(Type::U32)?) } else { None };
        return form.done(Op::Barrier { kind: BarrierKind::Synchronize, barrier, threads });
    }
    if form.flag("arrive") {
        form.flag("aligned");
        let (barrier, threads) = (form.src(Type::U32)?, Some(form.src(Type::U32)?));
        return form.done(Op::Barrier { kind: BarrierKind::Arrive, barrier, threads });
    }
    form.must("red")?;
    let reduction = form.require(&[("popc", None), ("and", Some(BoolOp::And)), ("or", Some(BoolOp::Or))])?;
    form.flag("aligned");
    let (register, predicate) = match reduction {
        None => {
            form.must("u32")?;
            (Some(form.dst(Type::U32)?), None)
        }
        Some(_) => {
            form.must("pred")?;
            (None, Some(form.dst_predicate()?))
        }
    };
    let barrier = form.src(Type::U32)?;
    let threads = if form.operands_left() > 1 { Some(form.src(Type::U32)?) } else { None };
    let a = form.src_predicate()?;
    let kind = match (register, predicate, reduction) {
        (Some(dst), _, _) => BarrierKind::Count { dst, a },
        (_, Some(dst), Some(op)) => BarrierKind::Reduce { op, dst, a },
        _ => return Err(form.unknown()),
    };
    form.done(Op::Barrier { kind, barrier, threads })
}
