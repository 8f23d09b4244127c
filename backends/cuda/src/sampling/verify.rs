//! Drafted tokens against the model's own distribution.

use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    Checked,
    sampling::{
        DraftProbabilities, ROW_WORDS, SamplingSpec, VerifyArgs, VerifyCapacity, VerifyLimits, VerifyPlan,
        VerifyStep,
    },
};

use super::{require, sample::sample, weights};
use crate::{
    compile::{Program, Source},
    device::Cuda,
    launch::Launch,
    rows::Rows,
    stream::CudaStream,
    table::Table,
};

static SOURCE: Source = Source::new("sampling/verify.cu", include_str!("verify.cu"));

/// Threads of a block.
const THREADS: usize = 256;

fn base(entry: &'static str) -> Launch {
    Launch::new("sampling", &SOURCE, entry)
}

/// The program with both kernels.
pub(super) fn programs() -> Vec<Program> {
    vec![base("verify").program()]
}

/// A step's requests on the device.
///
/// The table holds a row of parameters for each row of logits, and behind them the drafts' offsets.
#[derive(Debug)]
pub struct CudaVerifyPlan {
    spec: SamplingSpec,
    capacity: VerifyCapacity,
    requests: usize,
    drafts: usize,
    table: Table,
    /// I32, one for each row of logits: the token that it gives.
    tokens: Tensor<Cuda>,
}

impl CudaVerifyPlan {
    pub(super) fn new(device: &Cuda, spec: &SamplingSpec, capacity: &VerifyCapacity) -> Result<Self> {
        require(device, spec)?;
        let (rows, words) = (capacity.max_rows(), capacity.max_words());
        Ok(CudaVerifyPlan {
            spec: spec.clone(),
            capacity: *capacity,
            requests: 0,
            drafts: 0,
            table: Table::new(device, words)?,
            tokens: Tensor::new(device, DType::I32, &[rows])?,
        })
    }

    pub(super) fn update(
        &mut self,
        stream: &mut CudaStream,
        step: &Checked<VerifyStep<'_>, VerifyLimits>,
    ) -> Result<()> {
        step.checked_against("sampling", &self.limits())?;
        let words = self.table.begin();
        step.words(words);
        (self.requests, self.drafts) = (0, 0);
        self.table.upload(stream)?;
        self.requests = step.params.len();
        self.drafts = step.cu_drafts.last().map_or(0, |&drafts| drafts as usize);
        Ok(())
    }
}

impl VerifyPlan for CudaVerifyPlan {
    fn spec(&self) -> &SamplingSpec {
        &self.spec
    }

    fn capacity(&self) -> &VerifyCapacity {
        &self.capacity
    }

    fn requests(&self) -> usize {
        self.requests
    }

    fn drafts(&self) -> usize {
        self.drafts
    }
}

/// Every row gives its token, as if all drafts before it stood; then each request takes those of its drafts that do.
pub(super) fn verify(stream: &mut CudaStream, args: &VerifyArgs<'_, Cuda>) -> Result<()> {
    let plan = args.plan;
    let rows = plan.requests + plan.drafts;
    let tokens = plan.tokens.narrow(0, 0..rows)?;
    let q = match args.probabilities {
        DraftProbabilities::Drawn(q) => Some(q),
        _ => None,
    };
    if let Some(q) = q {
        let logits = Rows::of(args.logits);
        let launch = base("verify")
            .tensor("logits", args.logits)
            .tensor("parameters", plan.table.tensor())
            .tensor("drafts", args.drafts)
            .tensor("probabilities", q)
            .tensor("tokens", &tokens)
            .size("logits' stride", logits.outer_stride)
            .size("probabilities' stride", Rows::of(q).outer_stride)
            .size("vocabulary", logits.columns);
        stream.launch(weights(launch, logits.columns).grid([rows, 1, 1]))?;
    } else {
        sample(stream, &plan.table, args.logits, &tokens)?;
    }
    let table = plan.table.tensor();
    let launch = base("accept")
        .bytes("cu_drafts", table.buffer(), table.offset() + 4 * (rows * ROW_WORDS) as u64)
        .tensor("drafts", args.drafts)
        .tensor("tokens", &tokens)
        .tensor("accepted", args.accepted)
        .tensor("next", args.next)
        .size("requests", plan.requests)
        .int(q.is_some().into());
    stream.launch(launch.grid([plan.requests.div_ceil(THREADS), 1, 1]))
}
