//! A token for each row, and the distribution that its draw follows.

use super::{CANDIDATE, KEPT, PARAMETERS, Parts, ROW, SELECT, SUMS, WEIGHTS, WIDE};
use crate::{
    device::Wgpu,
    launch::{Access, Launch, Shader, spread},
    operand::Operand,
    rows::Rows,
    stream::WgpuStream,
    table::Table,
};
use halite_hal::{Result, Tensor};
use halite_kernels::sampling::weight_bits;

static SAMPLE: Shader = Shader {
    name: "sampling",
    source: &[WIDE, ROW, WEIGHTS, CANDIDATE, SUMS, SELECT, PARAMETERS, KEPT, include_str!("sample.wgsl")],
};
static PROBABILITIES: Shader = Shader {
    name: "sampling",
    source: &[
        WIDE,
        ROW,
        WEIGHTS,
        CANDIDATE,
        SUMS,
        SELECT,
        PARAMETERS,
        KEPT,
        include_str!("probabilities.wgsl"),
    ],
};

/// Rows of logits, and the table that says how each is sampled.
pub(super) struct Step<'a> {
    pub(super) table: &'a Table,
    pub(super) parts: &'a Parts,
    /// Whether any row is drawn from.
    pub(super) drawn: bool,
    pub(super) logits: &'a Tensor<Wgpu>,
}

impl Step<'_> {
    /// A kernel with a workgroup a row.
    pub(super) fn launch(&self, shader: &'static Shader) -> Launch {
        let rows = Rows::of(self.logits);
        let launch = Launch::new(shader)
            .operand("logits", Access::Words, Operand::tensor(self.logits))
            .operand("table", Access::Words, self.table.operand())
            .size("rows", rows.outer)
            .size("row_stride", rows.outer_stride)
            .size("vocabulary", rows.columns);
        let bits = weight_bits(rows.columns);
        self.parts.bind(launch).size("bits", bits as usize).float("unit", 2f32.powi(-(bits as i32)))
    }

    /// What the kernel goes on from.
    pub(super) fn find(&self, stream: &mut WgpuStream) -> Result<()> {
        self.parts.find(stream, self.logits, self.table, self.drawn)
    }

    fn rows(&self) -> usize {
        Rows::of(self.logits).outer
    }
}

/// A token for each row.
pub(super) fn sample(stream: &mut WgpuStream, step: &Step<'_>, ids: &Tensor<Wgpu>) -> Result<()> {
    step.find(stream)?;
    let launch = step.launch(&SAMPLE).operand("ids", Access::Words, Operand::tensor(ids));
    stream.launch(launch.flag("DRAWN", step.drawn), spread(step.rows()))
}

/// The distribution of each row.
pub(super) fn probabilities(stream: &mut WgpuStream, step: &Step<'_>, out: &Tensor<Wgpu>) -> Result<()> {
    step.find(stream)?;
    let launch =
        step.launch(&PROBABILITIES).output("out", out).size("out_stride", Rows::of(out).outer_stride);
    stream.launch(launch, spread(step.rows()))
}
