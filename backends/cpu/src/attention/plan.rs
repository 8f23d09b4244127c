//! A plan: a step's tables, cut into tasks.

use super::{task::TaskShape, visible::Visible};
use crate::room::room_for;
use halite_hal::{Error, Result};
use halite_kernels::attention::{AttentionCapacity, AttentionPlan, AttentionSpec, AttentionStep, Mask};
use std::ops::Range;

/// A step's tables, and its tasks.
#[derive(Debug)]
pub struct CpuAttentionPlan {
    pub(super) spec: AttentionSpec,
    pub(super) capacity: AttentionCapacity,
    kv_lens: Vec<u32>,
    kv_ranges: Vec<Range<u32>>,
    pub(super) block_table: Vec<i32>,
    tree_parents: Vec<i32>,
    pub(super) tasks: Vec<Task>,
    tokens: usize,
    cut: TaskCut,
}

/// How large a task is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskCut {
    /// Query rows at most.
    pub(crate) rows: usize,
    /// Lines of scratch memory that its [`Source`] asks for.
    pub(crate) staging: usize,
}

impl TaskCut {
    /// Query tokens of a task, where `group` query heads share a KV head: one at least, however many rows it has.
    fn tokens(self, group: usize) -> usize {
        (self.rows / group).max(1)
    }
}

/// Query tokens of one sequence, for one KV head.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) sequence: usize,
    pub(super) kv_head: usize,
    /// Rows of the step's query tensor.
    pub(super) tokens: Range<usize>,
    /// Rows of the step that are the sequence's.
    rows: Range<usize>,
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
    /// A plan without a step, with room for every step that `capacity` allows. The spec is one that the backend supports.
    pub(crate) fn new(
        operator: &'static str,
        spec: &AttentionSpec,
        capacity: &AttentionCapacity,
        cut: TaskCut,
        threads: usize,
    ) -> Result<Self> {
        let mut plan = CpuAttentionPlan {
            spec: spec.clone(),
            capacity: *capacity,
            kv_lens: Vec::new(),
            kv_ranges: Vec::new(),
            block_table: Vec::new(),
            tree_parents: Vec::new(),
            tasks: Vec::new(),
            tokens: 0,
            cut,
        };
        // What no memory holds has its own error.
        plan.check_workspace(operator, threads)?;
        let sequences = capacity.max_sequences;
        plan.kv_lens = room_for(sequences)?;
        plan.kv_ranges = room_for(sequences)?;
        plan.block_table = room_for(sequences.saturating_mul(capacity.max_blocks_per_sequence))?;
        plan.tree_parents = room_for(if spec.mask == Mask::Tree { capacity.max_tokens } else { 0 })?;
        plan.tasks = room_for(plan.most_tasks())?;
        Ok(plan)
    }

    /// Tasks of a step at most: all of its sequences but one have a single token.
    fn most_tasks(&self) -> usize {
        let tokens = self.capacity.max_tokens;
        let sequences = self.capacity.max_sequences.min(tokens);
        if sequences == 0 {
            return 0;
        }
        let longest = tokens - (sequences - 1);
        (sequences - 1 + longest.div_ceil(self.task_tokens())).saturating_mul(self.spec.kv.kv_heads)
    }

    fn task_tokens(&self) -> usize {
        self.cut.tokens(self.spec.group())
    }

    /// What the tokens of a task see.
    pub(super) fn visible(&self, task: &Task) -> Visible<'_> {
        let (kv_len, read) = (self.kv_lens[task.sequence], &self.kv_ranges[task.sequence]);
        let step_first = i64::from(kv_len) - task.rows.len() as i64;
        Visible {
            mask: self.spec.mask,
            read: read.start as usize..read.end as usize,
            first: step_first + (task.tokens.start - task.rows.start) as i64,
            step_first,
            // Empty where the mask is no tree.
            parents: self.tree_parents.get(task.rows.clone()).unwrap_or_default(),
        }
    }

    pub(super) fn task_shape(&self) -> TaskShape {
        let tokens = self.task_tokens().min(self.capacity.max_tokens.max(1));
        TaskShape::new(&self.spec, tokens, self.cut.staging)
    }

    /// Bytes of scratch memory; saturated for heads that no memory holds.
    pub(crate) fn workspace(&self, threads: usize) -> u64 {
        (threads as u64).saturating_mul(self.task_shape().bytes() as u64)
    }

    /// Refuses what no memory holds.
    fn check_workspace(&self, operator: &'static str, threads: usize) -> Result<()> {
        let (got, limit) = (self.workspace(threads), i64::MAX as u64);
        if got > limit {
            return Err(Error::Limit { operator, argument: "workspace bytes", got, limit });
        }
        Ok(())
    }

    /// Takes over a step's tables and cuts it into tasks.
    pub(crate) fn update(&mut self, step: &AttentionStep<'_>) {
        self.tokens = step.tokens();
        self.kv_lens.clear();
        self.kv_lens.extend_from_slice(step.kv_lens);
        self.kv_ranges.clear();
        self.kv_ranges.extend((0..step.kv_lens.len()).map(|sequence| step.kv_range(sequence)));
        self.block_table.clear();
        self.block_table.extend_from_slice(step.block_table);
        self.tree_parents.clear();
        self.tree_parents.extend_from_slice(step.tree_parents);
        let per_task = self.task_tokens();
        self.tasks.clear();
        for (sequence, bounds) in step.cu_seqlens.windows(2).enumerate() {
            let (start, end) = (bounds[0] as usize, bounds[1] as usize);
            // Late tokens see most, or as much as others: their tasks go first, so that the last ones to be claimed are short.
            for first in (start..end).step_by(per_task).rev() {
                let tokens = first..end.min(first + per_task);
                for kv_head in 0..self.spec.kv.kv_heads {
                    self.tasks.push(Task { sequence, kv_head, tokens: tokens.clone(), rows: start..end });
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
