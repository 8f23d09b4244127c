//! Loads and stores: parts of vectors, and other types than F32.

use super::{floats, same};
use crate::simd::{Isa, Kernel, LANES, StoredFloat, Tier, random::Random};
use half::{bf16, f16};

#[test]
fn partial_loads_and_stores_keep_to_their_slices() {
    struct Copy<'a, T>(&'a [T], &'a mut [T]);
    impl<T: StoredFloat> Kernel for Copy<'_, T> {
        type Output = ();
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) {
            let x = T::load_partial(isa, self.0);
            T::store_partial(isa, isa.add(x, isa.splat(1.0)), self.1);
        }
    }
    fn check<T: StoredFloat + From<i8> + PartialEq + std::fmt::Debug>() {
        for tier in Tier::available() {
            for from in 0..=20 {
                for to in 0..=20 {
                    let source: Vec<T> = (0..from).map(|i| T::from(i as i8)).collect();
                    let mut out = [T::from(-3); 24];
                    tier.run(Copy(&source, &mut out[..to]));
                    for (i, &got) in out.iter().enumerate() {
                        let read = if i < from { i as i8 } else { 0 };
                        let want = if i < to.min(LANES) { read + 1 } else { -3 };
                        assert_eq!(got, T::from(want), "{tier} {from} to {to} at {i}");
                    }
                }
            }
        }
    }
    check::<f32>();
    check::<bf16>();
    check::<f16>();
}

/// A length of one that the compiler knows, of a value that it does not: LLVM 22 makes a store of 32 bits of a narrowing
/// to 16 and a masked store of one of them.
#[test]
fn stores_of_one_element_write_no_other() {
    struct One<'a, T>(&'a [f32; LANES], &'a mut [T; 3]);
    impl<T: StoredFloat> Kernel for One<'_, T> {
        type Output = ();
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) {
            T::store_partial(isa, isa.load(self.0), &mut self.1[1..2]);
        }
    }
    fn check<T: StoredFloat + From<i8> + PartialEq + std::fmt::Debug>() {
        for tier in Tier::available() {
            let mut out = [T::from(-3); 3];
            tier.run(One(std::hint::black_box(&[2.0; LANES]), &mut out));
            assert_eq!(out, [-3, 2, -3].map(T::from), "{tier}");
        }
    }
    check::<f32>();
    check::<bf16>();
    check::<f16>();
}

#[test]
fn half_precision_converts_exactly_there_and_to_nearest_back() {
    struct Widen<'a, T>(&'a [T; LANES]);
    impl<T: StoredFloat> Kernel for Widen<'_, T> {
        type Output = ([f32; LANES], [T; LANES]);
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) -> Self::Output {
            let x = T::load(isa, self.0);
            let (mut wide, mut back) = ([0.0; LANES], [T::ZERO; LANES]);
            isa.store(x, &mut wide);
            T::store_partial(isa, x, &mut back);
            (wide, back)
        }
    }
    for tier in Tier::available() {
        for bits in (0..=u16::MAX).step_by(LANES) {
            let f: [f16; LANES] = std::array::from_fn(|i| f16::from_bits(bits + i as u16));
            let b: [bf16; LANES] = std::array::from_fn(|i| bf16::from_bits(bits + i as u16));
            let ((wide_f, back_f), (wide_b, back_b)) = (tier.run(Widen(&f)), tier.run(Widen(&b)));
            for i in 0..LANES {
                assert!(same(wide_f[i], f[i].to_f32()), "{tier} f16 {:x}", f[i].to_bits());
                assert!(same(wide_b[i], b[i].to_f32()), "{tier} bf16 {:x}", b[i].to_bits());
                assert!(back_f[i].to_bits() == f[i].to_bits() || f[i].is_nan() && back_f[i].is_nan());
                assert!(back_b[i].to_bits() == b[i].to_bits() || b[i].is_nan() && back_b[i].is_nan());
            }
        }
    }
}

#[test]
fn narrowing_rounds_to_nearest_even() {
    struct Narrow<'a>(&'a [f32; LANES]);
    impl Kernel for Narrow<'_> {
        type Output = ([f16; LANES], [bf16; LANES], [i8; LANES]);
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) -> Self::Output {
            let x = isa.load(self.0);
            let mut out = ([f16::ZERO; LANES], [bf16::ZERO; LANES], [0; LANES]);
            isa.store_f16_partial(x, &mut out.0);
            isa.store_bf16_partial(x, &mut out.1);
            isa.store_i8_partial(isa.to_i32(x), &mut out.2);
            out
        }
    }
    let mut random = Random::new(3);
    let mut inputs = floats();
    inputs.push([
        65_504.0, 65_519.0, 65_520.0, 1e-8, 3e-8, 6.1e-5, 2049.0, 2051.0, 1.0, 127.5, 0., 0., 0., 0., 0., 0.,
    ]);
    for _ in 0..2000 {
        inputs.push(std::array::from_fn(|_| f32::from_bits(random.bits() as u32)));
        inputs.push(std::array::from_fn(|_| random.float() * 200.0));
    }
    for tier in Tier::available() {
        for x in &inputs {
            let (f, b, i) = tier.run(Narrow(x));
            for lane in 0..LANES {
                let x = x[lane];
                let (want_f, want_b) = (f16::from_f32(x), bf16::from_f32(x));
                assert!(f[lane] == want_f || x.is_nan() && f[lane].is_nan(), "{tier} {x:e} f16 {}", f[lane]);
                assert!(b[lane] == want_b || x.is_nan() && b[lane].is_nan(), "{tier} {x:e} bf16 {}", b[lane]);
                if x.abs() < 2e9 {
                    assert_eq!(i[lane], x.round_ties_even() as i8, "{tier} {x}");
                }
            }
        }
    }
}
