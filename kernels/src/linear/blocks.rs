//! Weights as GGUF files store them, and how their blocks are read.
//!
//! A row of `in_features` values is whole blocks, one after the other. Numbers are little-endian, `d` and `m` are F16:
//!
//! | format | values | bytes | a block | value `i` |
//! |---|---|---|---|---|
//! | Q4_0 | 32 | 18 | `d`, 16 bytes of codes | `d · (c[i] - 8)` |
//! | Q4_1 | 32 | 20 | `d`, `m`, 16 bytes of codes | `d · c[i] + m` |
//! | Q4_K | 256 | 144 | `d`, `m`, 12 bytes of 6-bit factors, 128 bytes of codes | `(d · a[g]) · c[i] - (m · b[g])`, `g = i / 32` |
//!
//! Codes `c` are 4 bits. Q4_0 and Q4_1: byte `j` has value `j` in its low half and value `j + 16` in its high half. Q4_K:
//! byte `32 · (g / 2) + j` has value `j` of group `g` in its low half where `g` is even, in its high half where it is odd.
//!
//! The factors `a` and `b` of Q4_K's groups 0 to 3 are the low 6 bits of bytes `g` and `g + 4`. Groups 4 to 7 have their low
//! four bits in the low (`a`) and high (`b`) half of byte `g + 4`, their upper two in the upper two of bytes `g - 4` and
//! `g`. `d · a` and `m · b` have at most 17 bits: F32 holds them exactly.

use super::WeightFormat;
use half::f16;

/// Values that share a scale, in each of these formats.
pub const BLOCK_GROUP: usize = 32;

/// The size of a stored block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockSize {
    /// Values of a block.
    pub values: usize,
    /// Bytes of a block.
    pub bytes: usize,
}

/// A group of a stored block: `value(i) = scale · q[i] + min`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct BlockValues {
    /// The scale.
    pub scale: f32,
    /// 0 in Q4_0.
    pub min: f32,
    /// From 0 to 15; in Q4_0 from -8 to 7, the codes less 8.
    pub q: [i8; BLOCK_GROUP],
}

impl WeightFormat {
    /// The blocks of a file's format; none of others.
    pub fn block(self) -> Option<BlockSize> {
        match self {
            WeightFormat::Q4_0 => Some(BlockSize { values: 32, bytes: 18 }),
            WeightFormat::Q4_1 => Some(BlockSize { values: 32, bytes: 20 }),
            WeightFormat::Q4K => Some(BlockSize { values: 256, bytes: 144 }),
            _ => None,
        }
    }

    /// Group `group` of 32 values of stored blocks; none where they end before it, or for formats without blocks.
    pub fn block_values(self, blocks: &[u8], group: usize) -> Option<BlockValues> {
        let size = self.block()?;
        let groups = size.values / BLOCK_GROUP;
        let start = (group / groups).checked_mul(size.bytes)?;
        let block = blocks.get(start..)?.get(..size.bytes)?;
        match self {
            WeightFormat::Q4_0 => Some(BlockValues {
                scale: number(block, 0)?,
                min: 0.0,
                q: halves(block.get(2..)?)?.map(|code| code - 8),
            }),
            WeightFormat::Q4_1 => Some(BlockValues {
                scale: number(block, 0)?,
                min: number(block, 2)?,
                q: halves(block.get(4..)?)?,
            }),
            _ => q4k(block, group % groups),
        }
    }
}

fn number(block: &[u8], at: usize) -> Option<f32> {
    Some(f16::from_le_bytes(*block.get(at..)?.first_chunk()?).to_f32())
}

/// 16 bytes: their low halves, then their high halves.
fn halves(codes: &[u8]) -> Option<[i8; BLOCK_GROUP]> {
    let codes: &[u8; 16] = codes.first_chunk()?;
    Some(std::array::from_fn(|i| if i < 16 { codes[i] & 0xF } else { codes[i - 16] >> 4 } as i8))
}

fn q4k(block: &[u8], group: usize) -> Option<BlockValues> {
    let factors: &[u8; 12] = block.get(4..)?.first_chunk()?;
    let (a, b) = if group < 4 {
        (factors[group] & 0x3F, factors[group + 4] & 0x3F)
    } else {
        let low = factors[group + 4];
        (low & 0xF | factors[group - 4] >> 6 << 4, low >> 4 | factors[group] >> 6 << 4)
    };
    let codes: &[u8; BLOCK_GROUP] = block.get(16 + 32 * (group / 2)..)?.first_chunk()?;
    Some(BlockValues {
        scale: number(block, 0)? * f32::from(a),
        min: -(number(block, 2)? * f32::from(b)),
        q: codes.map(|code| (code >> (4 * (group % 2)) & 0xF) as i8),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half(x: f32) -> [u8; 2] {
        f16::from_f32(x).to_le_bytes()
    }

    #[test]
    fn codes_of_blocks_of_32_lie_in_low_and_high_halves() {
        let mut block = half(-0.5).to_vec();
        block.extend((0..16).map(|j| j | (15 - j) << 4));
        let values = WeightFormat::Q4_0.block_values(&block, 0).unwrap();
        assert_eq!((values.scale, values.min), (-0.5, 0.0));
        assert_eq!(values.q[..3], [-8, -7, -6]);
        assert_eq!(values.q[16..19], [7, 6, 5]);
        block.splice(2..2, half(3.0));
        let values = WeightFormat::Q4_1.block_values(&block, 0).unwrap();
        assert_eq!((values.scale, values.min, values.q[31]), (-0.5, 3.0, 0));
        assert!(WeightFormat::Q4_1.block_values(&block, 1).is_none(), "beyond the last block");
        assert!(WeightFormat::F32.block_values(&block, 0).is_none());
    }

    #[test]
    fn factors_of_q4k_are_put_together_from_three_places() {
        let mut block = [half(1.0), half(2.0)].concat();
        let mut factors = [0u8; 12];
        // a[1] = 37, b[1] = 21; a[6] = 0b10_0110, b[6] = 0b01_1001.
        (factors[1], factors[5]) = (37, 21);
        (factors[10], factors[2], factors[6]) = (0b1001_0110, 0b1000_0000, 0b0100_0000);
        block.extend(factors);
        block.extend((0..128).map(|i| i as u8));
        let group = |group| WeightFormat::Q4K.block_values(&block, group).unwrap();
        assert_eq!((group(1).scale, group(1).min), (37.0, -42.0));
        assert_eq!((group(6).scale, group(6).min), (38.0, -50.0));
        assert_eq!(group(6).q[5], 101 & 0xF);
        assert_eq!(group(7).q[5], 101 >> 4);
    }
}
