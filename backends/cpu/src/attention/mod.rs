//! Attention over the paged cache.
//!
//! A task is one KV head of one sequence and up to [`TASK_ROWS`] query rows. It walks those of the sequence's parts that
//! a row of it sees from left to right: its `source` fills a part once (`choice` is which; `stage` widens what a cache
//! holds), `tile` puts up to 12 rows at a time against it, `state` is what they know so far. Prefill, chunks and decode take
//! the same path, and which thread takes which task is free.

mod alibi;
mod choice;
mod int8;
pub(crate) mod latent;
mod merge;
mod plan;
#[cfg(test)]
mod sequence;
pub(crate) mod source;
pub(crate) mod stage;
pub(crate) mod state;
mod stored;
mod task;
pub(crate) mod tile;
mod visible;

use crate::{
    cache::Kind,
    device::Cpu,
    linear::output::OutputRows,
    stream::CpuStream,
    view::{Reader, Writer, read, with_float, write},
};
use choice::SourceKind;
use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    Checked, Support,
    attention::{
        Attention, AttentionArgs, AttentionCapacity, AttentionCompute, AttentionLimits, AttentionMergeArgs,
        AttentionMergeSpec, AttentionPlan, AttentionSpec, AttentionStep, Mask, ValueProducts,
    },
    cache::KvFormat,
};
use latent::LatentLayer;
pub use plan::CpuAttentionPlan;
pub(crate) use plan::TaskCut;
use source::{Guarded, Int8Layer, Source};
use stage::MAX_PART;
use std::sync::{Mutex, PoisonError};
use stored::with_stored;
use task::Attend;

/// Query rows of a task: enough that staging a part costs little beside using it, few enough that their states stay in
/// the second-level cache.
const TASK_ROWS: usize = 192;

impl Attention for Cpu {
    type AttentionPlan = CpuAttentionPlan;

    fn attention_supports(&self, spec: &AttentionSpec) -> Support {
        if spec.dtype != DType::F32 {
            return Support::No(format!("queries of {}: F32 is built", spec.dtype));
        }
        match spec.kv.format {
            KvFormat::Float(dtype) if dtype.is_float() => {}
            KvFormat::Int8PerTokenHead => {}
            other => {
                return Support::No(format!("{other} keys and values: F32, F16, BF16 and INT8 are built"));
            }
        }
        if spec.kv_split > MAX_PART {
            return Support::No(format!("kv_split {}: at most {MAX_PART}", spec.kv_split));
        }
        match spec.compute {
            AttentionCompute::Float
            | AttentionCompute::Int8 { values: ValueProducts::Float | ValueProducts::Int8 } => {}
            other => return Support::No(format!("{other:?}: F32 and INT8 are built")),
        }
        match spec.mask {
            Mask::Causal | Mask::Bidirectional | Mask::Sliding { .. } | Mask::Chunked { .. } | Mask::Tree => {
                Support::Native
            }
            other => Support::No(format!("{other:?}: not built")),
        }
    }

    fn attention_plan(&self, spec: &AttentionSpec, capacity: &AttentionCapacity) -> Result<CpuAttentionPlan> {
        spec.check()?;
        self.attention_supports(spec).require("attention", self, spec)?;
        // Offsets into the cache stay within what was checked when the cache was made.
        spec.kv.cache_bytes(capacity.cache_blocks)?;
        let plan = CpuAttentionPlan::new(spec, capacity, TaskCut { rows: TASK_ROWS, staging: 0 });
        plan.check_workspace("attention", self.threads())?;
        Ok(plan)
    }

    fn attention_workspace(&self, plan: &CpuAttentionPlan) -> u64 {
        plan.workspace(self.threads())
    }

    fn attention_update(
        &self,
        _stream: &mut CpuStream,
        plan: &mut CpuAttentionPlan,
        step: &Checked<AttentionStep<'_>, AttentionLimits>,
    ) -> Result<()> {
        step.checked_against("attention", &plan.limits())?;
        plan.update(step);
        Ok(())
    }

