//! `cvt`: between integers, between floats, and from one to the other.

use super::context::Context;
use super::format::{BF16, E4M3, E5M2, F16, F32, Format, f32_bits, f32_of, f64_bits, flushed};
use super::quick::{f32_of_f16, nearest_bf16, nearest_f16};
use super::{ComputeError, exact, unsupported};
use crate::ir::{FloatMode, Register, Rounding, Source, Type};
use crate::registers::{ones, sign_extended};

/// What is converted to what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conversion {
    pub(super) to: Type,
    pub(super) from: Type,
    pub(super) mode: FloatMode,
    /// Bits of the destination register.
    pub(super) dst_bits: u32,
}

/// `cvt`; with `b`, two values are packed: `a` into the lower half.
pub(super) fn execute(
    context: &mut Context<'_>,
    conversion: Conversion,
    dst: Register,
    a: Source,
    b: Option<Source>,
) -> Result<(), ComputeError> {
    let Conversion { to, from, .. } = conversion;
    match (to.is_float(), from.is_float(), b) {
        (false, false, None) => integers(context, conversion, dst, a),
        (true, false, None) => return to_float(context, conversion, dst, a),
        (false, true, None) => return to_integer(context, conversion, dst, a),
        (true, true, None) => return floats(context, conversion, dst, a),
        (_, _, Some(b)) => return packed(context, conversion, dst, [a, b]),
    }
    Ok(())
}

/// `cvt.pack.sat`: two S32 values saturated, `b` lowest, `c` above.
pub(super) fn pack(
    context: &mut Context<'_>,
    to: Type,
    dst: Register,
    [a, b]: [Source; 2],
    c: Option<Source>,
) {
    let bits = to.bits();
    let clamp = move |x: u64| clamped(i128::from(x as i32), to) & ones(bits);
    // With 16-bit results there is no room for `c`, and no form that has it.
    let c = c.unwrap_or(Source::Immediate(0));
    context.ternary(dst, [a, b, c], |a, b, c| (clamp(b) | clamp(a) << bits | c << (2 * bits)) & 0xffff_ffff);
}

fn integers(context: &mut Context<'_>, conversion: Conversion, dst: Register, a: Source) {
    let Conversion { to, from, mode, dst_bits } = conversion;
    let (from_bits, signed) = (from.bits(), from.is_signed());
    let finish = extension(to, dst_bits);
    if mode.saturate {
        context.unary(dst, a, |a| {
            let value =
                if signed { sign_extended(a, from_bits).into() } else { i128::from(a & ones(from_bits)) };
            finish(clamped(value, to))
        });
    } else if signed && from_bits < to.bits().max(dst_bits) {
        context.unary(dst, a, |a| finish(sign_extended(a, from_bits) as u64));
    } else {
        let mask = ones(from_bits);
        context.unary(dst, a, |a| finish(a & mask));
    }
}

/// A result's low bits, and above them its sign where the register is wider and the type signed.
fn extension(to: Type, dst_bits: u32) -> impl Fn(u64) -> u64 + Copy {
    let bits = to.bits();
    let signed = to.is_signed() && dst_bits > bits;
    let (narrow, wide) = (ones(bits), ones(dst_bits.clamp(bits, 64)));
    move |value| if signed { sign_extended(value, bits) as u64 & wide } else { value & narrow }
}

/// The nearest value of an integer type.
fn clamped(value: i128, to: Type) -> u64 {
    let bits = to.bits();
    let (low, high) = if to.is_signed() {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, i128::from(ones(bits)))
    };
    value.clamp(low, high) as u64 & ones(bits)
}

