//! Rotary position embedding, in place.

use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    Checked, Support,
    rope::{
        CosSin, Direction, PositionLimits, Positions, Rope, RopeArgs, RopePlan, RopeSpec, RopeStyle,
        RopeWriteArgs, Turns,
    },
};

use crate::{
    cache::write::{Place, ROWS},
    compile::{Program, Source},
    device::Cuda,
    launch::{Launch, float_type},
    rows::Rows,
    stream::CudaStream,
    support::float_only,
};

static SOURCE: Source = Source::new("rope/rope.cu", include_str!("rope.cu"));
static WRITE: Source = Source::new("rope/write.cu", include_str!("write.cu"));

/// Threads of a block.
const THREADS: usize = 256;

fn base() -> Launch {
    Launch::new("rope", &SOURCE, "rope")
}

fn write_base() -> Launch {
    Launch::new("rope", &WRITE, "rope_cache_write")
}

/// Every program of the family.
pub(crate) fn programs() -> Vec<Program> {
    vec![base().program(), write_base().program()]
}

/// A step's cosines and sines: one a token and pair, shared by all heads and layers.
#[derive(Debug)]
pub struct CudaRopePlan {
    spec: RopeSpec,
    max_tokens: usize,
    tokens: usize,
    turns: Turns,
    /// F32 `[max_tokens, 2, rotary_dim / 2]`: cosines, then sines.
    cos_sin: Tensor<Cuda>,
}

impl CudaRopePlan {
    fn pairs(&self) -> usize {
        self.spec.rotary_dim / 2
    }

    /// Uploads `[tokens, 2, pairs]`.
    fn put(&mut self, stream: &mut CudaStream, cos_sin: &[f32]) -> Result<()> {
        self.tokens = 0;
        stream.stage(self.cos_sin.buffer(), self.cos_sin.offset(), bytemuck::cast_slice(cos_sin))?;
        self.tokens = cos_sin.len() / self.spec.rotary_dim;
        Ok(())
    }
}

impl RopePlan for CudaRopePlan {
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

impl Rope for Cuda {
    type RopePlan = CudaRopePlan;

    fn rope_supports(&self, spec: &RopeSpec) -> Support {
        float_only(spec.dtype)
    }

    fn rope_plan(&self, spec: &RopeSpec, max_tokens: usize) -> Result<CudaRopePlan> {
        spec.check()?;
        self.rope_supports(spec).require("rope", self, spec)?;
        let cos_sin = Tensor::new(self, DType::F32, &[max_tokens, spec.rotary_dim])?;
        Ok(CudaRopePlan { spec: spec.clone(), max_tokens, tokens: 0, turns: Turns::new(spec), cos_sin })
    }

    fn rope_update(
        &self,
        stream: &mut CudaStream,
        plan: &mut CudaRopePlan,
        positions: &Checked<Positions<'_>, PositionLimits>,
    ) -> Result<()> {
        positions.checked_against("rope", &plan.limits())?;
        let cos_sin = plan.turns.tables(positions.positions);
        plan.put(stream, &cos_sin)
    }

    fn rope_update_cos_sin(
        &self,
        stream: &mut CudaStream,
        plan: &mut CudaRopePlan,
        tables: &Checked<CosSin<'_>, PositionLimits>,
    ) -> Result<()> {
        tables.checked_against("rope", &plan.limits())?;
        let cos_sin: Vec<f32> = tables.by_token(plan.pairs()).collect();
        plan.put(stream, &cos_sin)
    }

    fn rope(&self, stream: &mut CudaStream, args: Checked<RopeArgs<'_, Self>>) -> Result<()> {
        let &RopeArgs { plan, direction, x } = &*args;
        let rows = Rows::of(x);
        let lanes = plan.pairs().next_power_of_two().clamp(32, THREADS);
        let launch = base()
            .tensor("x", x)
            .tensor("cosines and sines", &plan.cos_sin)
            .size("rows", rows.count())
            .size("heads", rows.inner)
            .size("pairs", plan.pairs())
            .size("x's stride", rows.outer_stride)
            .size("x's stride", rows.inner_stride)
            .count("lanes", lanes)
            .int(float_type(x.dtype()))
            .int((plan.spec.style == RopeStyle::Interleaved).into())
            .float(if direction == Direction::Inverse { -1.0 } else { 1.0 });
        stream.launch(launch.grid([rows.count().div_ceil(THREADS / lanes), 1, 1]))
    }

    fn rope_cache_write(
        &self,
        stream: &mut CudaStream,
        args: Checked<RopeWriteArgs<'_, Self>>,
    ) -> Result<()> {
        let &RopeWriteArgs { plan, q, slots, cache, layer, k, v } = &*args;
        let queries = Rows::of(q);
        let launch = Place { slots, cache, layer, k, v }
            .describe(write_base())
            .tensor("q", q)
            .size("q's stride", queries.outer_stride)
            .size("q's stride", queries.inner_stride)
            .size("heads", queries.inner)
            .tensor("cosines and sines", &plan.cos_sin)
            .size("pairs", plan.pairs())
            .int((plan.spec.style == RopeStyle::Interleaved).into());
        let rows = plan.tokens * (queries.inner + 2 * Rows::of(k).inner);
        stream.launch(launch.grid([rows.div_ceil(ROWS), 1, 1]))
    }
}
