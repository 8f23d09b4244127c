//! The tensor types of GGUF that Halite reads.

use std::fmt;

/// How a tensor's values are stored: plain floats, or blocks of small integers that share scales.
///
/// A row (the innermost dimension) is always a whole number of blocks. The layout of each block and the formula of its
/// values stand at the block's own type in `gguf/dequantize/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GgmlType {
    /// IEEE single precision, little-endian.
    F32,
    /// IEEE half precision, little-endian.
    F16,
    /// The upper half of a single precision value, little-endian.
    Bf16,
    /// 4-bit codes, one scale per 32 values.
    Q4_0,
    /// 4-bit codes, one scale and one minimum per 32 values.
    Q4_1,
    /// 5-bit codes, one scale per 32 values.
    Q5_0,
    /// 5-bit codes, one scale and one minimum per 32 values.
    Q5_1,
    /// 8-bit codes, one scale per 32 values.
    Q8_0,
    /// 2-bit codes, 4-bit scales and minima per 16 values, super-blocks of 256.
    Q2K,
    /// 3-bit codes, 6-bit scales per 16 values, super-blocks of 256.
    Q3K,
    /// 4-bit codes, 6-bit scales and minima per 32 values, super-blocks of 256.
    Q4K,
    /// 5-bit codes, 6-bit scales and minima per 32 values, super-blocks of 256.
    Q5K,
    /// 6-bit codes, 8-bit scales per 16 values, super-blocks of 256.
    Q6K,
}

impl GgmlType {
    /// Every type, in the order of their numbers in the file.
    pub const ALL: [Self; 13] = [
        Self::F32,
        Self::F16,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q8_0,
        Self::Q2K,
        Self::Q3K,
        Self::Q4K,
        Self::Q5K,
        Self::Q6K,
        Self::Bf16,
    ];

    /// The type with this number in a GGUF tensor table; `None` for numbers Halite does not read.
    pub fn from_id(id: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|ty| ty.id() == id)
    }

    /// The type's number in a GGUF tensor table.
    pub const fn id(self) -> u32 {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::Q4_0 => 2,
            Self::Q4_1 => 3,
            Self::Q5_0 => 6,
            Self::Q5_1 => 7,
            Self::Q8_0 => 8,
            Self::Q2K => 10,
            Self::Q3K => 11,
            Self::Q4K => 12,
            Self::Q5K => 13,
            Self::Q6K => 14,
            Self::Bf16 => 30,
        }
    }

    /// Values in one block: 1 for plain floats, otherwise 32 or 256.
    pub const fn block_len(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => 1,
            Self::Q4_0 | Self::Q4_1 | Self::Q5_0 | Self::Q5_1 | Self::Q8_0 => 32,
            Self::Q2K | Self::Q3K | Self::Q4K | Self::Q5K | Self::Q6K => 256,
        }
    }

    /// Bytes of one block.
    pub const fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Q4_0 => 18,
            Self::Q4_1 => 20,
            Self::Q5_0 => 22,
            Self::Q5_1 => 24,
            Self::Q8_0 => 34,
            Self::Q2K => 84,
            Self::Q3K => 110,
            Self::Q4K => 144,
            Self::Q5K => 176,
            Self::Q6K => 210,
        }
    }

    /// Bytes of a row of `row_len` values; `None` where the row is not whole blocks or its size overflows.
    pub const fn row_bytes(self, row_len: usize) -> Option<usize> {
        if !row_len.is_multiple_of(self.block_len()) {
            return None;
        }
        (row_len / self.block_len()).checked_mul(self.block_bytes())
    }

    /// The name other GGUF tools print, such as `Q4_K`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::Bf16 => "BF16",
            Self::Q4_0 => "Q4_0",
            Self::Q4_1 => "Q4_1",
            Self::Q5_0 => "Q5_0",
            Self::Q5_1 => "Q5_1",
            Self::Q8_0 => "Q8_0",
            Self::Q2K => "Q2_K",
            Self::Q3K => "Q3_K",
            Self::Q4K => "Q4_K",
            Self::Q5K => "Q5_K",
            Self::Q6K => "Q6_K",
        }
    }
}

impl fmt::Display for GgmlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of a type number in messages, for the types that exist but are not read too.
pub(super) fn name_of(id: u32) -> &'static str {
    if let Some(ty) = GgmlType::from_id(id) {
        return ty.name();
    }
    match id {
        9 => "Q8_1",
        15 => "Q8_K",
        16 => "IQ2_XXS",
        17 => "IQ2_XS",
        18 => "IQ3_XXS",
        19 => "IQ1_S",
        20 => "IQ4_NL",
        21 => "IQ3_S",
        22 => "IQ2_S",
        23 => "IQ4_XS",
        24 => "I8",
        25 => "I16",
        26 => "I32",
        27 => "I64",
        28 => "F64",
        29 => "IQ1_M",
        34 => "TQ1_0",
        35 => "TQ2_0",
        39 => "MXFP4",
        40 => "NVFP4",
        41 => "Q1_0",
        _ => "an unknown type",
    }
}
