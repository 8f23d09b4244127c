//! `atom` and `red`.

use super::super::error::Result;
use super::super::syntax::{Operand, OperandKind};
use super::access;
use super::form::Form;
use crate::ir::{AtomicOp, Op, Order, Space, Type};

pub(super) fn read(mut form: Form<'_, '_, '_>) -> Result<()> {
    let returns = form.written.mnemonic.text == "atom";
    let order = form.choose(&[
        ("relaxed", Order::Relaxed),
        ("acquire", Order::Acquire),
        ("release", Order::Release),
        ("acq_rel", Order::AcquireRelease),
    ]);
    let order = order.unwrap_or(Order::Relaxed);
    form.choose(&[("cta", ()), ("cluster", ()), ("gpu", ()), ("sys", ())]);
    let space =
        form.choose(&[("global", Space::Global), ("shared", Space::Shared), ("shared::cta", Space::Shared)]);
    let op = form.require(&[
        ("add", AtomicOp::Add),
        ("min", AtomicOp::Minimum),
        ("max", AtomicOp::Maximum),
        ("and", AtomicOp::And),
        ("or", AtomicOp::Or),
        ("xor", AtomicOp::Xor),
        ("exch", AtomicOp::Exchange),
        ("cas", AtomicOp::CompareAndSwap),
        ("inc", AtomicOp::Increment),
        ("dec", AtomicOp::Decrement),
    ])?;
    if !returns && matches!(op, AtomicOp::Exchange | AtomicOp::CompareAndSwap) {
        return Err(form.conflict("an operation that `red` has"));
    }
    let no_flush = form.flag("noftz");
    let policy = access::cache_advice(&mut form);
    let ty = form.ty(types(op))?;
    let half = matches!(ty, Type::F16 | Type::F16x2 | Type::BF16 | Type::BF16x2);
    if half != no_flush {
        return Err(form.conflict("a type of 16-bit floats with `.noftz`, and others without"));
    }
    // The old value may be left out.
    let dst = match form.peek_operand() {
        Some(Operand { kind: OperandKind::Sink, .. }) if returns => {
            form.operand("a register")?;
            None
        }
        _ if returns => Some(form.dst(ty)?),
        _ => None,
    };
    let (space, address) = form.address(space.unwrap_or(Space::Generic))?;
    let b = form.src(ty)?;
    let c = if op == AtomicOp::CompareAndSwap { Some(form.src(ty)?) } else { None };
    access::advice_operand(&mut form, policy)?;
    form.done(Op::Atomic { space, op, ty, order, dst, address, b, c })
}

/// The types that an operation is defined for.
fn types(op: AtomicOp) -> &'static [Type] {
    match op {
        AtomicOp::Add => &[
            Type::U32,
            Type::S32,
            Type::U64,
            Type::S64,
            Type::F32,
            Type::F64,
            Type::F16,
            Type::F16x2,
            Type::BF16,
            Type::BF16x2,
        ],
        AtomicOp::Minimum | AtomicOp::Maximum => &[Type::U32, Type::S32, Type::U64, Type::S64],
        AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => &[Type::B32, Type::B64],
        AtomicOp::Exchange => &[Type::B32, Type::B64],
        AtomicOp::CompareAndSwap => &[Type::B16, Type::B32, Type::B64],
        AtomicOp::Increment | AtomicOp::Decrement => &[Type::U32],
    }
}
