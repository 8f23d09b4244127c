//! Numbers as PTX writes them.

use crate::ir::Type;
use half::{bf16, f16};

/// An integer: decimal, `0x`, `0b`, octal with a leading zero; a `U` may follow.
pub(super) fn integer(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('U').unwrap_or(text);
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        u64::from_str_radix(hex, 16).ok()
    } else if let Some(binary) = digits.strip_prefix("0b").or_else(|| digits.strip_prefix("0B")) {
        u64::from_str_radix(binary, 2).ok()
    } else if digits.len() > 1 && digits.starts_with('0') {
        u64::from_str_radix(digits, 8).ok()
    } else {
        digits.parse().ok()
    }
}

/// A number of an operand or an initial value, before its type is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    /// Two's complement.
    Integer(u64),
    /// `0f3F800000`: an f32's bits.
    Single(u32),
    /// `0d3FF0000000000000`, `1.0`.
    Double(f64),
}

impl Number {
    pub(super) fn read(text: &str) -> Option<Number> {
        let bits = |digits: &str, length| {
            (digits.len() == length).then(|| u64::from_str_radix(digits, 16).ok()).flatten()
        };
        if let Some(digits) = text.strip_prefix("0f").or_else(|| text.strip_prefix("0F")) {
            return bits(digits, 8).and_then(|bits| u32::try_from(bits).ok()).map(Number::Single);
        }
        if let Some(digits) = text.strip_prefix("0d").or_else(|| text.strip_prefix("0D")) {
            return bits(digits, 16).map(|bits| Number::Double(f64::from_bits(bits)));
        }
        match integer(text) {
            Some(integer) => Some(Number::Integer(integer)),
            // Rust's own floats would take `inf` and `nan` too, but those do not begin with a digit.
            None if text.contains(['.', 'e', 'E']) && !text.starts_with("0x") => {
                text.parse().ok().map(Number::Double)
            }
            None => None,
        }
    }

    pub(super) fn negated(self) -> Number {
        match self {
            Number::Integer(integer) => Number::Integer(integer.wrapping_neg()),
            Number::Single(bits) => Number::Single(bits ^ 1 << 31),
            Number::Double(value) => Number::Double(-value),
        }
    }

    pub(super) fn complemented(self) -> Option<Number> {
        match self {
            Number::Integer(integer) => Some(Number::Integer(!integer)),
            Number::Single(_) | Number::Double(_) => None,
        }
    }

    /// Its bits in `ty`, zeros above: integers are cut, floats rounded. `None` where a type cannot say it (an integer for
    /// an f32, a float for an s32).
    pub(super) fn bits(self, ty: Type) -> Option<u64> {
        let low = |bits: u64| if ty.bits() < 64 { bits & ((1 << ty.bits()) - 1) } else { bits };
        Some(match (self, ty) {
            (_, Type::Predicate | Type::B128) => return None,
            (Number::Integer(_), Type::F32 | Type::F64) => return None,
            (Number::Integer(integer), _) => low(integer),
            (Number::Single(bits), Type::F32 | Type::B32 | Type::TF32) => u64::from(bits),
            (Number::Single(bits), Type::F64) => f64::from(f32::from_bits(bits)).to_bits(),
            (Number::Single(bits), Type::F16) => u64::from(f16::from_f32(f32::from_bits(bits)).to_bits()),
            (Number::Single(bits), Type::BF16) => u64::from(bf16::from_f32(f32::from_bits(bits)).to_bits()),
            (Number::Double(value), Type::F64 | Type::B64) => value.to_bits(),
            (Number::Double(value), Type::F32) => u64::from((value as f32).to_bits()),
            (Number::Double(value), Type::F16) => u64::from(f16::from_f64(value).to_bits()),
            (Number::Double(value), Type::BF16) => u64::from(bf16::from_f64(value).to_bits()),
            _ => return None,
        })
    }
}
