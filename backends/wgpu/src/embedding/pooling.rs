//! One row a sequence.

use crate::{
    device::Wgpu,
    launch::{Launch, Shader, spread},
    rows::Rows,
    stream::WgpuStream,
    support::{float_only, unsupported},
};
use halite_hal::{DType, Error, Result, Tensor};
use halite_kernels::{
    Checked, Support,
    embedding::{PoolArgs, Pooling, PoolingLimits, PoolingPlan, PoolingSpec, PoolingStep},
};

static POOL: Shader = Shader { name: "pool", source: &[include_str!("pooling.wgsl")] };

/// The most tokens of a step: what the shader's loop, eight at a time, goes through on every adapter.
const MAX_TOKENS: usize = 1 << 18;

/// The number that the shader knows a pooling by; none of one that there is no kernel for.
fn code(pooling: Pooling) -> Option<u32> {
    match pooling {
        Pooling::First => Some(0),
        Pooling::Last => Some(1),
        Pooling::Mean => Some(2),
        _ => None,
    }
}

/// The sequences of a step.
#[derive(Debug)]
pub struct WgpuPoolingPlan {
    spec: PoolingSpec,
    max_sequences: usize,
    max_tokens: usize,
    sequences: usize,
    tokens: usize,
    /// I32 `[max_sequences + 1]`: where each sequence begins, and where the last ends.
    starts: Tensor<Wgpu>,
}

impl WgpuPoolingPlan {
    pub(super) fn new(
        device: &Wgpu,
        spec: &PoolingSpec,
        max_sequences: usize,
        max_tokens: usize,
    ) -> Result<Self> {
        if max_tokens > MAX_TOKENS {
            let (got, limit) = (max_tokens as u64, MAX_TOKENS as u64);
            return Err(Error::Limit { operator: "pool", argument: "max_tokens", got, limit });
        }
        let starts = device.bindable(
            "pool",
            "bytes of sequences' ends",
            DType::I32,
            &[max_sequences.saturating_add(1)],
        )?;
        Ok(WgpuPoolingPlan { spec: spec.clone(), max_sequences, max_tokens, sequences: 0, tokens: 0, starts })
    }

    pub(super) fn update(
        &mut self,
        stream: &mut WgpuStream,
        step: &Checked<PoolingStep<'_>, PoolingLimits>,
    ) -> Result<()> {
        step.checked_against("pool", &self.limits())?;
        let starts = step.cu_seqlens;
        (self.sequences, self.tokens) = (0, 0);
        stream.stage(self.starts.buffer(), self.starts.offset(), bytemuck::cast_slice(starts))?;
        self.sequences = starts.len() - 1;
        self.tokens = starts[self.sequences] as usize;
        Ok(())
    }
}

impl PoolingPlan for WgpuPoolingPlan {
    fn spec(&self) -> &PoolingSpec {
        &self.spec
    }

    fn max_sequences(&self) -> usize {
        self.max_sequences
    }

    fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    fn sequences(&self) -> usize {
        self.sequences
    }

    fn tokens(&self) -> usize {
        self.tokens
    }
}

pub(super) fn supports(spec: &PoolingSpec) -> Support {
    match (code(spec.pooling), float_only(spec.input)) {
        (None, _) => Support::No(format!("{:?} is not implemented", spec.pooling)),
        (_, Support::Native) => float_only(spec.output),
        (_, no) => no,
    }
}

pub(super) fn pool(stream: &mut WgpuStream, args: &PoolArgs<'_, Wgpu>) -> Result<()> {
    let plan = args.plan;
    let Some(pooling) = code(plan.spec.pooling) else {
        return Err(unsupported("pool", "this pooling", &plan.spec));
    };
    let (x, out) = (Rows::of(args.x), Rows::of(args.out));
    let launch = Launch::new(&POOL)
        .input("x", args.x)
        .input("starts", &plan.starts)
        .output("out", args.out)
        .constant("POOLING", pooling)
        .size("sequences", plan.sequences)
        .size("tokens", plan.tokens)
        .size("hidden", out.columns)
        .size("x_stride", x.outer_stride)
        .size("out_stride", out.outer_stride);
    stream.launch(launch, spread((plan.sequences * out.columns).div_ceil(64)))
}
