//! Checksums of sections: SipHash of pieces, which threads share.

use crate::siphash::siphash_2_4_128;
use rayon::prelude::*;

/// Bytes of a piece: many a matrix, so that all threads have something of it.
const PIECE: usize = 1 << 20;

/// Nothing has to be kept secret: whoever can write the file can also write its checksums.
const KEY: [u64; 2] = [0, 0];

/// 128 bits of all bytes: the hash of the hashes of pieces of 1 MiB.
pub(super) fn checksum(bytes: &[u8]) -> u128 {
    let pieces: Vec<u128> = bytes.par_chunks(PIECE).map(|piece| siphash_2_4_128(KEY, piece)).collect();
    let pieces: Vec<u8> = pieces.into_iter().flat_map(u128::to_le_bytes).collect();
    siphash_2_4_128(KEY, &pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_and_the_length_count() {
        let mut bytes = vec![3u8; 2 * PIECE + 5];
        let whole = checksum(&bytes);
        assert_ne!(whole, checksum(&bytes[..2 * PIECE]));
        for place in [0, PIECE - 1, PIECE, 2 * PIECE + 4] {
            bytes[place] ^= 1;
            assert_ne!(whole, checksum(&bytes), "byte {place}");
            bytes[place] ^= 1;
        }
        assert_eq!(whole, checksum(&bytes));
        assert_ne!(checksum(&[]), checksum(&[0]));
    }
}