fn to_float(
    context: &mut Context<'_>,
    conversion: Conversion,
    dst: Register,
    a: Source,
) -> Result<(), ComputeError> {
    let Conversion { to, from, mode, .. } = conversion;
    let (bits, signed) = (from.bits(), from.is_signed());
    let rounding = mode.rounding();
    let clamp = move |value: f64| if mode.saturate { value.clamp(0.0, 1.0) } else { value };
    match to {
        // Up to 32 bits every value is an f64.
        Type::F32 if bits <= 32 && rounding == Rounding::NearestEven && !mode.saturate => {
            if signed {
                context.unary(dst, a, |a| u64::from((sign_extended(a, bits) as i32 as f32).to_bits()));
            } else {
                context.unary(dst, a, |a| u64::from(((a & ones(bits)) as u32 as f32).to_bits()));
            }
        }
        Type::F64 => context.unary(dst, a, |a| {
            let (upper, lower) = parts(a, bits, signed);
            clamp(exact::sum_rounded(upper, lower, rounding)).to_bits()
        }),
        _ => {
            let Some(format) = Format::of(to) else { return unsupported(&conversion) };
            context.unary(dst, a, |a| {
                let (upper, lower) = parts(a, bits, signed);
                // Its own zero is +0 in every direction.
                let value = if upper == 0.0 { lower } else { exact::sum(upper, lower, rounding) };
                format.encode(clamp(value), rounding, false)
            });
        }
    }
    Ok(())
}

/// An integer as the sum of two f64: its upper and its lower 32 bits.
fn parts(a: u64, bits: u32, signed: bool) -> (f64, f64) {
    let value = if signed { i128::from(sign_extended(a, bits)) } else { i128::from(a & ones(bits)) };
    ((value >> 32) as f64 * 4_294_967_296.0, (value & 0xffff_ffff) as f64)
}

fn to_integer(
    context: &mut Context<'_>,
    conversion: Conversion,
    dst: Register,
    a: Source,
) -> Result<(), ComputeError> {
    let Conversion { to, from, mode, dst_bits } = conversion;
    let Some(read) = reader(from, mode.flush_to_zero) else { return unsupported(&conversion) };
    let bits = to.bits();
    let nan = if from == Type::F64 || bits == 64 { 1 << (bits - 1) } else { 0 };
    let finish = extension(to, dst_bits);
    let rounding = mode.rounding();
    let signed = to.is_signed();
    context.unary(dst, a, |a| {
        let value = read(a);
        if value.is_nan() {
            return finish(nan);
        }
        // Rust's conversions clamp to 64 bits, and every narrower bound is an f64.
        let value = integral(value, rounding);
        finish(if bits == 64 && !signed {
            value as u64
        } else if bits == 64 {
            value as i64 as u64
        } else {
            clamped(i128::from(value as i64), to)
        })
    });
    Ok(())
}

/// Rounded to an integral value.
fn integral(value: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::NearestEven => value.round_ties_even(),
        Rounding::NearestAway => value.round(),
        Rounding::Zero => value.trunc(),
        Rounding::Down => value.floor(),
        Rounding::Up => value.ceil(),
    }
}

/// How a lane of a scalar float type becomes an f64.
fn reader(from: Type, flush: bool) -> Option<impl Fn(u64) -> f64 + Copy> {
    let format = match from {
        Type::F64 => None,
        Type::F32 | Type::F16 | Type::BF16 => Some(Format::of(from)?),
        _ => return None,
    };
    Some(move |lane: u64| match format {
        None => f64::from_bits(lane),
        Some(F32) => f64::from(if flush { flushed(f32_of(lane)) } else { f32_of(lane) }),
        Some(format) => format.decode(lane),
    })
}

