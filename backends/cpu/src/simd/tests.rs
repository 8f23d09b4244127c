//! Every operation against a scalar, in every tier.

use half::{bf16, f16};

use super::{Isa, Kernel, LANES, StoredFloat, Tier, first_lanes, random::Random};

/// Values where operations go wrong, and ordinary ones.
fn floats() -> Vec<[f32; LANES]> {
    let mut x = vec![
        [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            1.5,
            2.5,
            -0.5,
            -1.5,
            -2.5,
            8_388_607.5,
            8_388_609.0,
            -4_194_303.5,
            f32::MIN_POSITIVE,
            1e-45,
            -1e-45,
        ],
        [
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            f32::MAX,
            f32::MIN,
            2_147_483_648.0,
            -2_147_483_648.0,
            2_147_483_520.0,
            -2_147_483_904.0,
            127.5,
            128.5,
            -128.5,
            0.499_999_97,
            1e-40,
            16_777_217.0,
            3.0,
        ],
    ];
    let mut random = Random::new(1);
    for exponent in -20..20 {
        x.push(std::array::from_fn(|_| random.float() * 2f32.powi(exponent)));
    }
    x
}

fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

type Case = ([f32; LANES], [f32; LANES]);

macro_rules! check_floats {
    ($($name:ident($a:ident, $b:ident): |$isa:ident, $x:ident, $y:ident| $vector:expr => $scalar:expr;)*) => {
        $(
            #[test]
            fn $name() {
                struct Operation(Case);
                impl Kernel for Operation {
                    type Output = [f32; LANES];
                    #[inline(always)]
                    fn run<I: Isa>(self, $isa: I) -> [f32; LANES] {
                        let ($x, $y) = ($isa.load(&self.0.0), $isa.load(&self.0.1));
                        let mut out = [0.0; LANES];
                        $isa.store($vector, &mut out);
                        out
                    }
                }
                for tier in Tier::available() {
                    for a in floats() {
                        for mut b in floats() {
                            for _ in 0..3 {
                                b.rotate_left(5);
                                let got = tier.run(Operation((a, b)));
                                for i in 0..LANES {
                                    let ($a, $b) = (a[i], b[i]);
                                    let _ = $b;
                                    let want: f32 = $scalar;
                                    assert!(
                                        same(got[i], want),
                                        "{tier} {} of {} and {}: {} instead of {want}",
                                        stringify!($name), $a, $b, got[i],
                                    );
                                }
                            }
                        }
                    }
                }
            }
        )*
    };
}

check_floats! {
    add(a, b): |isa, x, y| isa.add(x, y) => a + b;
    sub(a, b): |isa, x, y| isa.sub(x, y) => a - b;
    mul(a, b): |isa, x, y| isa.mul(x, y) => a * b;
    div(a, b): |isa, x, y| isa.div(x, y) => a / b;
    max(a, b): |isa, x, y| isa.max(x, y) => if a > b { a } else { b };
    min(a, b): |isa, x, y| isa.min(x, y) => if a < b { a } else { b };
    abs(a, b): |isa, x, _y| isa.abs(x) => a.abs();
    round(a, b): |isa, x, _y| isa.round(x) => a.round_ties_even();
    less(a, b): |isa, x, y| isa.select(isa.less(x, y), x, isa.splat(7.0)) => if a < b { a } else { 7.0 };
    equal(a, b): |isa, x, y| isa.select(isa.equal(x, y), x, isa.splat(7.0)) => if a == b { a } else { 7.0 };
    bits(a, b): |isa, x, _y| isa.of_bits(isa.to_bits(x)) => a;
    masked(a, b): |isa, x, y| isa.mul_add_masked(0, x, y, y) => b;
    integers(a, b): |isa, x, _y| isa.to_f32(isa.to_i32(x)) => {
        let nearest = f64::from(a).round_ties_even();
        if nearest.abs() < 2f64.powi(31) { nearest as i32 as f32 } else { i32::MIN as f32 }
    };
}

#[test]
fn multiply_add_rounds_once_or_twice() {
    struct MulAdd(Case);
    impl Kernel for MulAdd {
        type Output = [f32; LANES];
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) -> [f32; LANES] {
            let Self((a, b)) = self;
            let mut out = [0.0; LANES];
            let c = isa.splat(-1.0);
            isa.store(isa.mul_add(isa.load(&a), isa.load(&b), c), &mut out);
            out
        }
    }
    let x = [1.0 + f32::EPSILON; LANES];
    for tier in Tier::available() {
        let want = if tier == Tier::PORTABLE { x[0] * x[0] - 1.0 } else { x[0].mul_add(x[0], -1.0) };
        assert_eq!(tier.run(MulAdd((x, x))), [want; LANES], "{tier}");
    }
}

#[test]
fn scaling_rounds_once() {
    struct Scale(f32, f32);
    impl Kernel for Scale {
        type Output = f32;
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) -> f32 {
            isa.max_lane(isa.scale_by_power(isa.splat(self.0), isa.splat(self.1)))
        }
    }
    for tier in Tier::available() {
        for x in [0.7f32, 1.0, 1.234_567_8, 1.999_999_9] {
            for n in -252..=252 {
                let want = (f64::from(x) * 2f64.powi(n)) as f32;
                assert_eq!(tier.run(Scale(x, n as f32)).to_bits(), want.to_bits(), "{tier} {x} * 2^{n}");
            }
        }
    }
}

#[test]
fn sums_and_maxima_take_the_documented_tree() {
    struct Fold([f32; LANES]);
    impl Kernel for Fold {
        type Output = (f32, f32, i32);
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) -> (f32, f32, i32) {
            let x = isa.load(&self.0);
            (isa.sum(x), isa.max_lane(x), isa.sum_i32(isa.to_bits(x)))
        }
    }
    fn tree(x: &[f32], f: fn(f32, f32) -> f32) -> f32 {
        if let [x] = x {
            return *x;
        }
        let (low, high) = x.split_at(x.len() / 2);
        let folded: Vec<f32> = low.iter().zip(high).map(|(&a, &b)| f(a, b)).collect();
        tree(&folded, f)
    }
    for tier in Tier::available() {
        for x in floats() {
            let (sum, max, bits) = tier.run(Fold(x));
            assert!(same(sum, tree(&x, |a, b| a + b)), "{tier} {x:?}");
            assert!(same(max, tree(&x, |a, b| if a > b { a } else { b })), "{tier} {x:?}");
            assert_eq!(bits, x.iter().fold(0, |sum: i32, x| sum.wrapping_add(x.to_bits() as i32)));
        }
    }
}

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

#[test]
fn masks_of_first_lanes() {
    assert_eq!(first_lanes(0), 0);
    assert_eq!(first_lanes(3), 0b111);
    assert_eq!(first_lanes(16), 0xffff);
    assert_eq!(first_lanes(100), 0xffff);
}

/// What a tier is compiled for.
struct TileRows;

impl Kernel for TileRows {
    type Output = usize;
    fn run<I: Isa>(self, _: I) -> usize {
        I::TILE_ROWS
    }
}

#[test]
fn tiers_have_names() {
    let names: Vec<_> = Tier::available().map(Tier::name).collect();
    assert_eq!(names[0], "portable");
    assert_eq!(Tier::best().to_string(), names[names.len() - 1]);
    // The most rows of a tile of weights: what each instruction set has registers for.
    for tier in Tier::available() {
        let expected = match tier.name() {
            "portable" => 4,
            "avx512" => 12,
            _ => 2,
        };
        assert_eq!(tier.run(TileRows), expected, "{tier}");
    }
}
