//! Integer arithmetic: `add` to `sad`, `mul24`, the packed 16-bit forms.

use super::context::{Context, halves1, halves2};
use super::{ComputeError, unsupported};
use crate::ir::{BinaryOp, FloatMode, Register, Source, TernaryOp, Type, UnaryOp};
use crate::registers::{ones, sign_extended};

/// An integer type as Rust has it: how its lane is read and written.
trait Integer: Copy + Ord + Default {
    fn of(lane: u64) -> Self;
    fn lane(self) -> u64;
    fn wrapping_quotient(self, by: Self) -> Self;
    fn wrapping_rest(self, by: Self) -> Self;
    /// The double-width product's upper half.
    fn high_product(self, by: Self) -> Self;
    fn distance(self, from: Self) -> Self;
    fn saturating_sum(self, with: Self) -> Self;
    fn saturating_difference(self, with: Self) -> Self;
    const ALL_ONES: Self;
}

macro_rules! integer {
    ($signed:ident, $unsigned:ident, $wide:ident: $($type:ident),*) => {$(
        impl Integer for $type {
            #[inline(always)]
            fn of(lane: u64) -> Self {
                lane as $type
            }
            #[inline(always)]
            fn lane(self) -> u64 {
                (self as $unsigned) as u64
            }
            #[inline(always)]
            fn wrapping_quotient(self, by: Self) -> Self {
                self.wrapping_div(by)
            }
            #[inline(always)]
            fn wrapping_rest(self, by: Self) -> Self {
                self.wrapping_rem(by)
            }
            #[inline(always)]
            fn high_product(self, by: Self) -> Self {
                // Wide enough for any product of this type, signed or not; its bits are what matters.
                ((self as $wide).wrapping_mul(by as $wide) >> $type::BITS) as $type
            }
            #[inline(always)]
            fn distance(self, from: Self) -> Self {
                self.abs_diff(from) as $type
            }
            #[inline(always)]
            fn saturating_sum(self, with: Self) -> Self {
                self.saturating_add(with)
            }
            #[inline(always)]
            fn saturating_difference(self, with: Self) -> Self {
                self.saturating_sub(with)
            }
            const ALL_ONES: Self = !0;
        }
    )*};
}

integer!(i16, u16, i64: i16, u16);
integer!(i32, u32, i64: i32);
integer!(i32, u32, u64: u32);
integer!(i64, u64, i128: i64);
integer!(i64, u64, u128: u64);

/// Runs the body with `$int` as the type's Rust type.
macro_rules! with_integer {
    ($ty:expr, $int:ident => $body:expr, else $other:expr) => {
        match $ty {
            Type::U16 | Type::B16 => {
                type $int = u16;
                $body
            }
            Type::S16 => {
                type $int = i16;
                $body
            }
            Type::U32 | Type::B32 => {
                type $int = u32;
                $body
            }
            Type::S32 => {
                type $int = i32;
                $body
            }
            Type::U64 | Type::B64 => {
                type $int = u64;
                $body
            }
            Type::S64 => {
                type $int = i64;
                $body
            }
            _ => $other,
        }
    };
}

/// `abs`, `neg`.
pub(super) fn unary(
    context: &mut Context<'_>,
    op: UnaryOp,
    ty: Type,
    dst: Register,
    a: Source,
) -> Result<(), ComputeError> {
    let bits = ty.bits();
    let all = ones(bits);
    match (op, ty) {
        (UnaryOp::Negate, Type::S16x2 | Type::U16x2) => {
            context.unary(dst, a, halves1(|a| a.wrapping_neg() & 0xffff));
        }
        (UnaryOp::Negate, _) => context.unary(dst, a, |a| a.wrapping_neg() & all),
        // The smallest value has no counterpart and stays.
        (UnaryOp::Absolute, Type::S16 | Type::S32 | Type::S64) => {
            context.unary(dst, a, |a| sign_extended(a, bits).unsigned_abs() & all);
        }
        _ => return unsupported(&(op, ty)),
    }
    Ok(())
}

