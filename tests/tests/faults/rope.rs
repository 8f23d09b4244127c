//! Rotations of the exact device.

use crate::{
    device::{Exact, Queue, read, values, write},
    fault::Fault,
};
use halite_hal::{Result, Tensor};
use halite_kernels::{
    Checked, DType, Support,
    cache::{CacheWriteArgs, KvCacheOps},
    rope::{
        CosSin, Direction, PositionLimits, Positions, Rope, RopeArgs, RopePlan, RopeScaling, RopeSpec,
        RopeStyle, RopeWriteArgs, YarnBounds,
    },
};
use halite_parity::oracle;

/// A step's cosines and sines, a token each.
#[derive(Debug)]
pub(crate) struct Tables {
    spec: RopeSpec,
    max_tokens: usize,
    turns: Vec<(Vec<f64>, Vec<f64>)>,
    tokens: usize,
}

impl RopePlan for Tables {
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

impl Exact {
    /// The rotation that this device thinks was asked for.
    fn heard(&self, spec: &RopeSpec) -> RopeSpec {
        let mut spec = spec.clone();
        if self.has(Fault::RopeOtherStyle) {
            spec.style = match spec.style {
                RopeStyle::Interleaved => RopeStyle::HalfSplit,
                _ => RopeStyle::Interleaved,
            };
        }
        if self.has(Fault::RopeNoScaling) {
            spec.scaling = RopeScaling::None;
        }
        if self.has(Fault::RopeFirstAxis) {
            spec.pair_axes.iter_mut().for_each(|axis| *axis = 0);
        }
        if self.has(Fault::RopeWholeHead) {
            (spec.rotary_dim, spec.pair_axes) = (spec.head_dim / 2 * 2, Vec::new());
            if let RopeScaling::PerPair { divisors, .. } = &mut spec.scaling {
                divisors.resize(spec.rotary_dim / 2, 1.0);
            }
        }
        match &mut spec.scaling {
            RopeScaling::Yarn(yarn) => {
                if self.has(Fault::RopeNoAttentionFactor) {
                    *yarn = yarn.with_attention_factor(1.0);
                }
                if self.has(Fault::RopeYarnWholeBounds) {
                    *yarn = yarn.with_bounds(YarnBounds::Whole);
                }
            }
            RopeScaling::Ntk { factor } if self.has(Fault::RopeNtkAsLinear) => {
                spec.scaling = RopeScaling::Linear { factor: *factor };
            }
            _ => {}
        }
        spec
    }

    fn turn(&self, spec: &RopeSpec, x: &[f64], (cos, sin): &(Vec<f64>, Vec<f64>)) -> Vec<f64> {
        values(oracle::rope::turn(spec.style, x, cos, sin))
    }
}

impl Rope for Exact {
    type RopePlan = Tables;

    fn rope_supports(&self, _: &RopeSpec) -> Support {
        Support::Native
    }

    fn rope_plan(&self, spec: &RopeSpec, max_tokens: usize) -> Result<Tables> {
        spec.check()?;
        Ok(Tables { spec: spec.clone(), max_tokens, turns: Vec::new(), tokens: 0 })
    }

    fn rope_update(
        &self,
        _: &mut Queue,
        plan: &mut Tables,
        step: &Checked<Positions<'_>, PositionLimits>,
    ) -> Result<()> {
        step.checked_against("rope", &plan.limits())?;
        plan.tokens = step.positions.len() / plan.spec.axes();
        if self.has(Fault::RopeStalePositions) && plan.turns.len() >= plan.tokens {
            return Ok(());
        }
        let spec = self.heard(&plan.spec);
        let next = u32::from(self.has(Fault::RopeNextPosition))
            + u32::from(self.has(Fault::RopeBatchVariant) && plan.tokens > 1);
        let of = |token| {
            let position: Vec<u32> = step
                .positions
                .iter()
                .skip(token)
                .step_by(plan.tokens)
                .map(|&position| position + next)
                .collect();
            if self.has(Fault::RopeF32Angles) {
                let angle = |pair| position[0] as f32 * oracle::rope::frequency(&spec, pair) as f32;
                let turn = |pair| (f64::from(angle(pair)).cos(), f64::from(angle(pair)).sin());
                (0..spec.rotary_dim / 2).map(turn).unzip()
            } else {
                oracle::rope::tables(&spec, &position)
            }
        };
        plan.turns = (0..plan.tokens).map(of).collect();
        Ok(())
    }

    fn rope_update_cos_sin(
        &self,
        _: &mut Queue,
        plan: &mut Tables,
        tables: &Checked<CosSin<'_>, PositionLimits>,
    ) -> Result<()> {
        tables.checked_against("rope", &plan.limits())?;
        let pairs = plan.spec.rotary_dim / 2;
        let floats = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect();
        let (mut cos, mut sin) = (tables.cos, tables.sin);
        if self.has(Fault::RopeCosSinSwapped) {
            (cos, sin) = (sin, cos);
        }
        let tables = cos.chunks_exact(pairs).zip(sin.chunks_exact(pairs));
        plan.turns = tables.map(|(cos, sin)| (floats(cos), floats(sin))).collect();
        plan.tokens = plan.turns.len();
        Ok(())
    }

    fn rope(&self, _: &mut Queue, args: Checked<RopeArgs<'_, Self>>) -> Result<()> {
        let spec = self.heard(&args.plan.spec);
        let (heads, head_dim) = (args.x.dims()[1], spec.head_dim);
        let back = args.direction == Direction::Inverse && !self.has(Fault::RopeInverseForward);
        let x = read(args.x);
        let mut out = Vec::new();
        for (token, turns) in args.plan.turns.iter().take(args.plan.tokens).enumerate() {
            let mut turns = turns.clone();
            if back {
                turns.1.iter_mut().for_each(|sin| *sin = -*sin);
            }
            for head in 0..heads {
                out.extend(self.turn(&spec, &x[(token * heads + head) * head_dim..][..head_dim], &turns));
            }
        }
        write(args.x, out);
        Ok(())
    }

    fn rope_cache_write(&self, stream: &mut Queue, args: Checked<RopeWriteArgs<'_, Self>>) -> Result<()> {
        let (plan, direction) = (args.plan, Direction::Forward);
        let own = Tensor::new(self, DType::F32, args.k.dims())?;
        write(&own, read(args.k));
        if !self.has(Fault::RopeWriteForgetsQueries) {
            self.rope(stream, RopeArgs { plan, direction, x: args.q }.check()?)?;
        }
        if !self.has(Fault::RopeWriteUnturned) {
            self.rope(stream, RopeArgs { plan, direction, x: &own }.check()?)?;
        }
        if self.has(Fault::RopeWriteTurnsKeysInPlace) {
            self.rope(stream, RopeArgs { plan, direction, x: args.k }.check()?)?;
        }
        let layer = if self.has(Fault::RopeWriteFirstLayer) { 0 } else { args.layer };
        let write = CacheWriteArgs { slots: args.slots, cache: args.cache, layer, k: &own, v: args.v };
        self.cache_write(stream, write.check()?)
    }
}
