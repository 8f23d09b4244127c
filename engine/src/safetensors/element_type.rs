//! How a tensor's values are stored.

use std::fmt;

use safetensors::Dtype;

/// The type of a tensor's values. Displayed as in the file: `F32`, `BF16`, `F8_E4M3`, ...
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ElementType {
    /// 64-bit floating point.
    F64,
    /// 32-bit floating point.
    F32,
    /// 16-bit IEEE floating point.
    F16,
    /// 16-bit "brain" floating point: the upper half of an F32.
    Bf16,
    /// 8-bit floating point with 4 bits of exponent and no infinities.
    F8E4M3,
    /// 8-bit floating point with 5 bits of exponent.
    F8E5M2,
    /// 64-bit signed integers.
    I64,
    /// 32-bit signed integers.
    I32,
    /// 16-bit signed integers.
    I16,
    /// 8-bit signed integers.
    I8,
    /// 64-bit unsigned integers.
    U64,
    /// 32-bit unsigned integers.
    U32,
    /// 16-bit unsigned integers.
    U16,
    /// 8-bit unsigned integers.
    U8,
    /// A byte each, 0 or 1.
    Bool,
    /// Any other type of the format, by its name.
    Other(&'static str),
}

impl ElementType {
    pub(super) fn of(dtype: Dtype) -> Self {
        match dtype {
            Dtype::F64 => Self::F64,
            Dtype::F32 => Self::F32,
            Dtype::F16 => Self::F16,
            Dtype::BF16 => Self::Bf16,
            Dtype::F8_E4M3 => Self::F8E4M3,
            Dtype::F8_E5M2 => Self::F8E5M2,
            Dtype::I64 => Self::I64,
            Dtype::I32 => Self::I32,
            Dtype::I16 => Self::I16,
            Dtype::I8 => Self::I8,
            Dtype::U64 => Self::U64,
            Dtype::U32 => Self::U32,
            Dtype::U16 => Self::U16,
            Dtype::U8 => Self::U8,
            Dtype::BOOL => Self::Bool,
            Dtype::F4 => Self::Other("F4"),
            Dtype::F6_E2M3 => Self::Other("F6_E2M3"),
            Dtype::F6_E3M2 => Self::Other("F6_E3M2"),
            Dtype::F8_E8M0 => Self::Other("F8_E8M0"),
            Dtype::F8_E4M3FNUZ => Self::Other("F8_E4M3FNUZ"),
            Dtype::F8_E5M2FNUZ => Self::Other("F8_E5M2FNUZ"),
            Dtype::C64 => Self::Other("C64"),
            _ => Self::Other("a type that is not known"),
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F64 => "F64",
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::Bf16 => "BF16",
            Self::F8E4M3 => "F8_E4M3",
            Self::F8E5M2 => "F8_E5M2",
            Self::I64 => "I64",
            Self::I32 => "I32",
            Self::I16 => "I16",
            Self::I8 => "I8",
            Self::U64 => "U64",
            Self::U32 => "U32",
            Self::U16 => "U16",
            Self::U8 => "U8",
            Self::Bool => "BOOL",
            Self::Other(name) => name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_format() {
        use Dtype::*;
        let all = [
            BOOL,
            F4,
            F6_E2M3,
            F6_E3M2,
            U8,
            I8,
            F8_E5M2,
            F8_E4M3,
            F8_E8M0,
            F8_E4M3FNUZ,
            F8_E5M2FNUZ,
            I16,
            U16,
            F16,
            BF16,
            I32,
            U32,
            F32,
            C64,
            F64,
            I64,
            U64,
        ];
        for dtype in all {
            assert_eq!(ElementType::of(dtype).to_string(), dtype.to_string());
        }
    }
}
