//! Comparisons and choices.

use super::super::error::Result;
use super::form::Form;
use crate::ir::{BoolOp, Comparison, FloatTest, Op, Type};

const BITS: &[Type] = &[Type::B16, Type::B32, Type::B64];
const INTEGERS: &[Type] = super::arithmetic::INTEGERS;
const FLOATS: &[Type] = &[Type::F32, Type::F64];
const HALVES: &[Type] = &[Type::F16, Type::F16x2, Type::BF16, Type::BF16x2];

pub(super) fn read(mut form: Form<'_, '_, '_>) -> Result<()> {
    match form.written.mnemonic.text {
        "setp" => {
            let (comparison, join, flush_to_zero) = condition(&mut form)?;
            let ty = form.ty(&[BITS, INTEGERS, FLOATS, HALVES].concat())?;
            let compare = check(&form, comparison, ty)?;
            let (dst, second) = form.dst_predicates()?;
            let (a, b) = (form.src(ty)?, form.src(ty)?);
            let combine = join.map(|op| form.src_predicate().map(|with| (op, with))).transpose()?;
            form.done(Op::Compare { compare, ty, flush_to_zero, combine, dst, second, a, b })
        }
        "set" => {
            let (comparison, join, flush_to_zero) = condition(&mut form)?;
            let into = &[Type::U16, Type::S16, Type::U32, Type::S32, Type::F32];
            let to = form.ty(&[into, HALVES].concat())?;
            let ty = form.ty(&[BITS, INTEGERS, FLOATS, HALVES].concat())?;
            let compare = check(&form, comparison, ty)?;
            let (dst, a, b) = (form.dst(to)?, form.src(ty)?, form.src(ty)?);
            let combine = join.map(|op| form.src_predicate().map(|with| (op, with))).transpose()?;
            form.done(Op::CompareInto { compare, to, ty, flush_to_zero, combine, dst, a, b })
        }
        "selp" => {
            let ty = form.ty(&[BITS, INTEGERS, FLOATS].concat())?;
            let (dst, a, b) = (form.dst(ty)?, form.src(ty)?, form.src(ty)?);
            let predicate = form.src_predicate()?;
            form.done(Op::Select { ty, dst, a, b, predicate })
        }
        "slct" => {
            let flush_to_zero = form.flag("ftz");
            let of = form.ty(&[BITS, INTEGERS, FLOATS].concat())?;
            let ty = form.ty(&[Type::S32, Type::F32])?;
            let (dst, a, b, c) = (form.dst(of)?, form.src(of)?, form.src(of)?, form.src(ty)?);
            form.done(Op::SelectBySign { ty, flush_to_zero, dst, a, b, c })
        }
        "testp" => {
            let test = form.require(&[
                ("finite", FloatTest::Finite),
                ("infinite", FloatTest::Infinite),
                ("number", FloatTest::Number),
                ("notanumber", FloatTest::NotANumber),
                ("normal", FloatTest::Normal),
                ("subnormal", FloatTest::Subnormal),
            ])?;
            let ty = form.ty(FLOATS)?;
            let (dst, a) = (form.dst_predicate()?, form.src(ty)?);
            form.done(Op::TestFloat { test, ty, dst, a })
        }
        _ => Err(form.unknown()),
    }
}

/// Which operands a comparison's name is for.
#[derive(Clone, Copy, PartialEq)]
enum For {
    All,
    Unsigned,
    Floats,
}

type Condition = ((Comparison, For), Option<BoolOp>, bool);

fn condition(form: &mut Form<'_, '_, '_>) -> Result<Condition> {
    let comparison = form.require(&[
        ("eq", (Comparison::Equal, For::All)),
        ("ne", (Comparison::NotEqual, For::All)),
        ("lt", (Comparison::Less, For::All)),
        ("le", (Comparison::LessOrEqual, For::All)),
        ("gt", (Comparison::Greater, For::All)),
        ("ge", (Comparison::GreaterOrEqual, For::All)),
        ("lo", (Comparison::Less, For::Unsigned)),
        ("ls", (Comparison::LessOrEqual, For::Unsigned)),
        ("hi", (Comparison::Greater, For::Unsigned)),
        ("hs", (Comparison::GreaterOrEqual, For::Unsigned)),
        ("equ", (Comparison::UnorderedEqual, For::Floats)),
        ("neu", (Comparison::UnorderedNotEqual, For::Floats)),
        ("ltu", (Comparison::UnorderedLess, For::Floats)),
        ("leu", (Comparison::UnorderedLessOrEqual, For::Floats)),
        ("gtu", (Comparison::UnorderedGreater, For::Floats)),
        ("geu", (Comparison::UnorderedGreaterOrEqual, For::Floats)),
        ("num", (Comparison::Numbers, For::Floats)),
        ("nan", (Comparison::NotNumbers, For::Floats)),
    ])?;
    let join = form.choose(&[("and", BoolOp::And), ("or", BoolOp::Or), ("xor", BoolOp::Xor)]);
    Ok((comparison, join, form.flag("ftz")))
}

fn check(form: &Form<'_, '_, '_>, (comparison, operands): (Comparison, For), ty: Type) -> Result<Comparison> {
    let equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
    let fits = match operands {
        For::All => equality || !BITS.contains(&ty),
        For::Unsigned => matches!(ty, Type::U16 | Type::U32 | Type::U64),
        For::Floats => ty.is_float(),
    };
    if fits { Ok(comparison) } else { Err(form.conflict("a type that can be compared in this way")) }
}
