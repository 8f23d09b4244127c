//! A row's greatest logit and the sum of its weights.

use crate::simd::{Isa, Kernel, LANES, first_lanes, math::exp};

/// What one pass over a row finds.
pub(super) struct Mass {
    /// The greatest logit; NaN counts as -inf.
    pub(super) max: f32,
    /// The first id that has it.
    pub(super) first: usize,
    /// `Σ exp((logit - max) · factor)`, NaN left out.
    pub(super) sum: f64,
}

/// `exp((logit - max) · factor)`.
#[derive(Clone, Copy)]
pub(super) struct Weights {
    pub(super) max: f32,
    pub(super) factor: f32,
}

impl Weights {
    /// What logits are multiplied with before they are subtracted: at temperatures above 2^64 a power of two, since a
    /// difference that F32 does not hold may weigh as much as any; at others 1, which changes no bit.
    #[inline(always)]
    fn before(self) -> f32 {
        if self.factor < 2f32.powi(-64) { 2f32.powi(-64) } else { 1.0 }
    }

    /// Of 16 logits.
    #[inline(always)]
    pub(super) fn lanes<I: Isa>(self, isa: I, x: I::F32) -> I::F32 {
        let before = self.before();
        let difference = isa.sub(isa.mul(x, isa.splat(before)), isa.splat(self.max * before));
        exp(isa, isa.mul(difference, isa.splat(self.factor / before)))
    }

    /// Of one logit, exactly.
    pub(super) fn of(self, logit: f32) -> f64 {
        let before = self.before();
        let difference = f64::from(logit * before - self.max * before);
        (difference * f64::from(self.factor / before)).exp()
    }
}

pub(super) struct MassOf<'a> {
    pub(super) logits: &'a [f32],
    /// 0 where the sum is not wanted.
    pub(super) factor: f32,
}

impl Kernel for MassOf<'_> {
    type Output = Mass;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Mass {
        let infinity = isa.splat(f32::NEG_INFINITY);
        let mut max = infinity;
        for logits in self.logits.chunks(LANES) {
            max = isa.max(load_or_least(isa, logits), max);
        }
        let max = isa.max_lane(max);
        let greatest = isa.splat(max);
        let mut first = 0;
        for (vector, logits) in self.logits.chunks(LANES).enumerate() {
            let here = isa.equal(load_or_least(isa, logits), greatest) & first_lanes(logits.len());
            if here != 0 {
                first = vector * LANES + here.trailing_zeros() as usize;
                break;
            }
        }
        let mut sum = 0.0f64;
        if self.factor != 0.0 {
            let (weights, zero) = (Weights { max, factor: self.factor }, isa.splat(0.0));
            // Sums of 1,024 elements in F32, added in F64: exact enough for any vocabulary.
            for block in self.logits.chunks(64 * LANES) {
                let mut lanes = zero;
                for logits in block.chunks(LANES) {
                    let x = load_or_least(isa, logits);
                    lanes = isa.add(lanes, isa.select(isa.equal(x, x), weights.lanes(isa, x), zero));
                }
                sum += f64::from(isa.sum(lanes));
            }
        }
        Mass { max, first, sum }
    }
}

/// Up to 16 logits; lanes beyond them are minus infinity, since as zeros they could win.
#[inline(always)]
pub(super) fn load_or_least<I: Isa>(isa: I, logits: &[f32]) -> I::F32 {
    isa.select(first_lanes(logits.len()), isa.load_partial(logits), isa.splat(f32::NEG_INFINITY))
}
