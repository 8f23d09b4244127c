//! One row a sequence.

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    embedding::{PoolArgs, Pooling, PoolingLimits, PoolingPlan, PoolingSpec, PoolingStep},
};

use crate::{
    compile::{Program, Source},
    device::Cuda,
    launch::{Launch, float_type},
    rows::Rows,
    stream::CudaStream,
    support::{float_only, unsupported},
    table::Table,
};

static SOURCE: Source = Source::new("embedding/pooling.cu", include_str!("pooling.cu"));

/// Threads of a block.
const THREADS: usize = 256;

/// The number that the kernel knows a pooling by; none of one that there is no kernel for.
fn code(pooling: Pooling) -> Option<i32> {
    match pooling {
        Pooling::First => Some(0),
        Pooling::Last => Some(1),
        Pooling::Mean => Some(2),
        _ => None,
    }
}

/// The sequences of a step.
#[derive(Debug)]
pub struct CudaPoolingPlan {
    spec: PoolingSpec,
    max_sequences: usize,
    max_tokens: usize,
    sequences: usize,
    tokens: usize,
    /// `[max_sequences + 1]`: where each sequence begins, and where the last ends.
    starts: Table,
}

impl CudaPoolingPlan {
    pub(super) fn new(
        device: &Cuda,
        spec: &PoolingSpec,
        max_sequences: usize,
        max_tokens: usize,
    ) -> Result<Self> {
        let starts = Table::new(device, max_sequences.saturating_add(1))?;
        Ok(CudaPoolingPlan { spec: spec.clone(), max_sequences, max_tokens, sequences: 0, tokens: 0, starts })
    }

    pub(super) fn update(
        &mut self,
        stream: &mut CudaStream,
        step: &Checked<PoolingStep<'_>, PoolingLimits>,
    ) -> Result<()> {
        step.checked_against("pool", &self.limits())?;
        let starts = step.cu_seqlens;
        (self.sequences, self.tokens) = (0, 0);
        self.starts.begin().extend_from_slice(starts);
        self.starts.upload(stream)?;
        self.sequences = starts.len().saturating_sub(1);
        self.tokens = starts.last().map_or(0, |&end| end as usize);
        Ok(())
    }
}

impl PoolingPlan for CudaPoolingPlan {
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

fn base() -> Launch {
    Launch::new("pool", &SOURCE, "pool")
}

/// The program of pooling.
pub(super) fn programs() -> Vec<Program> {
    vec![base().program()]
}

pub(super) fn pool(stream: &mut CudaStream, args: &PoolArgs<'_, Cuda>) -> Result<()> {
    let plan = args.plan;
    let Some(pooling) = code(plan.spec.pooling) else {
        return Err(unsupported("pool", "this pooling", &plan.spec));
    };
    let (x, out) = (Rows::of(args.x), Rows::of(args.out));
    let parts = out.columns.div_ceil(THREADS);
    let launch = base()
        .tensor("x", args.x)
        .tensor("sequences", plan.starts.tensor())
        .tensor("out", args.out)
        .size("tokens", plan.tokens)
        .size("hidden", out.columns)
        .size("x's stride", x.outer_stride)
        .size("out's stride", out.outer_stride)
        .size("parts", parts)
        .int(pooling)
        .int(float_type(args.x.dtype()))
        .int(float_type(args.out.dtype()));
    stream.launch(launch.grid([plan.sequences.saturating_mul(parts), 1, 1]))
}
