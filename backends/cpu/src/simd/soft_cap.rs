//! `cap · tanh(y / cap)`: values bounded smoothly by `±cap`.

use super::{Isa, Kernel, LANES, math::tanh};

/// Bounds values in place: divided, [`tanh`], multiplied, each rounded by itself.
///
/// Tiles enter it by [`Isa::call`], where there is a cap at all: it is compiled once a tier instead of into each of them.
pub(crate) struct SoftCap<'a> {
    /// Finite and above zero.
    pub(crate) cap: f32,
    /// Any number of values.
    pub(crate) values: &'a mut [f32],
}

impl Kernel for SoftCap<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let cap = isa.splat(self.cap);
        for values in self.values.chunks_mut(LANES) {
            let y = tanh(isa, isa.div(isa.load_partial(values), cap));
            isa.store_partial(isa.mul(y, cap), values);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Tier, random::Random};

    #[test]
    fn values_are_bounded_and_near_zero_left_alone() {
        let mut random = Random::new(1);
        for tier in Tier::available() {
            for (cap, len) in [(50.0f32, 0), (30.0, 1), (0.5, 15), (1.0, 16), (1e-30, 17), (1e30, 100)] {
                let values: Vec<f32> = random.floats(len).iter().map(|x| x * 3.0 * cap).collect();
                let mut capped = values.clone();
                tier.run(SoftCap { cap, values: &mut capped });
                for (&x, &y) in values.iter().zip(&capped) {
                    let want = f64::from(cap) * (f64::from(x) / f64::from(cap)).tanh();
                    // A rounding before and one after the hyperbolic tangent's own two units.
                    let allowed = 4.0 * 2f64.powi(-23) * want.abs();
                    assert!((f64::from(y) - want).abs() <= allowed, "{tier} {x:e} capped at {cap} is {y:e}");
                }
            }
            let mut ends = [f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 1e-3, 0.0, f32::NAN];
            tier.run(SoftCap { cap: 50.0, values: &mut ends });
            assert_eq!(ends[..5], [50.0, -50.0, 50.0, 1e-3, 0.0], "{tier}");
            assert!(ends[5].is_nan(), "{tier}");
        }
    }
}