/// `add`, `sub`, `mul`, `div`, `rem`, `min`, `max`.
pub(super) fn binary(
    context: &mut Context<'_>,
    op: BinaryOp,
    ty: Type,
    mode: FloatMode,
    dst: Register,
    [a, b]: [Source; 2],
) -> Result<(), ComputeError> {
    if matches!(ty, Type::S16x2 | Type::U16x2) {
        return packed(context, op, ty, mode, dst, [a, b]);
    }
    let all = ones(ty.bits());
    match op {
        BinaryOp::Add if mode.saturate => with_integer!(ty, I => {
            context.binary(dst, a, b, |a, b| I::of(a).saturating_sum(I::of(b)).lane());
        }, else return unsupported(&(op, ty))),
        BinaryOp::Subtract if mode.saturate => with_integer!(ty, I => {
            context.binary(dst, a, b, |a, b| I::of(a).saturating_difference(I::of(b)).lane());
        }, else return unsupported(&(op, ty))),
        BinaryOp::Add => context.binary(dst, a, b, |a, b| a.wrapping_add(b) & all),
        BinaryOp::Subtract => context.binary(dst, a, b, |a, b| a.wrapping_sub(b) & all),
        // A product of 32-bit halves is one vector instruction, one of 64 bits is not.
        BinaryOp::Multiply if ty.bits() <= 32 => {
            context.binary(dst, a, b, |a, b| (a & 0xffff_ffff).wrapping_mul(b & 0xffff_ffff) & all);
        }
        BinaryOp::Multiply => context.binary(dst, a, b, u64::wrapping_mul),
        BinaryOp::MultiplyHigh => with_integer!(ty, I => {
            context.binary(dst, a, b, |a, b| I::of(a).high_product(I::of(b)).lane());
        }, else return unsupported(&(op, ty))),
        BinaryOp::MultiplyWide => {
            let wide = wide_product(ty).ok_or_else(|| super::unsupported_error(&(op, ty)))?;
            match wide {
                Wide::Unsigned32 => context.binary(dst, a, b, |a, b| (a & 0xffff_ffff) * (b & 0xffff_ffff)),
                Wide::Signed32 => context.binary(dst, a, b, signed_product),
                Wide::Unsigned16 => context.binary(dst, a, b, |a, b| (a & 0xffff) * (b & 0xffff)),
                Wide::Signed16 => context.binary(dst, a, b, signed_product16),
            }
        }
        BinaryOp::Multiply24 => context.binary(dst, a, b, |a, b| product24(ty, a, b)),
        // PTX leaves a division by zero open; quotient and remainder are all ones here.
        BinaryOp::Divide => with_integer!(ty, I => context.binary(dst, a, b, |a, b| {
            let (a, b) = (I::of(a), I::of(b));
            if b == I::default() { I::ALL_ONES.lane() } else { a.wrapping_quotient(b).lane() }
        }), else return unsupported(&(op, ty))),
        BinaryOp::Remainder => with_integer!(ty, I => context.binary(dst, a, b, |a, b| {
            let (a, b) = (I::of(a), I::of(b));
            if b == I::default() { I::ALL_ONES.lane() } else { a.wrapping_rest(b).lane() }
        }), else return unsupported(&(op, ty))),
        BinaryOp::Minimum | BinaryOp::Maximum => {
            let maximum = op == BinaryOp::Maximum;
            with_integer!(ty, I => {
                let relu = mode.relu;
                context.binary(dst, a, b, |a, b| {
                    let (a, b) = (I::of(a), I::of(b));
                    let chosen = if maximum { a.max(b) } else { a.min(b) };
                    if relu { chosen.max(I::default()).lane() } else { chosen.lane() }
                });
            }, else return unsupported(&(op, ty)));
        }
        _ => return unsupported(&(op, ty)),
    }
    Ok(())
}

/// The forms on two 16-bit values in one register.
fn packed(
    context: &mut Context<'_>,
    op: BinaryOp,
    ty: Type,
    mode: FloatMode,
    dst: Register,
    [a, b]: [Source; 2],
) -> Result<(), ComputeError> {
    match (op, ty) {
        (BinaryOp::Add, _) if !mode.saturate => {
            context.binary(dst, a, b, halves2(|a, b| a.wrapping_add(b) & 0xffff));
        }
        (BinaryOp::Subtract, _) if !mode.saturate => {
            context.binary(dst, a, b, halves2(|a, b| a.wrapping_sub(b) & 0xffff));
        }
        (BinaryOp::Add, Type::S16x2) => {
            context.binary(dst, a, b, halves2(|a, b| (a as i16).saturating_add(b as i16).lane()));
        }
        (BinaryOp::Subtract, Type::S16x2) => {
            context.binary(dst, a, b, halves2(|a, b| (a as i16).saturating_sub(b as i16).lane()));
        }
        (BinaryOp::Add, Type::U16x2) => {
            context.binary(dst, a, b, halves2(|a, b| (a as u16).saturating_add(b as u16).lane()));
        }
        (BinaryOp::Subtract, Type::U16x2) => {
            context.binary(dst, a, b, halves2(|a, b| (a as u16).saturating_sub(b as u16).lane()));
        }
        (BinaryOp::Minimum, Type::U16x2) => context.binary(dst, a, b, halves2(u64::min)),
        (BinaryOp::Maximum, Type::U16x2) => context.binary(dst, a, b, halves2(u64::max)),
        (BinaryOp::Minimum | BinaryOp::Maximum, Type::S16x2) => {
            let maximum = op == BinaryOp::Maximum;
            let floor = if mode.relu { 0 } else { i16::MIN };
            let choose = move |a: u64, b: u64| {
                let (a, b) = (a as i16, b as i16);
                (if maximum { a.max(b) } else { a.min(b) }).max(floor).lane()
            };
            context.binary(dst, a, b, halves2(choose));
        }
        _ => return unsupported(&(op, ty)),
    }
    Ok(())
}

