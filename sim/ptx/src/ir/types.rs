//! The types that PTX instructions name, and what a register's lane holds of each.

/// A PTX type. A lane of a register is 64 bits; narrower values lie in its low bits, and the bits above are zero, for
/// signed types too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names are PTX's own")]
pub enum Type {
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    U16x2,
    S16x2,
    F16,
    F16x2,
    BF16,
    BF16x2,
    TF32,
    E4M3,
    E5M2,
    E4M3x2,
    E5M2x2,
    F32,
    F64,
    Predicate,
}

impl Type {
    /// Bits of one value. A predicate has one.
    pub const fn bits(self) -> u32 {
        match self {
            Type::Predicate => 1,
            Type::B8 | Type::U8 | Type::S8 | Type::E4M3 | Type::E5M2 => 8,
            Type::B16 | Type::U16 | Type::S16 | Type::F16 | Type::BF16 | Type::E4M3x2 | Type::E5M2x2 => 16,
            Type::B32
            | Type::U32
            | Type::S32
            | Type::U16x2
            | Type::S16x2
            | Type::F16x2
            | Type::BF16x2
            | Type::TF32
            | Type::F32 => 32,
            Type::B64 | Type::U64 | Type::S64 | Type::F64 => 64,
            Type::B128 => 128,
        }
    }

    /// Bytes of one value in memory.
    pub const fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Whether arithmetic on it is signed.
    pub const fn is_signed(self) -> bool {
        matches!(self, Type::S8 | Type::S16 | Type::S32 | Type::S64 | Type::S16x2)
    }

    /// Whether it is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(
            self,
            Type::F16
                | Type::F16x2
                | Type::BF16
                | Type::BF16x2
                | Type::TF32
                | Type::E4M3
                | Type::E5M2
                | Type::E4M3x2
                | Type::E5M2x2
                | Type::F32
                | Type::F64
        )
    }
}

/// A state space: which memory an address means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Space {
    /// Told by the address itself: global, shared or local.
    Generic,
    /// The device's memory.
    Global,
    /// The block's shared memory.
    Shared,
    /// The thread's own memory: what does not fit into registers, and arrays indexed at run time.
    Local,
    /// The kernel's parameters.
    Param,
    /// Constants of the module.
    Const,
}

/// How a result is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rounding {
    /// To the nearest, ties to even: `.rn`, `.rni`.
    NearestEven,
    /// To the nearest, ties away from zero: `.rna`.
    NearestAway,
    /// Towards zero: `.rz`, `.rzi`.
    Zero,
    /// Downwards: `.rm`, `.rmi`.
    Down,
    /// Upwards: `.rp`, `.rpi`.
    Up,
}

/// What modifies floating-point arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct FloatMode {
    /// Where it is named; the instruction's default else.
    pub rounding: Option<Rounding>,
    /// `.ftz`: subnormal inputs and results become zeros of their sign.
    pub flush_to_zero: bool,
    /// `.sat`: the result is clamped to [0, 1], NaN to 0 (floats), or to the type's range (integers).
    pub saturate: bool,
    /// `.relu`: negative results become 0.
    pub relu: bool,
    /// `.NaN` of minimum and maximum: a NaN operand gives NaN.
    pub nan: bool,
    /// `.approx`: the instruction's approximation may be used.
    pub approximate: bool,
}

impl FloatMode {
    /// Nothing named.
    pub const PLAIN: FloatMode = FloatMode {
        rounding: None,
        flush_to_zero: false,
        saturate: false,
        relu: false,
        nan: false,
        approximate: false,
    };

    /// The rounding that is named, or to the nearest even.
    pub fn rounding(&self) -> Rounding {
        self.rounding.unwrap_or(Rounding::NearestEven)
    }
}
