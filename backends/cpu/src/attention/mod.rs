//! Attention over the paged cache.
//!
//! A task is one KV head of one sequence and up to [`TASK_ROWS`] query rows. It walks those of the sequence's parts that
//! a row of it sees from left to right: `stage` widens a part once, `tile` puts up to 12 rows at a time against it, `state` is what they know so
//! far. Prefill, chunks and decode take the same path, and which thread takes which task is free.

#[cfg(test)]
mod sequence;
pub(crate) mod stage;
pub(crate) mod state;
mod task;
pub(crate) mod tile;

use crate::{
    device::Cpu,
    linear::output::OutputRows,
    stream::CpuStream,
    view::{Writer, read, with_float, write},
};
use halite_hal::{DType, Error, Result};
use halite_kernels::{
    Checked, Support,
    attention::{
        Attention, AttentionArgs, AttentionCapacity, AttentionLimits, AttentionPlan, AttentionSpec,
        AttentionStep, Mask,
    },
    cache::KvFormat,
};
use stage::MAX_PART;
use std::{
    ops::Range,
    sync::{Mutex, PoisonError},
};
use task::{Attend, Layer, TaskShape};

/// Query rows of a task: enough that staging a part costs little beside using it, few enough that their states stay in
/// the second-level cache.
const TASK_ROWS: usize = 192;

/// A step's tables, and its tasks.
#[derive(Debug)]
pub struct CpuAttentionPlan {
    spec: AttentionSpec,
    capacity: AttentionCapacity,
    kv_lens: Vec<u32>,
    block_table: Vec<i32>,
    tasks: Vec<Task>,
    tokens: usize,
}

/// Query tokens of one sequence, for one KV head.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    sequence: usize,
    kv_head: usize,
    /// Rows of the step's query tensor.
    tokens: Range<usize>,
    /// Positions of the cache up to the first token's own; each next token has one more. Negative where the first
    /// tokens see nothing.
    first_visible: i64,
}

impl AttentionPlan for CpuAttentionPlan {
    fn spec(&self) -> &AttentionSpec {
        &self.spec
    }

    fn capacity(&self) -> &AttentionCapacity {
        &self.capacity
    }

    fn tokens(&self) -> usize {
        self.tokens
    }
}

impl CpuAttentionPlan {
    fn task_tokens(&self) -> usize {
        (TASK_ROWS / self.spec.group()).max(1)
    }

    fn task_shape(&self) -> TaskShape {
        TaskShape::new(&self.spec, self.task_tokens().min(self.capacity.max_tokens.max(1)))
    }
}

impl Attention for Cpu {
    type AttentionPlan = CpuAttentionPlan;

    fn attention_supports(&self, spec: &AttentionSpec) -> Support {
        if spec.dtype != DType::F32 {
            return Support::No(format!("queries of {}: F32 is built", spec.dtype));
        }
        match spec.kv.format {
            KvFormat::Float(dtype) if dtype.is_float() => {}
            other => return Support::No(format!("{other} keys and values: F32, F16 and BF16 are built")),
        }
        if spec.kv_split > MAX_PART {
            return Support::No(format!("kv_split {}: at most {MAX_PART}", spec.kv_split));
        }
        match spec.mask {
            Mask::Causal | Mask::Sliding { .. } => Support::Native,
            other => Support::No(format!("{other:?}: causal and sliding masks are built")),
        }
    }

    fn attention_plan(&self, spec: &AttentionSpec, capacity: &AttentionCapacity) -> Result<CpuAttentionPlan> {
        spec.check()?;
        self.attention_supports(spec).require("attention", self, spec)?;
        // Offsets into the cache stay within what was checked when the cache was made.
        spec.kv.cache_bytes(capacity.cache_blocks)?;
        let plan = CpuAttentionPlan {
            spec: spec.clone(),
            capacity: *capacity,
            kv_lens: Vec::new(),
            block_table: Vec::new(),
            tasks: Vec::new(),
            tokens: 0,
        };
        let (got, limit) = (self.attention_workspace(&plan), i64::MAX as u64);
        if got > limit {
            return Err(Error::Limit { operator: "attention", argument: "workspace bytes", got, limit });
        }
        Ok(plan)
    }

    fn attention_workspace(&self, plan: &CpuAttentionPlan) -> u64 {
        // Saturated for heads that no memory holds: planning refuses those.
        (self.threads() as u64).saturating_mul(plan.task_shape().bytes() as u64)
    }

    fn attention_update(
        &self,
        _stream: &mut CpuStream,
        plan: &mut CpuAttentionPlan,
        step: &Checked<AttentionStep<'_>, AttentionLimits>,
    ) -> Result<()> {
        step.checked_against("attention", &plan.limits())?;
        plan.tokens = step.tokens();
        plan.kv_lens.clear();
        plan.kv_lens.extend_from_slice(step.kv_lens);
        plan.block_table.clear();
        plan.block_table.extend_from_slice(step.block_table);
        let per_task = plan.task_tokens();
        plan.tasks.clear();
        for (sequence, (bounds, &kv_len)) in step.cu_seqlens.windows(2).zip(step.kv_lens).enumerate() {
            let (start, end) = (bounds[0] as usize, bounds[1] as usize);
            let first_visible = i64::from(kv_len) - (end - start) as i64 + 1;
            // Late tokens see most, or as much as others: their tasks go first, so that the last ones to be claimed are short.
            for first in (start..end).step_by(per_task).rev() {
                let tokens = first..end.min(first + per_task);
                let first_visible = first_visible + (first - start) as i64;
                for kv_head in 0..plan.spec.kv.kv_heads {
                    plan.tasks.push(Task { sequence, kv_head, tokens: tokens.clone(), first_visible });
                }
            }
        }
        Ok(())
    }

    fn attention(&self, stream: &mut CpuStream, args: Checked<AttentionArgs<'_, Self>>) -> Result<()> {
        let plan = args.plan;
        if plan.tasks.is_empty() {
            return Ok(());
        }
        let shape = plan.task_shape();
        let scratch = stream.scratch("attention", self.attention_workspace(plan))?;
        // As many pieces as threads, hence as many as tasks run at once.
        let free =
            Mutex::new(bytemuck::cast_slice_mut(scratch).chunks_mut(shape.lines()).collect::<Vec<_>>());
        let q = read::<f32>(args.q)?;
        let mut out = write::<f32>(args.out)?;
        let mut log_sum_exp = args.log_sum_exp.map(write::<f32>).transpose()?;
        let heads = out.rows.inner_stride;
        let out = matrix(&mut out);
        let log_sum_exp = log_sum_exp.as_mut().map(matrix);
        with_float!(plan.spec.kv.format.element(), Stored => {
            let ((keys, key_range), (values, value_range)) =
                (args.cache.keys(args.layer), args.cache.values(args.layer));
            let (keys, values) = (keys.read(key_range)?, values.read(value_range)?);
            let layer = Layer::<Stored> {
                cache: args.cache,
                keys: bytemuck::cast_slice(&keys),
                values: bytemuck::cast_slice(&values),
            };
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
                    layer: &layer,
                    q: q.data(),
                    q_rows: q.rows,
                    out,
                    head_stride: heads,
                    log_sum_exp,
                    lines: &mut *lines,
                });
                piece().push(lines);
            });
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
