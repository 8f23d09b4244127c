//! f64 arithmetic rounded in any direction, by integers.

use crate::ir::Rounding;

/// A number: `magnitude · 2^exponent`, and a little more where `more`.
#[derive(Clone, Copy)]
struct Exact {
    negative: bool,
    magnitude: u128,
    exponent: i32,
    more: bool,
}

/// Where the highest bit of an aligned number is: a sum of two has a bit more.
const TOP: i32 = 125;

impl Exact {
    /// A finite value.
    fn of(value: f64) -> Exact {
        let bits = value.to_bits();
        let stored = (bits >> 52 & 0x7ff) as i32;
        let fraction = bits & ((1 << 52) - 1);
        let (magnitude, exponent) =
            if stored == 0 { (fraction, -1074) } else { (fraction | 1 << 52, stored - 1075) };
        Exact { negative: bits >> 63 == 1, magnitude: magnitude.into(), exponent, more: false }
    }

    fn times(self, by: Exact) -> Exact {
        Exact {
            negative: self.negative != by.negative,
            magnitude: self.magnitude * by.magnitude,
            exponent: self.exponent + by.exponent,
            more: false,
        }
    }

    /// The same number with its highest bit at [`TOP`], if it is not zero.
    fn aligned(self) -> Exact {
        let by = TOP + self.magnitude.leading_zeros() as i32 - 127;
        Exact { magnitude: self.magnitude << by.max(0), exponent: self.exponent - by.max(0), ..self }
    }

    /// The sum of two numbers of at most 106 bits.
    fn plus(self, with: Exact, rounding: Rounding) -> Exact {
        if self.magnitude == 0 && with.magnitude == 0 {
            let negative =
                if self.negative == with.negative { self.negative } else { rounding == Rounding::Down };
            return Exact { negative, ..self };
        }
        if self.magnitude == 0 {
            return with;
        }
        if with.magnitude == 0 {
            return self;
        }
        let (a, b) = (self.aligned(), with.aligned());
        let (large, small) =
            if (a.exponent, a.magnitude) >= (b.exponent, b.magnitude) { (a, b) } else { (b, a) };
        // Bits are only lost where the result keeps far more than 53 of its own.
        let distance = (large.exponent - small.exponent) as u32;
        let moved = small.magnitude.checked_shr(distance).unwrap_or(0);
        let more = moved.checked_shl(distance).unwrap_or(0) != small.magnitude;
        let magnitude = if large.negative == small.negative {
            large.magnitude + moved
        } else {
            // What is lost is taken away: one less, and a little more.
            large.magnitude - moved - u128::from(more)
        };
        let negative = if magnitude == 0 { rounding == Rounding::Down } else { large.negative };
        Exact { negative, magnitude, exponent: large.exponent, more }
    }

    fn rounded(self, rounding: Rounding) -> f64 {
        let sign = if self.negative { -1.0 } else { 1.0 };
        if self.magnitude == 0 {
            return 0f64.copysign(sign);
        }
        let highest = self.exponent + 127 - self.magnitude.leading_zeros() as i32;
        // The place of the last bit: 53 in all, fewer for subnormal numbers.
        let last = (highest - 52).max(-1074);
        let (dropped, more) = (last - self.exponent, self.more);
        let (kept, rest, half) = match dropped {
            // Exact, with room to spare: `more` is only set where there are many bits.
            ..=0 => (self.magnitude << -dropped, 0, 1),
            1..=127 => {
                let kept = self.magnitude >> dropped;
                (kept, self.magnitude - (kept << dropped), 1u128 << (dropped - 1))
            }
            // Below half of the smallest number.
            _ => (0, 1, 2),
        };
        let inexact = rest != 0 || more;
        let up = match rounding {
            Rounding::NearestEven => rest > half || rest == half && (more || kept & 1 == 1),
            Rounding::NearestAway => rest >= half,
            Rounding::Zero => false,
            Rounding::Down => self.negative && inexact,
            Rounding::Up => !self.negative && inexact,
        };
        // A subnormal number has no bit 52; a carry goes into the exponent by itself.
        let stored = (last + 1074) as u64;
        let bits = (stored << 52) + kept as u64 + u64::from(up);
        let largest = f64::MAX.to_bits();
        let magnitude = if last > 971 || bits > largest {
            let inwards = match rounding {
                Rounding::NearestEven | Rounding::NearestAway => false,
                Rounding::Zero => true,
                Rounding::Down => !self.negative,
                Rounding::Up => self.negative,
            };
            if inwards { f64::MAX } else { f64::INFINITY }
        } else {
            f64::from_bits(bits)
        };
        magnitude.copysign(sign)
    }
}

