//! Rotary position embedding, in place and on the way to the cache.

use crate::{
    cache::write::{Place, ROW},
    device::Wgpu,
    launch::{Access, Launch, Shader, spread},
    operand::Operand,
    rows::Rows,
    stream::WgpuStream,
    support::float_only,
};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    Checked, Support,
    rope::{
        CosSin, Direction, PositionLimits, Positions, Rope, RopeArgs, RopePlan, RopeSpec, RopeStyle,
        RopeWriteArgs, Turns,
    },
};

static ROPE: Shader = Shader { name: "rope", source: &[TURN, include_str!("rope.wgsl")] };
static WRITE: Shader = Shader { name: "rope", source: &[TURN, ROW, include_str!("write.wgsl")] };

const TURN: &str = include_str!("turn.wgsl");

/// A step's cosines and sines: one a token and pair, shared by all heads and layers.
#[derive(Debug)]
pub struct WgpuRopePlan {
    spec: RopeSpec,
    max_tokens: usize,
    tokens: usize,
    turns: Turns,
    /// F32 `[max_tokens, 2, rotary_dim / 2]`: cosines, then sines.
    cos_sin: Tensor<Wgpu>,
}

impl WgpuRopePlan {
    fn pairs(&self) -> usize {
        self.spec.rotary_dim / 2
    }

    /// Uploads `[tokens, 2, pairs]`.
    fn put(&mut self, stream: &mut WgpuStream, cos_sin: &[f32]) -> Result<()> {
        self.tokens = 0;
        stream.stage(self.cos_sin.buffer(), self.cos_sin.offset(), bytemuck::cast_slice(cos_sin))?;
        self.tokens = cos_sin.len() / self.spec.rotary_dim;
        Ok(())
    }

    /// What the shaders' common part needs, and the heads that turn in place.
    fn describe(&self, launch: Launch, x: &Tensor<Wgpu>, direction: Direction) -> Launch {
        let rows = Rows::of(x);
        let direction = if direction == Direction::Inverse { -1.0 } else { 1.0 };
        launch
            .operand("x", Access::InOut, Operand::tensor(x))
            .input("cos_sin", &self.cos_sin)
            .flag("INTERLEAVED", self.spec.style == RopeStyle::Interleaved)
            .size("heads", rows.inner)
            .size("pairs", self.pairs())
            .size("x_token", rows.outer_stride)
            .size("x_head", rows.inner_stride)
            .float("direction", direction)
            .size("none", 0)
    }
}

impl RopePlan for WgpuRopePlan {
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

impl Rope for Wgpu {
    type RopePlan = WgpuRopePlan;

    fn rope_supports(&self, spec: &RopeSpec) -> Support {
        float_only(spec.dtype)
    }

    fn rope_plan(&self, spec: &RopeSpec, max_tokens: usize) -> Result<WgpuRopePlan> {
        spec.check()?;
        self.rope_supports(spec).require("rope", self, spec)?;
        let cos_sin =
            self.bindable("rope", "bytes of cosines and sines", DType::F32, &[max_tokens, spec.rotary_dim])?;
        Ok(WgpuRopePlan { spec: spec.clone(), max_tokens, tokens: 0, turns: Turns::new(spec), cos_sin })
    }

    fn rope_update(
        &self,
        stream: &mut WgpuStream,
        plan: &mut WgpuRopePlan,
        positions: &Checked<Positions<'_>, PositionLimits>,
    ) -> Result<()> {
        positions.checked_against("rope", &plan.limits())?;
        let cos_sin = plan.turns.tables(positions.positions);
        plan.put(stream, &cos_sin)
    }

    fn rope_update_cos_sin(
        &self,
        stream: &mut WgpuStream,
        plan: &mut WgpuRopePlan,
        tables: &Checked<CosSin<'_>, PositionLimits>,
    ) -> Result<()> {
        tables.checked_against("rope", &plan.limits())?;
        let cos_sin: Vec<f32> = tables.by_token(plan.pairs()).collect();
        plan.put(stream, &cos_sin)
    }

    fn rope(&self, stream: &mut WgpuStream, args: Checked<RopeArgs<'_, Self>>) -> Result<()> {
        let &RopeArgs { plan, direction, x } = &*args;
        let launch = plan.describe(Launch::new(&ROPE), x, direction).size("tokens", plan.tokens);
        stream.launch(launch, spread(Rows::of(x).count()))
    }

    /// One dispatch: queries turn in place, keys while they are written.
    fn rope_cache_write(
        &self,
        stream: &mut WgpuStream,
        args: Checked<RopeWriteArgs<'_, Self>>,
    ) -> Result<()> {
        let &RopeWriteArgs { plan, q, slots, cache, layer, k, v } = &*args;
        let launch = plan.describe(Launch::new(&WRITE), q, Direction::Forward);
        let launch = Place { slots, cache, layer, k, v }.describe(launch);
        let heads = Rows::of(q).inner + 2 * Rows::of(k).inner;
        stream.launch(launch, spread(plan.tokens * heads))
    }
}
