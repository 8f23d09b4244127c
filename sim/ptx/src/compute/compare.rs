//! `setp`, `set`, `testp`, `selp`, `slct`, and logic on predicates.

use super::context::Context;
use super::format::{Format, f32_of, flushed};
use super::{ComputeError, unsupported};
use crate::ir::{BoolOp, Comparison, FloatTest, Predicate, PredicateSource, Register, Source, Type};
use crate::registers::{LANES, ones, sign_extended};

/// What is compared, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    pub(super) compare: Comparison,
    pub(super) ty: Type,
    pub(super) flush_to_zero: bool,
    pub(super) combine: Option<(BoolOp, PredicateSource)>,
}

/// `setp`.
pub(super) fn set_predicate(
    context: &mut Context<'_>,
    test: Test,
    dst: Option<Predicate>,
    second: Option<Predicate>,
    [a, b]: [Source; 2],
) -> Result<(), ComputeError> {
    let (lower, upper) = results(context, test, a, b)?;
    // The complement where nothing is packed.
    let upper = upper.unwrap_or(!lower);
    let (lower, upper) = (combined(context, test, lower), combined(context, test, upper));
    if let Some(dst) = dst {
        context.write_predicate(dst, lower);
    }
    if let Some(second) = second {
        context.write_predicate(second, upper);
    }
    Ok(())
}

/// `set`.
pub(super) fn set_value(
    context: &mut Context<'_>,
    test: Test,
    to: Type,
    dst: Register,
    [a, b]: [Source; 2],
) -> Result<(), ComputeError> {
    let (lower, upper) = results(context, test, a, b)?;
    let lower = combined(context, test, lower);
    let value = |bits: u32, holds: u64| -> [u64; LANES] {
        std::array::from_fn(|lane| if bits >> lane & 1 == 1 { holds } else { 0 })
    };
    let result = match (upper, Format::of(to)) {
        (None, None) if to == Type::F64 => return unsupported(&(to, test)),
        (None, None) => value(lower, ones(to.bits())),
        (None, Some(format)) => value(lower, format.one()),
        // Packed: 1.0, or all ones, in each half.
        (Some(upper), format) => {
            let holds = format.map_or(0xffff, Format::one);
            let (low, high) = (value(lower, holds), value(combined(context, test, upper), holds));
            std::array::from_fn(|lane| low[lane] | high[lane] << 16)
        }
    };
    context.write(dst, &result);
    Ok(())
}

fn combined(context: &Context<'_>, test: Test, bits: u32) -> u32 {
    match test.combine {
        None => bits,
        Some((op, with)) => logic(op, bits, context.registers.read_predicate(with)),
    }
}

fn logic(op: BoolOp, a: u32, b: u32) -> u32 {
    match op {
        BoolOp::And => a & b,
        BoolOp::Or => a | b,
        BoolOp::Xor => a ^ b,
    }
}

/// `and.pred` and its like.
pub(super) fn combine(context: &mut Context<'_>, op: BoolOp, dst: Predicate, [a, b]: [PredicateSource; 2]) {
    let bits = logic(op, context.registers.read_predicate(a), context.registers.read_predicate(b));
    context.write_predicate(dst, bits);
}

/// Where it holds, a bit a lane; for packed types in the upper halves too.
fn results(
    context: &mut Context<'_>,
    test: Test,
    a: Source,
    b: Source,
) -> Result<(u32, Option<u32>), ComputeError> {
    let Test { compare, ty, flush_to_zero: flush, .. } = test;
    let bits = match ty {
        Type::F32 if flush => floats(context, compare, a, b, |x| flushed(f32_of(x))),
        Type::F32 => floats(context, compare, a, b, f32_of),
        Type::F64 => floats(context, compare, a, b, f64::from_bits),
        Type::F16 | Type::BF16 | Type::F16x2 | Type::BF16x2 => {
            let Some(format) = Format::of(ty) else { return unsupported(&test) };
            let value = move |bits: u64| {
                let zero = flush && format.is_below_normal(bits);
                format.decode(if zero { 0 } else { bits & 0xffff })
            };
            let lower = floats(context, compare, a, b, value);
            let packed = matches!(ty, Type::F16x2 | Type::BF16x2);
            let upper = packed.then(|| floats(context, compare, a, b, |x| value(x >> 16)));
            return Ok((lower, upper));
        }
        Type::S16 => ordered(context, compare, a, b, |x| x as i16).ok_or_else(|| error(test))?,
        Type::S32 => ordered(context, compare, a, b, |x| x as i32).ok_or_else(|| error(test))?,
        Type::S64 => ordered(context, compare, a, b, |x| x as i64).ok_or_else(|| error(test))?,
        Type::U16 | Type::B16 => ordered(context, compare, a, b, |x| x as u16).ok_or_else(|| error(test))?,
        Type::U32 | Type::B32 => ordered(context, compare, a, b, |x| x as u32).ok_or_else(|| error(test))?,
        Type::U64 | Type::B64 => ordered(context, compare, a, b, |x| x).ok_or_else(|| error(test))?,
        _ => return unsupported(&test),
    };
    Ok((bits, None))
}

fn error(test: Test) -> ComputeError {
    super::unsupported_error(&test)
}

