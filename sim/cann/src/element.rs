//! Element types: their codes in CANN's `aclDataType`, sizes, and values as f64 or i64.

/// An element type that this library computes with. Codes: `aclDataType` of acl_base_rt.h, 2026-08.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    F32,
    F16,
    I8,
    I32,
    U8,
    I64,
    U64,
    Bool,
    Bf16,
}

const TABLE: &[(Element, i32, usize, &str)] = &[
    (Element::F32, 0, 4, "FLOAT"),
    (Element::F16, 1, 2, "FLOAT16"),
    (Element::I8, 2, 1, "INT8"),
    (Element::I32, 3, 4, "INT32"),
    (Element::U8, 4, 1, "UINT8"),
    (Element::I64, 9, 8, "INT64"),
    (Element::U64, 10, 8, "UINT64"),
    (Element::Bool, 12, 1, "BOOL"),
    (Element::Bf16, 27, 2, "BFLOAT16"),
];

impl Element {
    /// The type that CANN numbers so.
    pub(crate) fn of(code: i32) -> Option<Self> {
        TABLE.iter().find(|row| row.1 == code).map(|row| row.0)
    }

    fn row(self) -> (i32, usize, &'static str) {
        TABLE.iter().find(|row| row.0 == self).map_or((-1, 1, "?"), |row| (row.1, row.2, row.3))
    }

    /// CANN's number of it.
    #[cfg(test)]
    pub(crate) fn code(self) -> i32 {
        self.row().0
    }

    /// Bytes of one element.
    pub(crate) fn size(self) -> usize {
        self.row().1
    }

    /// CANN's name of it, without the prefix.
    pub(crate) fn name(self) -> &'static str {
        self.row().2
    }

    /// True for types with a fraction.
    pub(crate) fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F16 | Self::Bf16)
    }

    /// The value of one element as an integer; fractions are cut off.
    pub(crate) fn integer(self, bytes: &[u8]) -> i64 {
        let mut raw = [0; 8];
        for (to, from) in raw.iter_mut().zip(bytes) {
            *to = *from;
        }
        let bits = u64::from_le_bytes(raw);
        match self {
            Self::I8 => i64::from(bits as u8 as i8),
            Self::I32 => i64::from(bits as u32 as i32),
            Self::U8 | Self::Bool | Self::I64 | Self::U64 => bits as i64,
            Self::F32 | Self::F16 | Self::Bf16 => self.value(bytes) as i64,
        }
    }

    /// The value of one element; integers above 2^53 lose their last digits.
    pub(crate) fn value(self, bytes: &[u8]) -> f64 {
        match (self, bytes) {
            (Self::F32, &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
            (Self::F16, &[a, b]) => widen(u16::from_le_bytes([a, b]), 10),
            (Self::Bf16, &[a, b]) => widen(u16::from_le_bytes([a, b]), 7),
            (Self::U64, _) => self.integer(bytes) as u64 as f64,
            _ => self.integer(bytes) as f64,
        }
    }

    /// The bytes of the nearest value, ties to even; integers saturate, and a NaN is 0.
    pub(crate) fn bytes(self, value: f64) -> Vec<u8> {
        let whole = value.round_ties_even();
        match self {
            Self::F32 => (value as f32).to_le_bytes().to_vec(),
            Self::F16 => narrow(value, 10).to_le_bytes().to_vec(),
            Self::Bf16 => narrow(value, 7).to_le_bytes().to_vec(),
            Self::I8 => (whole as i8).to_le_bytes().to_vec(),
            Self::I32 => (whole as i32).to_le_bytes().to_vec(),
            Self::U8 => vec![whole as u8],
            Self::Bool => vec![u8::from(value != 0.0)],
            Self::I64 => (whole as i64).to_le_bytes().to_vec(),
            Self::U64 => (whole as u64).to_le_bytes().to_vec(),
        }
    }
}

/// 16 bits with a sign, `mantissa` bits of mantissa and the rest of exponent.
fn widen(bits: u16, mantissa: u32) -> f64 {
    let exponents = 15 - mantissa;
    let bias = (1 << (exponents - 1)) - 1;
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(bits >> mantissa) & ((1 << exponents) - 1);
    let fraction = f64::from(bits & ((1 << mantissa) - 1));
    let one = f64::from(1_u32 << mantissa);
    sign * match exponent {
        0 => fraction / one * 2_f64.powi(1 - bias),
        all if all == (1 << exponents) - 1 => {
            if fraction == 0.0 {
                f64::INFINITY
            } else {
                f64::NAN
            }
        }
        _ => (1.0 + fraction / one) * 2_f64.powi(exponent - bias),
    }
}

/// The nearest such 16 bits, ties to even.
fn narrow(value: f64, mantissa: u32) -> u16 {
    let exponents = 15 - mantissa;
    let bias: i32 = (1 << (exponents - 1)) - 1;
    let sign = u16::from(value.is_sign_negative()) << 15;
    let infinity = ((1_u16 << exponents) - 1) << mantissa;
    if value.is_nan() {
        return infinity | 1 << (mantissa - 1);
    }
    let size = value.abs();
    let exponent = (((size.to_bits() >> 52) as i32) - 1023).clamp(1 - bias, bias + 1);
    if size.is_infinite() || exponent > bias {
        return sign | infinity;
    }
    // In units of the last place; all ones and a carry make the next exponent by themselves.
    let units = (size / 2_f64.powi(exponent - mantissa as i32)).round_ties_even() as u32;
    let field = ((exponent + bias - 1) as u32) << mantissa;
    sign | (field + units) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_have_the_bits_of_the_standard() {
        for (value, bits) in [
            (1.0, 0x3C00),
            (-2.0, 0xC000),
            (65504.0, 0x7BFF),
            (65520.0, 0x7C00),
            (2_f64.powi(-24), 1),
            (2_f64.powi(-25), 0),
            (2_f64.powi(-14), 0x0400),
            (1.0 + 2_f64.powi(-11), 0x3C00),
            (1.0 + 3.0 * 2_f64.powi(-11), 0x3C02),
        ] {
            assert_eq!(Element::F16.bytes(value), (bits as u16).to_le_bytes(), "{value}");
        }
        for (value, bits) in [(1.0, 0x3F80), (-1.5, 0xBFC0), (1.0 + 1.0 / 256.0, 0x3F80), (3.4e38, 0x7F80)] {
            assert_eq!(Element::Bf16.bytes(value), (bits as u16).to_le_bytes(), "{value}");
        }
    }

    #[test]
    fn every_pattern_survives_a_turn() {
        for element in [Element::F16, Element::Bf16] {
            for bits in 0..=u16::MAX {
                let value = element.value(&bits.to_le_bytes());
                if !value.is_nan() {
                    assert_eq!(element.bytes(value), bits.to_le_bytes(), "{element:?} {bits:#x}");
                }
            }
        }
    }

    #[test]
    fn integers_saturate() {
        assert_eq!(Element::I8.bytes(300.0), [127]);
        assert_eq!(Element::I8.bytes(-2.5), [254]);
        assert_eq!(Element::I32.integer(&(-7_i32).to_le_bytes()), -7);
        assert_eq!(Element::of(27), Some(Element::Bf16));
        assert_eq!(Element::of(29), None);
    }
}
