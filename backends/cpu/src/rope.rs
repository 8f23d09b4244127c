//! Rotary position embedding, in place.

use crate::{device::Cpu, simd::Isa, simd::Kernel, stream::CpuStream, view::Rows, view::write};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    rope::{PositionLimits, Positions, Rope, RopeArgs, RopePlan, RopeSpec, RopeStyle},
};

/// A step's cosines and sines.
///
/// They are made anew each step, since that is one sine and cosine a pair and token, shared by all heads and layers;
/// a table of all positions would take longer to read than to compute, and 33 MB at 128 k positions.
#[derive(Debug)]
pub struct CpuRopePlan {
    spec: RopeSpec,
    max_tokens: usize,
    frequencies: Vec<f64>,
    /// `[tokens, rotary_dim / 2]`, cosine and sine.
    turns: Vec<(f32, f32)>,
    tokens: usize,
}

impl RopePlan for CpuRopePlan {
    fn spec(&self) -> &RopeSpec {
        &self.spec
    }

    fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    fn tokens(&self) -> usize {
        self.tokens
    }
}

impl Rope for Cpu {
    type RopePlan = CpuRopePlan;

    fn rope_supports(&self, _spec: &RopeSpec) -> Support {
        Support::Native
    }

    fn rope_plan(&self, spec: &RopeSpec, max_tokens: usize) -> Result<CpuRopePlan> {
        spec.check()?;
        let mut turns = Vec::new();
        let pairs = max_tokens.saturating_mul(spec.rotary_dim / 2);
        turns.try_reserve_exact(pairs).map_err(|_| halite_hal::Error::OutOfMemory {
            device: crate::buffer::DEVICE.to_owned(),
            requested: (pairs as u64).saturating_mul(8),
        })?;
        Ok(CpuRopePlan { spec: spec.clone(), max_tokens, frequencies: spec.frequencies(), turns, tokens: 0 })
    }

    fn rope_update(
        &self,
        _stream: &mut CpuStream,
        plan: &mut CpuRopePlan,
        positions: &Checked<Positions<'_>, PositionLimits>,
    ) -> Result<()> {
        positions.checked_against("rope", &plan.limits())?;
        plan.tokens = positions.positions.len();
        plan.turns.clear();
        for &position in positions.positions {
            plan.turns.extend(plan.frequencies.iter().map(|frequency| {
                let (sin, cos) = (f64::from(position) * frequency).sin_cos();
                (cos as f32, sin as f32)
            }));
        }
        Ok(())
    }

    fn rope(&self, _stream: &mut CpuStream, args: Checked<RopeArgs<'_, Self>>) -> Result<()> {
        let plan = args.plan;
        let mut x = write::<f32>(args.x)?;
        let rows = x.rows;
        let pairs = plan.spec.rotary_dim / 2;
        let per_task = self.team().units_per_task(rows.outer, rows.inner * rows.columns / 4);
        let tasks =
            x.data().chunks_mut(rows.outer_stride * per_task).zip(plan.turns.chunks(pairs * per_task));
        self.team().each(tasks, |(x, turns)| {
            self.tier().run(Turn { style: plan.spec.style, x, rows, turns, pairs });
        });
        Ok(())
    }
}

/// The heads of a task's tokens.
struct Turn<'a> {
    style: RopeStyle,
    x: &'a mut [f32],
    rows: Rows,
    turns: &'a [(f32, f32)],
    pairs: usize,
}

impl Kernel for Turn<'_> {
    type Output = ();

    /// Plain loops, which the compiler turns into vectors by itself. No multiply-add: the tiers agree to the last bit.
    #[inline(always)]
    fn run<I: Isa>(self, _isa: I) {
        for (x, turns) in self.x.chunks_mut(self.rows.outer_stride).zip(self.turns.chunks(self.pairs)) {
            for head in 0..self.rows.inner {
                let x = &mut x[head * self.rows.inner_stride..][..2 * self.pairs];
                match self.style {
                    RopeStyle::Interleaved => {
                        for (pair, &(cos, sin)) in x.chunks_exact_mut(2).zip(turns) {
                            let (a, b) = (pair[0], pair[1]);
                            pair[0] = a * cos - b * sin;
                            pair[1] = a * sin + b * cos;
                        }
                    }
                    _ => {
                        let (first, second) = x.split_at_mut(self.pairs);
                        for ((a, b), &(cos, sin)) in first.iter_mut().zip(second).zip(turns) {
                            (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
                        }
                    }
                }
            }
        }
    }
}