/// Integers; they have no unordered comparisons.
#[inline(always)]
fn ordered<T: Ord>(
    context: &mut Context<'_>,
    compare: Comparison,
    a: Source,
    b: Source,
    of: impl Fn(u64) -> T,
) -> Option<u32> {
    Some(match compare {
        Comparison::Equal => context.test(a, b, |a, b| of(a) == of(b)),
        Comparison::NotEqual => !context.test(a, b, |a, b| of(a) == of(b)),
        Comparison::Less => context.test(a, b, |a, b| of(a) < of(b)),
        Comparison::GreaterOrEqual => !context.test(a, b, |a, b| of(a) < of(b)),
        Comparison::Greater => context.test(a, b, |a, b| of(a) > of(b)),
        Comparison::LessOrEqual => !context.test(a, b, |a, b| of(a) > of(b)),
        _ => return None,
    })
}

/// Floats: the unordered comparisons hold where the opposite ordered one does not.
#[inline(always)]
fn floats<T: PartialOrd>(
    context: &mut Context<'_>,
    compare: Comparison,
    a: Source,
    b: Source,
    of: impl Fn(u64) -> T,
) -> u32 {
    let numbers = |a: &T, b: &T| a.partial_cmp(b).is_some();
    match compare {
        Comparison::Equal => context.test(a, b, |a, b| of(a) == of(b)),
        Comparison::NotEqual => context.test(a, b, |a, b| {
            let (a, b) = (of(a), of(b));
            numbers(&a, &b) && a != b
        }),
        Comparison::Less => context.test(a, b, |a, b| of(a) < of(b)),
        Comparison::LessOrEqual => context.test(a, b, |a, b| of(a) <= of(b)),
        Comparison::Greater => context.test(a, b, |a, b| of(a) > of(b)),
        Comparison::GreaterOrEqual => context.test(a, b, |a, b| of(a) >= of(b)),
        Comparison::UnorderedEqual => context.test(a, b, |a, b| {
            let (a, b) = (of(a), of(b));
            !numbers(&a, &b) || a == b
        }),
        Comparison::UnorderedNotEqual => !context.test(a, b, |a, b| of(a) == of(b)),
        Comparison::UnorderedLess => !context.test(a, b, |a, b| of(a) >= of(b)),
        Comparison::UnorderedLessOrEqual => !context.test(a, b, |a, b| of(a) > of(b)),
        Comparison::UnorderedGreater => !context.test(a, b, |a, b| of(a) <= of(b)),
        Comparison::UnorderedGreaterOrEqual => !context.test(a, b, |a, b| of(a) < of(b)),
        Comparison::Numbers => context.test(a, b, |a, b| numbers(&of(a), &of(b))),
        Comparison::NotNumbers => !context.test(a, b, |a, b| numbers(&of(a), &of(b))),
    }
}

/// `testp`.
pub(super) fn test_float(
    context: &mut Context<'_>,
    test: FloatTest,
    ty: Type,
    dst: Predicate,
    a: Source,
) -> Result<(), ComputeError> {
    let class: fn(u64) -> std::num::FpCategory = match ty {
        Type::F32 => |x| f32_of(x).classify(),
        Type::F64 => |x| f64::from_bits(x).classify(),
        _ => return unsupported(&(test, ty)),
    };
    use std::num::FpCategory::{Infinite, Nan, Normal, Subnormal};
    let holds = move |x: u64| match test {
        FloatTest::Finite => !matches!(class(x), Infinite | Nan),
        FloatTest::Infinite => class(x) == Infinite,
        FloatTest::Number => class(x) != Nan,
        FloatTest::NotANumber => class(x) == Nan,
        FloatTest::Normal => class(x) == Normal,
        FloatTest::Subnormal => class(x) == Subnormal,
    };
    let bits = context.test(a, a, |x, _| holds(x));
    context.write_predicate(dst, bits);
    Ok(())
}

/// `selp`.
pub(super) fn select(
    context: &mut Context<'_>,
    dst: Register,
    [a, b]: [Source; 2],
    predicate: PredicateSource,
) {
    let chosen = context.registers.read_predicate(predicate);
    let mut result = context.read(b);
    let a = context.read(a);
    for (lane, (result, a)) in result.iter_mut().zip(a).enumerate() {
        let mask = u64::from(chosen >> lane & 1).wrapping_neg();
        *result = *result & !mask | a & mask;
    }
    context.write(dst, &result);
}

/// `slct`: by the sign of `c`, of type `ty`; -0 counts as 0, NaN as negative.
pub(super) fn select_by_sign(
    context: &mut Context<'_>,
    ty: Type,
    flush_to_zero: bool,
    dst: Register,
    sources: [Source; 3],
) -> Result<(), ComputeError> {
    match ty {
        Type::F32 => context.ternary(dst, sources, |a, b, c| {
            let c = if flush_to_zero { flushed(f32_of(c)) } else { f32_of(c) };
            if c >= 0.0 { a } else { b }
        }),
        Type::S32 => {
            context.ternary(dst, sources, |a, b, c| if sign_extended(c, 32) >= 0 { a } else { b });
        }
        _ => return unsupported(&("slct", ty)),
    }
    Ok(())
}
