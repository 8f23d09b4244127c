//! SipHash-2-4 with 128-bit output (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012, and the 128-bit
//! variant of its reference implementation). Without the key, colliding inputs cannot be prepared.

/// The keyed hash of `message` under the key `k0 ‖ k1`, both read as little-endian words.
pub(crate) fn siphash_2_4_128([k0, k1]: [u64; 2], message: &[u8]) -> u128 {
    let mut state = State([
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d ^ 0xee,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ]);
    let (words, tail) = message.as_chunks::<8>();
    for word in words {
        state.absorb(u64::from_le_bytes(*word));
    }
    // The last word holds the remaining bytes and, in its top byte, the length modulo 256.
    let mut last = [0; 8];
    for (slot, byte) in last.iter_mut().zip(tail) {
        *slot = *byte;
    }
    last[7] = message.len().to_le_bytes()[0];
    state.absorb(u64::from_le_bytes(last));
    let low = state.finish(2, 0xee);
    let high = state.finish(1, 0xdd);
    u128::from(high) << 64 | u128::from(low)
}

struct State([u64; 4]);

impl State {
    fn absorb(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.round();
        self.0[0] ^= word;
    }

    fn finish(&mut self, lane: usize, constant: u64) -> u64 {
        self.0[lane] ^= constant;
        for _ in 0..4 {
            self.round();
        }
        self.0[0] ^ self.0[1] ^ self.0[2] ^ self.0[3]
    }

    fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.0;
        a = a.wrapping_add(b);
        b = b.rotate_left(13) ^ a;
        a = a.rotate_left(32);
        c = c.wrapping_add(d);
        d = d.rotate_left(16) ^ c;
        a = a.wrapping_add(d);
        d = d.rotate_left(21) ^ a;
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
        self.0 = [a, b, c, d];
    }
}

#[cfg(test)]
mod tests {
    use super::siphash_2_4_128;

    /// Vectors of the reference implementation: key 00 01 .. 0f, message 00 01 .. (n-1).
    #[test]
    fn agrees_with_the_published_vectors() {
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let cases: [(usize, [u8; 16]); 3] = [
            (
                0,
                [
                    0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02,
                    0x93,
                ],
            ),
            (
                1,
                [
                    0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44, 0x34, 0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc,
                    0x45,
                ],
            ),
            (
                63,
                [
                    0x51, 0x50, 0xd1, 0x77, 0x2f, 0x50, 0x83, 0x4a, 0x50, 0x3e, 0x06, 0x9a, 0x97, 0x3f, 0xbd,
                    0x7c,
                ],
            ),
        ];
        for (length, expected) in cases {
            let message: Vec<u8> = (0..63u8).take(length).collect();
            assert_eq!(siphash_2_4_128(key, &message).to_le_bytes(), expected, "message of {length} bytes");
        }
    }
}
