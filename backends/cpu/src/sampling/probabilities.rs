//! The distribution of a row.

use super::{
    candidates::Candidates,
    mass::{Weights, load_or_least},
};
use crate::{
    device::Cpu,
    simd::{Isa, Kernel, LANES, first_lanes},
    view::{read, write},
};
use halite_hal::Result;
use halite_kernels::{Checked, sampling::ProbabilityArgs};

impl Cpu {
    pub(super) fn probabilities_of(&self, args: Checked<ProbabilityArgs<'_, Self>>) -> Result<()> {
        let (logits, mut out) = (read::<f32>(args.logits)?, write::<f32>(args.out)?);
        let (rows, out_rows, data) = (logits.rows, out.rows, logits.data());
        let tasks = out.data().chunks_mut(out_rows.outer_stride).zip(&args.plan.params).enumerate();
        self.team().each(tasks, |(row, (out, params))| {
            let (logits, out) = (rows.row(data, row), &mut out[..out_rows.columns]);
            args.plan.lists.lend(|ids| match self.candidates(logits, params, ids) {
                Candidates::One(id) => {
                    out.fill(0.0);
                    out[id] = 1.0;
                }
                Candidates::Kept(mut kept) => {
                    let (least, ties) = kept.last();
                    let (weights, sum) = (kept.weights, kept.sum as f32);
                    self.tier().run(Distribution { logits, least, ties, weights, sum, out });
                }
            });
        });
        Ok(())
    }
}

/// `exp((logit - max) · factor) / sum` where the logit is above `least`, or equal to it among the first `ties` ids.
struct Distribution<'a> {
    logits: &'a [f32],
    least: f32,
    ties: usize,
    weights: Weights,
    sum: f32,
    out: &'a mut [f32],
}

impl Kernel for Distribution<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let (sum, least, zero) = (isa.splat(self.sum), isa.splat(self.least), isa.splat(0.0));
        for (vector, out) in self.out.chunks_mut(LANES).enumerate() {
            let start = vector * LANES;
            let x = load_or_least(isa, &self.logits[start..start + out.len()]);
            let ties = first_lanes(self.ties.saturating_sub(start));
            // Neither holds of NaN.
            let kept = isa.less(least, x) | (isa.equal(x, least) & ties);
            let p = isa.div(self.weights.lanes(isa, x), sum);
            isa.store_partial(isa.select(kept, p, zero), out);
        }
    }
}
