//! Loads and stores.

use super::super::error::{Problem, Result};
use super::form::Form;
use crate::ir::{Op, Order, Source, Space, Type};

const TYPES: &[Type] = &[
    Type::B8,
    Type::B16,
    Type::B32,
    Type::B64,
    Type::U8,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S8,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F32,
    Type::F64,
];

pub(super) fn read(mut form: Form<'_, '_, '_>) -> Result<()> {
    match form.written.mnemonic.text {
        "ld" => {
            let order = form.choose(&[
                ("weak", Order::Weak),
                ("volatile", Order::Relaxed),
                ("relaxed", Order::Relaxed),
                ("acquire", Order::Acquire),
            ]);
            let space = scope_and_space(&mut form, true)?;
            load(form, order.unwrap_or(Order::Weak), space)
        }
        "ldu" => {
            let space = form.choose(&[("global", Space::Global)]).unwrap_or(Space::Generic);
            load(form, Order::Weak, space)
        }
        "st" => {
            let order = form.choose(&[
                ("weak", Order::Weak),
                ("volatile", Order::Relaxed),
                ("relaxed", Order::Relaxed),
                ("release", Order::Release),
            ]);
            let space = scope_and_space(&mut form, false)?;
            store(form, order.unwrap_or(Order::Weak), space)
        }
        "createpolicy" => {
            // A policy says how long lines stay in the cache, which changes no value.
            while form.modifier_if(|name| name != "b64").is_some() {}
            form.must("b64")?;
            let dst = form.dst(Type::B64)?;
            while form.operands_left() > 0 {
                form.operand("a value")?;
            }
            form.done(Op::Move { ty: Type::B64, dst, src: Source::Immediate(0) })
        }
        _ => {
            let space = form.choose(&[("global", Space::Global), ("local", Space::Local)]);
            if form.modifier_if(|name| name.starts_with("L1") || name.starts_with("L2")).is_none() {
                return Err(form.unexpected_modifier("a level of cache, as `.L2`"));
            }
            let (space, address) = form.address(space.unwrap_or(Space::Generic))?;
            if form.operands_left() > 0 {
                form.constant("a size in bytes", 128)?;
            }
            form.done(Op::Prefetch { space, address })
        }
    }
}

/// Among whom an access is ordered, and its space.
fn scope_and_space(form: &mut Form<'_, '_, '_>, reads: bool) -> Result<Space> {
    form.choose(&[("cta", ()), ("cluster", ()), ("gpu", ()), ("sys", ())]);
    let space = form.choose(&[
        ("global", Space::Global),
        ("shared", Space::Shared),
        ("shared::cta", Space::Shared),
        ("local", Space::Local),
        ("param", Space::Param),
        ("param::func", Space::Param),
    ]);
    if space.is_none() && reads {
        let space = form.choose(&[("const", Space::Const), ("param::entry", Space::Param)]);
        return Ok(space.unwrap_or(Space::Generic));
    }
    Ok(space.unwrap_or(Space::Generic))
}

/// Advice to caches; whether a policy follows the operands.
pub(super) fn cache_advice(form: &mut Form<'_, '_, '_>) -> bool {
    let mut policy = false;
    while let Some(advice) = form.modifier_if(|name| {
        matches!(name, "nc" | "ca" | "cg" | "cs" | "lu" | "cv" | "wb" | "wt")
            || name.starts_with("L1::")
            || name.starts_with("L2::")
    }) {
        policy |= advice == "L2::cache_hint";
    }
    policy
}

fn vector(form: &mut Form<'_, '_, '_>) -> usize {
    form.choose(&[("v2", 2), ("v4", 4), ("v8", 8)]).unwrap_or(1)
}

/// A vector is at most so wide that one instruction moves it.
fn element(form: &mut Form<'_, '_, '_>, count: usize) -> Result<Type> {
    let ty = form.ty(TYPES)?;
    if ty.bytes() as usize * count > 32 {
        return Err(form.conflict("a vector of at most 32 bytes"));
    }
    Ok(ty)
}

fn load(mut form: Form<'_, '_, '_>, order: Order, space: Space) -> Result<()> {
    let policy = cache_advice(&mut form);
    let count = vector(&mut form);
    let ty = element(&mut form, count)?;
    let (dst, bits) = form.dst_vector(ty, count)?;
    let into = match (bits == ty.bits(), ty.is_signed(), bits) {
        (true, _, _) => ty,
        (_, true, 16) => Type::S16,
        (_, true, 32) => Type::S32,
        (_, true, _) => Type::S64,
        (_, false, 16) => Type::U16,
        (_, false, 32) => Type::U32,
        (_, false, _) => Type::U64,
    };
    if ty.is_float() && into != ty {
        return Err(Problem::new(form.written.mnemonic.at, "registers as wide as the type", "wider ones"));
    }
    let (space, address) = form.address(space)?;
    advice_operand(&mut form, policy)?;
    form.done(Op::Load { space, ty, into, order, dst, address })
}

fn store(mut form: Form<'_, '_, '_>, order: Order, space: Space) -> Result<()> {
    let policy = cache_advice(&mut form);
    let count = vector(&mut form);
    let ty = element(&mut form, count)?;
    let (space, address) = form.address(space)?;
    let src = form.src_vector(ty, count)?;
    advice_operand(&mut form, policy)?;
    form.done(Op::Store { space, ty, order, src, address })
}

/// A policy's register, where one is told.
pub(super) fn advice_operand(form: &mut Form<'_, '_, '_>, policy: bool) -> Result<()> {
    if policy {
        form.src(Type::B64)?;
    }
    Ok(())
}
