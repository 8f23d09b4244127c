//! Arithmetic of integers.

use crate::simd::{Isa, Kernel, LANES, Tier, random::Random};

#[test]
fn byte_products_are_exact() {
    struct Dot<'a>(i32, &'a [u8; 64], [i8; 4]);
    impl Kernel for Dot<'_> {
        type Output = [i32; LANES];
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) -> [i32; LANES] {
            let (mut sum, mut out) = ([0; LANES], [0; LANES]);
            let start = isa.splat_i32(self.0);
            isa.store_i32(isa.dot_u8_i8(start, isa.load_bytes(self.1), isa.splat_quad(self.2)), &mut sum);
            isa.store_i32(isa.load_i32(&sum), &mut out);
            out
        }
    }
    let mut random = Random::new(2);
    for tier in Tier::available() {
        for round in 0..1000 {
            let u: [u8; 64] = std::array::from_fn(|_| if round < 4 { 255 } else { random.i8() as u8 });
            let s = match round {
                0 => [-128; 4],
                1 => [127; 4],
                _ => std::array::from_fn(|_| random.i8()),
            };
            let start = random.bits() as i32;
            let got = tier.run(Dot(start, &u, s));
            for lane in 0..LANES {
                let exact: i32 = (0..4).map(|i| i32::from(u[4 * lane + i]) * i32::from(s[i])).sum();
                assert_eq!(got[lane], start.wrapping_add(exact), "{tier} {s:?}");
            }
        }
    }
}

#[test]
fn integer_operations_wrap_and_shift_zeros_in() {
    struct Integers(i32, i32);
    impl Kernel for Integers {
        type Output = [i32; 5];
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) -> [i32; 5] {
            let (a, b) = (isa.splat_i32(self.0), isa.splat_i32(self.1));
            let results = [
                isa.add_i32(a, b),
                isa.sub_i32(a, b),
                isa.and(a, b),
                isa.shift_left::<5>(a),
                isa.shift_right::<5>(a),
            ];
            results.map(|x| {
                let mut out = [0; 1];
                isa.store_i32_partial(x, &mut out);
                out[0]
            })
        }
    }
    let mut random = Random::new(4);
    for tier in Tier::available() {
        for _ in 0..100 {
            let (a, b) = (random.bits() as i32, random.bits() as i32);
            let want = [a.wrapping_add(b), a.wrapping_sub(b), a & b, a << 5, (a as u32 >> 5) as i32];
            assert_eq!(tier.run(Integers(a, b)), want, "{tier} {a} {b}");
        }
    }
}

#[test]
fn bytes_extend_their_sign() {
    struct Extend<'a>(&'a [i8]);
    impl Kernel for Extend<'_> {
        type Output = [i32; LANES];
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) -> [i32; LANES] {
            let mut out = [0; LANES];
            isa.store_i32_partial(isa.load_i8_partial(self.0), &mut out);
            out
        }
    }
    for tier in Tier::available() {
        let got = tier.run(Extend(&[-128, -1, 0, 127]));
        assert_eq!(got[..5], [-128, -1, 0, 127, 0], "{tier}");
    }
}
