//! Penalties, biases and masks on logits, in place.

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    logits::{
        LogitOps, LogitsArgs, LogitsCapacity, LogitsLimits, LogitsPlan, LogitsSpec, LogitsStep, LogitsTable,
        SeenToken,
    },
};

use crate::{
    compile::{Program, Source},
    device::Cuda,
    launch::Launch,
    rows::Rows,
    stream::CudaStream,
    table::Table,
};

static SOURCE: Source = Source::new("logits/logits.cu", include_str!("logits.cu"));

/// Threads of a block.
const THREADS: usize = 256;

fn base(entry: &'static str) -> Launch {
    Launch::new("logits", &SOURCE, entry)
}

/// Every program of the family: one, with both kernels.
pub(crate) fn programs() -> Vec<Program> {
    vec![base("touch").program()]
}

/// A step's requests on the device.
#[derive(Debug)]
pub struct CudaLogitsPlan {
    spec: LogitsSpec,
    capacity: LogitsCapacity,
    /// Where they lie in `words`.
    table: LogitsTable,
    words: Table,
    seen: Vec<SeenToken>,
}

impl LogitsPlan for CudaLogitsPlan {
    fn spec(&self) -> &LogitsSpec {
        &self.spec
    }

    fn capacity(&self) -> &LogitsCapacity {
        &self.capacity
    }

    fn rows(&self) -> usize {
        self.table.rows
    }
}

impl LogitOps for Cuda {
    type LogitsPlan = CudaLogitsPlan;

    fn logits_supports(&self, _spec: &LogitsSpec) -> Support {
        Support::Native
    }

    fn logits_plan(&self, spec: &LogitsSpec, capacity: &LogitsCapacity) -> Result<CudaLogitsPlan> {
        spec.check()?;
        let words = Table::new(self, LogitsTable::max_words(spec, capacity))?;
        let (spec, capacity, table) = (spec.clone(), *capacity, LogitsTable::default());
        Ok(CudaLogitsPlan { spec, capacity, table, words, seen: Vec::new() })
    }

    fn logits_update(
        &self,
        stream: &mut CudaStream,
        plan: &mut CudaLogitsPlan,
        step: &Checked<LogitsStep<'_>, LogitsLimits>,
    ) -> Result<()> {
        step.checked_against("logits", &plan.limits())?;
        let table = LogitsTable::fill(step, plan.words.begin(), &mut plan.seen);
        plan.table = LogitsTable::default();
        plan.words.upload(stream)?;
        plan.table = table;
        Ok(())
    }

    /// One launch over the tokens that penalties and biases touch, one over the rows that have a mask.
    fn adjust_logits(&self, stream: &mut CudaStream, args: Checked<LogitsArgs<'_, Self>>) -> Result<()> {
        let (plan, table, rows) = (args.plan, args.plan.table, Rows::of(args.logits));
        let launch = |entry| {
            base(entry)
                .tensor("logits", args.logits)
                .tensor("table", plan.words.tensor())
                .size("logits' stride", rows.outer_stride)
        };
        let touch =
            launch("touch").size("touched", table.touched).size("touched_start", table.touched_start());
        stream.launch(touch.grid([table.touched.div_ceil(THREADS), 1, 1]))?;
        let parts = rows.columns.div_ceil(THREADS);
        let mask = launch("mask")
            .size("vocabulary", rows.columns)
            .size("parts", parts)
            .size("masked_start", table.masked_start())
            .size("masks_start", table.masks_start())
            .size("mask_words", plan.spec.mask_words());
        stream.launch(mask.grid([table.masked.saturating_mul(parts), 1, 1]))
    }
}