/// `a · b + c`.
pub(super) fn multiply_add(a: f64, b: f64, c: f64, rounding: Rounding) -> f64 {
    if !(a.is_finite() && b.is_finite() && c.is_finite()) {
        return a.mul_add(b, c);
    }
    Exact::of(a).times(Exact::of(b)).plus(Exact::of(c), rounding).rounded(rounding)
}

/// `a · b`.
pub(super) fn product(a: f64, b: f64, rounding: Rounding) -> f64 {
    if !(a.is_finite() && b.is_finite()) {
        return a * b;
    }
    Exact::of(a).times(Exact::of(b)).rounded(rounding)
}

/// `a / b`.
pub(super) fn quotient(a: f64, b: f64, rounding: Rounding) -> f64 {
    if !(a.is_finite() && b.is_finite()) || b == 0.0 || a == 0.0 {
        return a / b;
    }
    let (a, b) = (Exact::of(a).aligned(), Exact::of(b));
    // Both have their bits: at least 72 of the quotient.
    let magnitude = a.magnitude / b.magnitude;
    let exact = Exact {
        negative: a.negative != b.negative,
        magnitude,
        exponent: a.exponent - b.exponent,
        more: magnitude * b.magnitude != a.magnitude,
    };
    exact.rounded(rounding)
}

/// The square root.
pub(super) fn square_root(a: f64, rounding: Rounding) -> f64 {
    if !a.is_finite() || a <= 0.0 {
        return a.sqrt();
    }
    let aligned = Exact::of(a).aligned();
    // An even exponent, so that the root has half of it.
    let odd = aligned.exponent & 1;
    let square = aligned.magnitude >> odd;
    let root = square.isqrt();
    let exact = Exact {
        negative: false,
        magnitude: root,
        exponent: (aligned.exponent + odd) / 2,
        more: root * root != square,
    };
    exact.rounded(rounding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn to_the_nearest_it_is_what_the_cpu_does() {
        let mut seed = 11u64;
        let mut next = |spread: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let exponent = 1023 - spread / 2 + (seed >> 44) % spread;
            f64::from_bits(seed & 0x800f_ffff_ffff_ffff | exponent << 52)
        };
        for spread in [4, 60, 200, 1000, 2044] {
            for _ in 0..10_000 {
                let (a, b, c) = (next(spread), next(spread), next(spread));
                let nearest = Rounding::NearestEven;
                let close = -(a * b).next_up();
                for c in [c, close, c * 2f64.powi(-60)] {
                    let (own, cpu) = (multiply_add(a, b, c, nearest), a.mul_add(b, c));
                    assert_eq!(own.to_bits(), cpu.to_bits(), "{a:e} · {b:e} + {c:e}");
                    let (down, up) =
                        (multiply_add(a, b, c, Rounding::Down), multiply_add(a, b, c, Rounding::Up));
                    assert!(down <= cpu && cpu <= up && (down == up || down.next_up() == up));
                }
                assert_eq!(product(a, b, nearest).to_bits(), (a * b).to_bits());
                assert_eq!(quotient(a, b, nearest).to_bits(), (a / b).to_bits(), "{a:e} / {b:e}");
                assert_eq!(square_root(a.abs(), nearest).to_bits(), a.abs().sqrt().to_bits(), "{a:e}");
            }
        }
    }
}