/// `mad`, `sad`, `mad24`, and `min`, `max` of three.
pub(super) fn ternary(
    context: &mut Context<'_>,
    op: TernaryOp,
    ty: Type,
    mode: FloatMode,
    dst: Register,
    sources: [Source; 3],
) -> Result<(), ComputeError> {
    let all = ones(ty.bits());
    match op {
        TernaryOp::MultiplyAdd if ty.bits() <= 32 => context.ternary(dst, sources, |a, b, c| {
            (a & 0xffff_ffff).wrapping_mul(b & 0xffff_ffff).wrapping_add(c) & all
        }),
        TernaryOp::MultiplyAdd => {
            context.ternary(dst, sources, |a, b, c| a.wrapping_mul(b).wrapping_add(c));
        }
        TernaryOp::MultiplyAddHigh if mode.saturate => with_integer!(ty, I => {
            context.ternary(dst, sources, |a, b, c| {
                I::of(a).high_product(I::of(b)).saturating_sum(I::of(c)).lane()
            });
        }, else return unsupported(&(op, ty))),
        TernaryOp::MultiplyAddHigh => with_integer!(ty, I => {
            context.ternary(dst, sources, |a, b, c| {
                I::of(a).high_product(I::of(b)).lane().wrapping_add(c) & all
            });
        }, else return unsupported(&(op, ty))),
        TernaryOp::MultiplyAddWide => {
            let wide = wide_product(ty).ok_or_else(|| super::unsupported_error(&(op, ty)))?;
            match wide {
                Wide::Unsigned32 => context
                    .ternary(dst, sources, |a, b, c| ((a & 0xffff_ffff) * (b & 0xffff_ffff)).wrapping_add(c)),
                Wide::Signed32 => {
                    context.ternary(dst, sources, |a, b, c| signed_product(a, b).wrapping_add(c));
                }
                Wide::Unsigned16 => context.ternary(dst, sources, |a, b, c| {
                    ((a & 0xffff) * (b & 0xffff)).wrapping_add(c) & 0xffff_ffff
                }),
                Wide::Signed16 => context
                    .ternary(dst, sources, |a, b, c| signed_product16(a, b).wrapping_add(c) & 0xffff_ffff),
            }
        }
        TernaryOp::MultiplyAdd24 => {
            context.ternary(dst, sources, |a, b, c| product24(ty, a, b).wrapping_add(c) & 0xffff_ffff)
        }
        TernaryOp::SumOfAbsoluteDifferences => with_integer!(ty, I => {
            context.ternary(dst, sources, |a, b, c| {
                I::of(a).distance(I::of(b)).lane().wrapping_add(c) & all
            });
        }, else return unsupported(&(op, ty))),
        TernaryOp::Minimum3 => with_integer!(ty, I => {
            context.ternary(dst, sources, |a, b, c| I::of(a).min(I::of(b)).min(I::of(c)).lane());
        }, else return unsupported(&(op, ty))),
        TernaryOp::Maximum3 => with_integer!(ty, I => {
            context.ternary(dst, sources, |a, b, c| I::of(a).max(I::of(b)).max(I::of(c)).lane());
        }, else return unsupported(&(op, ty))),
        _ => return unsupported(&(op, ty)),
    }
    Ok(())
}

/// The operands of a product that is twice as wide.
enum Wide {
    Unsigned16,
    Signed16,
    Unsigned32,
    Signed32,
}

fn wide_product(ty: Type) -> Option<Wide> {
    match ty {
        Type::U16 => Some(Wide::Unsigned16),
        Type::S16 => Some(Wide::Signed16),
        Type::U32 => Some(Wide::Unsigned32),
        Type::S32 => Some(Wide::Signed32),
        _ => None,
    }
}

#[inline(always)]
fn signed_product(a: u64, b: u64) -> u64 {
    i64::from(a as i32).wrapping_mul(i64::from(b as i32)) as u64
}

#[inline(always)]
fn signed_product16(a: u64, b: u64) -> u64 {
    i32::from(a as i16).wrapping_mul(i32::from(b as i16)).lane()
}

/// The low 32 bits of the product of the operands' low 24.
#[inline(always)]
fn product24(ty: Type, a: u64, b: u64) -> u64 {
    let of = |x: u64| if ty.is_signed() { sign_extended(x, 24) } else { (x & 0xff_ffff) as i64 };
    of(a).wrapping_mul(of(b)) as u64 & 0xffff_ffff
}
