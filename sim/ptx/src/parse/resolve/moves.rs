//! Moves, and conversions of addresses.

use super::super::error::{Problem, Result};
use super::super::syntax::{Name, OperandKind};
use super::form::Form;
use super::operands::describe;
use super::special;
use crate::ir::{BoolOp, Op, PredicateSource, Space, Type};

const TYPES: &[Type] = &[
    Type::B16,
    Type::B32,
    Type::B64,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F16,
    Type::BF16,
    Type::F32,
    Type::F64,
    Type::Predicate,
];

pub(super) fn read(form: Form<'_, '_, '_>) -> Result<()> {
    match form.written.mnemonic.text {
        "mov" => mov(form),
        "cvta" => cvta(form),
        "isspacep" => isspacep(form),
        _ => Err(form.unknown()),
    }
}

/// A space of addresses, without or with the kind of `shared`.
fn space(form: &mut Form<'_, '_, '_>) -> Result<Space> {
    form.require(&[
        ("global", Space::Global),
        ("shared", Space::Shared),
        ("shared::cta", Space::Shared),
        ("local", Space::Local),
        ("const", Space::Const),
        ("param", Space::Param),
        ("param::entry", Space::Param),
    ])
}

fn mov(mut form: Form<'_, '_, '_>) -> Result<()> {
    let ty = form.ty(TYPES)?;
    form.no_more_modifiers()?;
    if ty == Type::Predicate {
        let (dst, a) = (form.dst_predicate()?, form.src_predicate()?);
        return form.done(Op::PredicateLogic { op: BoolOp::Or, dst, a, b: PredicateSource::Constant(false) });
    }
    if let Some(elements) = form.peek_operand().and_then(|operand| match &operand.kind {
        OperandKind::Vector(elements) => Some(elements.len()),
        _ => None,
    }) {
        let part = part(&form, ty, elements)?;
        let (dst, _) = form.dst_vector(part, elements)?;
        let src = form.src(ty)?;
        return form.done(Op::Unpack { dst, src, bits: part.bits() });
    }
    let dst = form.dst(ty)?;
    let Some(operand) = form.peek_operand() else {
        return Err(Problem::quoted(form.written.end, "a value", ";"));
    };
    match &operand.kind {
        OperandKind::Vector(elements) => {
            let part = part(&form, ty, elements.len())?;
            let parts = form.src_vector(part, elements.len())?;
            form.done(Op::Pack { dst, parts, bits: part.bits() })
        }
        OperandKind::Name { name, part: None, addend, negated: false }
            if special::named(name, None).is_none() =>
        {
            let name = Name { text: name, at: operand.at };
            if *addend == 0
                && let Some(super::scope::Symbol::Register { .. } | super::scope::Symbol::Predicate(_)) =
                    form.builder().find(name)?
            {
                let src = form.src(ty)?;
                return form.done(Op::Move { ty, dst, src });
            }
            form.operand("a variable")?;
            if ty.bits() < 32 || ty.is_float() {
                return Err(Problem::new(operand.at, "a register", describe(operand)));
            }
            let (space, address) = form.place(name.text, name.at, *addend)?;
            form.done(Op::AddressOf { dst, space, address, generic: false })
        }
        _ => {
            let src = form.src(ty)?;
            form.done(Op::Move { ty, dst, src })
        }
    }
}

/// The type of the parts when a value is made of so many.
fn part(form: &Form<'_, '_, '_>, ty: Type, parts: usize) -> Result<Type> {
    match (ty.bits(), parts) {
        (16, 2) => Ok(Type::B8),
        (32, 2) | (64, 4) => Ok(Type::B16),
        (64, 2) => Ok(Type::B32),
        (32, 4) => Ok(Type::B8),
        _ => {
            let at = form.written.mnemonic.at;
            Err(Problem::new(at, "2 or 4 parts that fill the type", format!("{parts} parts")))
        }
    }
}

/// `cvta.space.u64 p, a`, `cvta.to.space.u64 p, a`.
fn cvta(mut form: Form<'_, '_, '_>) -> Result<()> {
    let to_generic = !form.flag("to");
    let space = space(&mut form)?;
    let ty = form.ty(&[Type::U64])?;
    let dst = form.dst(ty)?;
    let register = matches!(form.peek_symbol()?, Some(super::scope::Symbol::Register { .. }));
    if let Some(operand) = form.peek_operand()
        && let OperandKind::Name { name, part: None, addend, negated: false } = operand.kind
        && to_generic
        && !register
    {
        form.operand("a variable")?;
        let (found, address) = form.place(name, operand.at, addend)?;
        if found != space {
            let expected = format!("a variable in {space:?} memory").to_lowercase();
            return Err(Problem::quoted(operand.at, expected, name));
        }
        return form.done(Op::AddressOf { dst, space, address, generic: true });
    }
    let src = form.src(ty)?;
    form.done(Op::ConvertAddress { space, to_generic, dst, src })
}

fn isspacep(mut form: Form<'_, '_, '_>) -> Result<()> {
    let space = space(&mut form)?;
    let (dst, src) = (form.dst_predicate()?, form.src(Type::U64)?);
    form.done(Op::IsSpace { space, dst, src })
}
