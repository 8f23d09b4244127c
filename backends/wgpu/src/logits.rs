//! Penalties, biases and masks on logits, in place.

use crate::{
    device::Wgpu,
    launch::{Access, Launch, Shader, spread},
    operand::Operand,
    rows::Rows,
    stream::WgpuStream,
    table::Table,
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    logits::{
        LogitOps, LogitsArgs, LogitsCapacity, LogitsLimits, LogitsPlan, LogitsSpec, LogitsStep, LogitsTable,
        SeenToken,
    },
};

static TOUCH: Shader = Shader { name: "logits", source: &[include_str!("logits/touch.wgsl")] };
static MASK: Shader = Shader { name: "logits", source: &[include_str!("logits/mask.wgsl")] };

/// A step's requests on the device.
#[derive(Debug)]
pub struct WgpuLogitsPlan {
    spec: LogitsSpec,
    capacity: LogitsCapacity,
    /// Where they lie in `words`.
    table: LogitsTable,
    words: Table,
    seen: Vec<SeenToken>,
}

impl LogitsPlan for WgpuLogitsPlan {
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

impl LogitOps for Wgpu {
    type LogitsPlan = WgpuLogitsPlan;

    fn logits_supports(&self, _spec: &LogitsSpec) -> Support {
        Support::Native
    }

    fn logits_plan(&self, spec: &LogitsSpec, capacity: &LogitsCapacity) -> Result<WgpuLogitsPlan> {
        spec.check()?;
        let words = Table::new(self, "logits", LogitsTable::max_words(spec, capacity))?;
        let (spec, capacity, table) = (spec.clone(), *capacity, LogitsTable::default());
        Ok(WgpuLogitsPlan { spec, capacity, table, words, seen: Vec::new() })
    }

    fn logits_update(
        &self,
        stream: &mut WgpuStream,
        plan: &mut WgpuLogitsPlan,
        step: &Checked<LogitsStep<'_>, LogitsLimits>,
    ) -> Result<()> {
        step.checked_against("logits", &plan.limits())?;
        let table = LogitsTable::fill(step, plan.words.begin(), &mut plan.seen);
        plan.table = LogitsTable::default();
        plan.words.upload(stream)?;
        plan.table = table;
        Ok(())
    }

    /// One dispatch over the tokens that penalties and biases touch, one over the rows that have a mask.
    fn adjust_logits(&self, stream: &mut WgpuStream, args: Checked<LogitsArgs<'_, Self>>) -> Result<()> {
        let (plan, table, rows) = (args.plan, args.plan.table, Rows::of(args.logits));
        let launch = |shader| {
            Launch::new(shader)
                .operand("logits", Access::Words, Operand::tensor(args.logits))
                .operand("table", Access::Words, plan.words.operand())
                .size("row_stride", rows.outer_stride)
                .size("vocabulary", rows.columns)
        };
        let touch =
            launch(&TOUCH).size("touched", table.touched).size("touched_start", table.touched_start());
        stream.launch(touch, spread(table.touched.div_ceil(64)))?;
        let row_groups = rows.columns.div_ceil(256);
        let mask = launch(&MASK)
            .size("masked", table.masked)
            .size("masked_start", table.masked_start())
            .size("masks_start", table.masks_start())
            .size("mask_words", plan.spec.mask_words())
            .size("row_groups", row_groups);
        stream.launch(mask, spread(table.masked * row_groups))
    }
}
