//! Arithmetic of floats.

use super::{floats, same};
use crate::simd::{Isa, Kernel, LANES, Tier};

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