    fn attention(&self, stream: &mut CpuStream, args: Checked<AttentionArgs<'_, Self>>) -> Result<()> {
        if args.plan.tokens() == 0 {
            return Ok(());
        }
        let AttentionArgs { q, out, sinks, log_sum_exp, .. } = *args;
        let rows = QueryRows { q, out, sinks, log_sum_exp };
        let (cache, n) = (args.cache, args.layer);
        let guarded = || Guarded::new(cache, n);
        match SourceKind::of(&args.plan.spec) {
            SourceKind::Latent(dtype) => {
                let (memory, bytes) = cache.elements(Kind::Keys, n);
                let memory = memory.read(bytes)?;
                with_float!(dtype, Element => {
                    let layer = LatentLayer::<Element>::new(cache, bytemuck::cast_slice(&memory));
                    self.attend("attention", stream, args.plan, &layer, rows)
                })
            }
            SourceKind::Bytes => {
                self.attend("attention", stream, args.plan, &Int8Layer(guarded()?.layer()), rows)
            }
            SourceKind::Widened(format) => with_stored!(format, Element => {
                self.attend("attention", stream, args.plan, &guarded()?.layer::<Element>(), rows)
            }),
        }
    }

    fn attention_merge_supports(&self, spec: &AttentionMergeSpec) -> Support {
        crate::float_only(spec.dtype)
    }

    fn attention_merge(
        &self,
        _stream: &mut CpuStream,
        args: Checked<AttentionMergeArgs<'_, Self>>,
    ) -> Result<()> {
        self.attention_merge_supports(args.spec).require("attention_merge", self, args.spec)?;
        with_float!(args.spec.dtype, Float => self.merge::<Float>(&args))
    }
}

/// A call's tensors.
#[derive(Clone, Copy)]
pub(crate) struct QueryRows<'a> {
    /// `[tokens, query_heads, head_dim]`
    pub(crate) q: &'a Tensor<Cpu>,
    /// `[tokens, query_heads, value_head_dim]`
    pub(crate) out: &'a Tensor<Cpu>,
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
        tensors: QueryRows<'_>,
    ) -> Result<()> {
        let shape = plan.task_shape();
        let scratch = stream.scratch(operator, plan.workspace(self.threads()))?;
        // As many pieces as threads, hence as many as tasks run at once.
        let free =
            Mutex::new(bytemuck::cast_slice_mut(scratch).chunks_mut(shape.lines()).collect::<Vec<_>>());
        let q = read::<f32>(tensors.q)?;
        let sinks = tensors.sinks.map(read::<f32>).transpose()?;
        let mut out = write::<f32>(tensors.out)?;
        let mut log_sum_exp = tensors.log_sum_exp.map(write::<f32>).transpose()?;
        let heads = out.rows.inner_stride;
        let out = matrix(&mut out);
        let log_sum_exp = log_sum_exp.as_mut().map(matrix);
        let tasks = plan.tasks.iter().map(|task| {
            // SAFETY: a task writes the rows of its tokens in the query heads of its KV head: no two share one.
            (task, unsafe { out.alias() }, log_sum_exp.as_ref().map(|lse| unsafe { lse.alias() }))
        });
        self.team().each(tasks, |(task, out, log_sum_exp)| {
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
                q: q.data(),
                q_rows: q.rows,
                sinks: sinks.as_ref().map(Reader::data),
                out,
                head_stride: heads,
                log_sum_exp,
                lines: &mut *lines,
            });
            piece().push(lines);
        });
        Ok(())
    }
}

/// A tensor `[tokens, heads, dim]` or `[tokens, heads]` as a matrix of tokens.
fn matrix<'a>(tensor: &'a mut Writer<'_, f32>) -> OutputRows<'a, f32> {
    let rows = tensor.rows;
    let columns = rows.inner.saturating_sub(1) * rows.inner_stride + rows.columns;
    OutputRows::new(tensor.data(), rows.outer, columns, rows.outer_stride)
}