fn floats(
    context: &mut Context<'_>,
    conversion: Conversion,
    dst: Register,
    a: Source,
) -> Result<(), ComputeError> {
    let Conversion { to, from, mode, .. } = conversion;
    let plain = !mode.flush_to_zero && !mode.saturate && !mode.relu;
    let nearest = mode.rounding() == Rounding::NearestEven;
    match (to, from) {
        // The common ones, quick.
        (Type::BF16, Type::F32) if plain && nearest => {
            context.unary(dst, a, |a| u64::from(nearest_bf16(a as u32)));
        }
        (Type::F16, Type::F32) if plain && nearest => {
            context.unary(dst, a, |a| u64::from(nearest_f16(a as u32)));
        }
        (Type::F32, Type::BF16) if plain => context.unary(dst, a, |a| f32_bits(f32_of(a << 16))),
        (Type::F32, Type::F16) if plain => context.unary(dst, a, |a| f32_bits(f32_of_f16(a as u32))),
        (Type::F64, Type::F32) if plain => {
            context.unary(dst, a, |a| f64_bits(f64::from(f32_of(a))));
        }
        (Type::F32, Type::F64) if plain && nearest => {
            context.unary(dst, a, |a| f32_bits(f64::from_bits(a) as f32));
        }
        (Type::F16x2, Type::E4M3x2 | Type::E5M2x2) => {
            let format = if from == Type::E4M3x2 { E4M3 } else { E5M2 };
            let relu = mode.relu;
            context.unary(dst, a, |a| {
                let of = |bits: u64| {
                    let value = format.decode(bits & 0xff);
                    F16.encode(if relu { positive(value) } else { value }, Rounding::NearestEven, false)
                };
                of(a) | of(a >> 8) << 16
            });
        }
        (Type::E4M3x2 | Type::E5M2x2, Type::F16x2) => {
            let format = if to == Type::E4M3x2 { E4M3 } else { E5M2 };
            let relu = mode.relu;
            context.unary(dst, a, |a| {
                let of = |bits: u64| {
                    let value = F16.decode(bits & 0xffff);
                    format.encode(if relu { positive(value) } else { value }, Rounding::NearestEven, true)
                };
                of(a) | of(a >> 16) << 8
            });
        }
        (Type::TF32, Type::F32) => {
            let Some(format) = Format::of(to) else { return unsupported(&conversion) };
            let relu = mode.relu;
            context.unary(dst, a, |a| {
                let value = f64::from(f32_of(a));
                let value = if relu { positive(value) } else { value };
                // The upper bits of an f32; NaN has all of them set.
                format.encode(value, mode.rounding(), mode.saturate) << 13
            });
        }
        _ => {
            let Some(read) = reader(from, mode.flush_to_zero) else { return unsupported(&conversion) };
            let Some(write) = writer(to, mode) else { return unsupported(&conversion) };
            // Within a type a rounding means: to an integral value.
            if to == from && mode.rounding.is_some() {
                let rounding = mode.rounding();
                context.unary(dst, a, |a| write(integral(read(a), rounding)));
            } else {
                context.unary(dst, a, |a| write(read(a)));
            }
        }
    }
    Ok(())
}

/// How an f64 becomes a lane of a scalar float type.
fn writer(to: Type, mode: FloatMode) -> Option<impl Fn(f64) -> u64 + Copy> {
    let format = match to {
        Type::F64 => None,
        Type::F32 | Type::F16 | Type::BF16 => Some(Format::of(to)?),
        _ => return None,
    };
    let rounding = mode.rounding();
    Some(move |value: f64| {
        let value = if !mode.saturate {
            value
        } else if value > 0.0 {
            value.min(1.0)
        } else {
            0.0
        };
        let value = if mode.relu { positive(value) } else { value };
        match format {
            None => f64_bits(value),
            Some(F32) => {
                let value = f32_of(F32.encode(value, rounding, false));
                f32_bits(if mode.flush_to_zero { flushed(value) } else { value })
            }
            Some(format) => format.encode(value, rounding, false),
        }
    })
}

/// `.relu`: negative values become 0, NaN stays.
fn positive(value: f64) -> f64 {
    if value <= 0.0 { 0.0 } else { value }
}

/// Two f32 values into one register.
fn packed(
    context: &mut Context<'_>,
    conversion: Conversion,
    dst: Register,
    [a, b]: [Source; 2],
) -> Result<(), ComputeError> {
    let Conversion { to, from, mode, .. } = conversion;
    let format = match to {
        Type::F16x2 => F16,
        Type::BF16x2 => BF16,
        Type::E4M3x2 => E4M3,
        Type::E5M2x2 => E5M2,
        _ => return unsupported(&conversion),
    };
    if from != Type::F32 {
        return unsupported(&conversion);
    }
    let plain = !mode.saturate && !mode.relu && mode.rounding() == Rounding::NearestEven;
    if to == Type::BF16x2 && plain {
        context.binary(dst, a, b, |a, b| u64::from(nearest_bf16(a as u32) | nearest_bf16(b as u32) << 16));
        return Ok(());
    }
    if to == Type::F16x2 && plain {
        context.binary(dst, a, b, |a, b| u64::from(nearest_f16(a as u32) | nearest_f16(b as u32) << 16));
        return Ok(());
    }
    let above = to.bits() / 2;
    let convert = move |x: u64| {
        let value = f64::from(f32_of(x));
        let value = if mode.relu { positive(value) } else { value };
        format.encode(value, mode.rounding(), mode.saturate)
    };
    context.binary(dst, a, b, |a, b| convert(a) | convert(b) << above);
    Ok(())
}
