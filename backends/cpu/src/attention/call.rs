//! A call: its tensors, guarded once and shared by its tasks.

use super::{
    CpuAttentionPlan,
    ends::{Queries, Results},
    source::Source,
    task::Attend,
};
use crate::{
    device::Cpu,
    linear::output::OutputRows,
    stream::CpuStream,
    view::{Reader, Rows, Writer, read, write},
};
use halite_hal::{Error, Result, Tensor};
use halite_kernels::attention::{AttentionOut, AttentionState};
use std::sync::{Mutex, PoisonError};

/// A call's tensors.
#[derive(Clone, Copy)]
pub(crate) struct RowTensors<'a> {
    /// `[tokens, query_heads, head_dim]`
    pub(crate) q: &'a Tensor<Cpu>,
    /// Where the rows begin, if not with the empty state.
    pub(crate) state_in: Option<AttentionState<'a, Cpu>>,
    /// `[tokens, query_heads, value_head_dim]`
    pub(crate) out: AttentionOut<'a, Cpu>,
    /// `[query_heads]`
    pub(crate) sinks: Option<&'a Tensor<Cpu>>,
    /// `[tokens, query_heads]`
    pub(crate) log_sum_exp: Option<&'a Tensor<Cpu>>,
}

impl Cpu {
    /// Runs a plan's tasks over keys and values of any source.
    pub(crate) fn attend(
        &self,
        operator: &'static str,
        stream: &mut CpuStream,
        plan: &CpuAttentionPlan,
        source: &impl Source,
        tensors: RowTensors<'_>,
    ) -> Result<()> {
        let RowTensors { q, state_in, out, sinks, log_sum_exp } = tensors;
        let shape = plan.task_shape();
        let scratch = stream.scratch(operator, plan.workspace(self.threads()))?;
        // As many pieces as threads, hence as many as tasks run at once.
        let free =
            Mutex::new(bytemuck::cast_slice_mut(scratch).chunks_mut(shape.lines()).collect::<Vec<_>>());
        let q_bytes = q.buffer().read(q.byte_range())?;
        let q = Queries { bytes: &q_bytes, dtype: q.dtype(), rows: Rows::of(q) };
        let state_in = state_in.map(|state| read_state(&state)).transpose()?;
        let sinks = sinks.map(read::<f32>).transpose()?;
        let (mut bytes, mut log, mut state);
        let results = match out {
            AttentionOut::Normalised(out) => {
                bytes = out.buffer().write(out.byte_range())?;
                log = log_sum_exp.map(write::<f32>).transpose()?;
                let (rows, size) = (Rows::of(out), out.dtype().size());
                Results::Normalised {
                    out: OutputRows::new(
                        &mut bytes,
                        rows.outer,
                        width(rows) * size,
                        rows.outer_stride * size,
                    ),
                    dtype: out.dtype(),
                    head_stride: rows.inner_stride * size,
                    log_sum_exp: log.as_mut().map(matrix),
                }
            }
            AttentionOut::State(AttentionState { max, sum, values }) => {
                state = [write::<f32>(max)?, write::<f32>(sum)?, write::<f32>(values)?];
                let head_stride = state[2].rows.inner_stride;
                let [max, sum, values] = state.each_mut().map(matrix);
                Results::State { max, sum, values, head_stride }
            }
            other => {
                let expected = "a normalised result or a state".into();
                return Err(Error::Argument {
                    operator,
                    argument: "out",
                    expected,
                    got: format!("{other:?}"),
                });
            }
        };
        let tasks = plan.tasks.iter().map(|task| {
            // SAFETY: a task writes the rows of its tokens in the query heads of its KV head: no two share one.
            (task, unsafe { results.alias() })
        });
        self.team().each(tasks, |(task, results)| {
            let piece = || free.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(lines) = piece().pop() else { unreachable!("a piece for each thread") };
            let table = &plan.block_table[task.sequence * plan.capacity.max_blocks_per_sequence..];
            self.tier().run(Attend {
                spec: &plan.spec,
                shape,
                task,
                table,
                visible: plan.visible(task),
                source,
                q,
                state_in: state_in.as_ref(),
                sinks: sinks.as_ref().map(Reader::data),
                results,
                lines: &mut *lines,
            });
            piece().push(lines);
        });
        Ok(())
    }
}

/// A state's maxima, sums and values.
fn read_state<'a>(state: &AttentionState<'a, Cpu>) -> Result<[Reader<'a, f32>; 3]> {
    Ok([read(state.max)?, read(state.sum)?, read(state.values)?])
}

impl Results<'_> {
    /// Another handle to the same tensors, for another task.
    ///
    /// # Safety
    /// No two of the tasks write the same rows.
    unsafe fn alias(&self) -> Self {
        // SAFETY: segments lie within a row of a head, and the caller promises that rows are apart.
        unsafe {
            match self {
                Results::Normalised { out, dtype, head_stride, log_sum_exp } => Results::Normalised {
                    out: out.alias(),
                    dtype: *dtype,
                    head_stride: *head_stride,
                    log_sum_exp: log_sum_exp.as_ref().map(|rows| rows.alias()),
                },
                Results::State { max, sum, values, head_stride } => Results::State {
                    max: max.alias(),
                    sum: sum.alias(),
                    values: values.alias(),
                    head_stride: *head_stride,
                },
            }
        }
    }
}

/// Elements from the first of a token to its last.
fn width(rows: Rows) -> usize {
    rows.inner.saturating_sub(1) * rows.inner_stride + rows.columns
}

/// A tensor `[tokens, heads, dim]` or `[tokens, heads]` as a matrix of tokens.
fn matrix<'a>(tensor: &'a mut Writer<'_, f32>) -> OutputRows<'a, f32> {
    let rows = tensor.rows;
    OutputRows::new(tensor.data(), rows.outer, width(rows), rows.outer_stride)
}
