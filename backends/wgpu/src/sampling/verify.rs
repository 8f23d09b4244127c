//! Drafted tokens against the model's own distribution.

use super::{
    KEPT, PARAMETERS, Parts, ROW, SELECT, SUMS, WEIGHTS, WIDE, require,
    sample::{Step, sample},
};
use crate::{
    device::Wgpu,
    launch::{Access, Launch, Shader, spread},
    operand::Operand,
    rows::Rows,
    stream::WgpuStream,
    table::Table,
};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    Checked,
    sampling::{
        DraftProbabilities, ROW_WORDS, SamplingParams, SamplingSpec, VerifyArgs, VerifyCapacity,
        VerifyLimits, VerifyPlan, VerifyStep,
    },
};

static VERIFY: Shader = Shader {
    name: "sampling",
    source: &[WIDE, ROW, WEIGHTS, SUMS, SELECT, PARAMETERS, KEPT, include_str!("verify.wgsl")],
};
static ACCEPT: Shader = Shader { name: "sampling", source: &[include_str!("accept.wgsl")] };

/// A step's requests on the device.
///
/// The table holds a row of parameters for each row of logits, and behind them the drafts' offsets.
#[derive(Debug)]
pub struct WgpuVerifyPlan {
    spec: SamplingSpec,
    capacity: VerifyCapacity,
    requests: usize,
    drafts: usize,
    drawn: bool,
    table: Table,
    parts: Parts,
    /// I32, one for each row of logits: the token that it gives.
    tokens: Tensor<Wgpu>,
}

impl WgpuVerifyPlan {
    pub(super) fn new(device: &Wgpu, spec: &SamplingSpec, capacity: &VerifyCapacity) -> Result<Self> {
        require(device, spec)?;
        let (rows, words) = (capacity.max_rows(), capacity.max_words());
        Ok(WgpuVerifyPlan {
            spec: spec.clone(),
            capacity: *capacity,
            requests: 0,
            drafts: 0,
            drawn: false,
            table: Table::new(device, "sampling", words)?,
            parts: Parts::new(device, spec.vocabulary, rows)?,
            tokens: device.bindable("sampling", "bytes of tokens", DType::I32, &[rows])?,
        })
    }

    pub(super) fn update(
        &mut self,
        stream: &mut WgpuStream,
        step: &Checked<VerifyStep<'_>, VerifyLimits>,
    ) -> Result<()> {
        step.checked_against("sampling", &self.limits())?;
        let words = self.table.begin();
        step.words(words);
        (self.requests, self.drafts) = (0, 0);
        self.table.upload(stream)?;
        self.requests = step.params.len();
        self.drafts = step.cu_drafts.last().map_or(0, |&drafts| drafts as usize);
        self.drawn = step.params.iter().any(SamplingParams::is_drawn);
        Ok(())
    }
}

impl VerifyPlan for WgpuVerifyPlan {
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
pub(super) fn verify(stream: &mut WgpuStream, args: &VerifyArgs<'_, Wgpu>) -> Result<()> {
    let plan = args.plan;
    let rows = plan.requests + plan.drafts;
    let step = Step { table: &plan.table, parts: &plan.parts, drawn: plan.drawn, logits: args.logits };
    let tokens = plan.tokens.narrow(0, 0..rows)?;
    let drafts = |launch: Launch| launch.operand("drafts", Access::Words, Operand::tensor(args.drafts));
    let q = match args.probabilities {
        DraftProbabilities::Drawn(q) => Some(q),
        _ => None,
    };
    if let Some(q) = q {
        step.find(stream)?;
        let launch = drafts(step.launch(&VERIFY))
            .input("q", q)
            .operand("tokens", Access::Words, Operand::tensor(&tokens))
            .size("q_stride", Rows::of(q).outer_stride);
        stream.launch(launch, spread(rows))?;
    } else {
        sample(stream, &step, &tokens)?;
    }
    let launch = drafts(Launch::new(&ACCEPT))
        .operand("table", Access::Words, plan.table.operand())
        .operand("tokens", Access::Words, Operand::tensor(&tokens))
        .output("accepted", args.accepted)
        .output("next", args.next)
        .flag("DRAWN", q.is_some())
        .size("requests", plan.requests)
        .size("cu_drafts", rows * ROW_WORDS)
        // All drafts may be one request's.
        .rounds(plan.drafts);
    stream.launch(launch, spread(plan.requests.div_ceil(64)))
}
