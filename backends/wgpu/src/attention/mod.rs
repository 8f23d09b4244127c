//! Attention over the paged cache.
//!
//! A step is cut on the host (`halite_kernels::attention::cut`): tiles of query rows (`shape`: as many as workgroup memory holds), and items, which
//! are what a workgroup does: a tile with all that it sees, or, where there are too few tiles to keep a device busy, a
//! tile with one part of that. `attend.wgsl` reads keys and values once for all rows of a tile; `join.wgsl` joins parts
//! that several workgroups read. Both join from left to right by the same functions (`state.wgsl`), and within a part the
//! order of sums goes by the positions alone, so a row's bits depend neither on its neighbours nor on who read what.

mod call;
mod merge;
mod plan;
mod rounds;
mod shape;

pub use plan::WgpuAttentionPlan;

use crate::{device::Wgpu, stream::WgpuStream, support::float_only};
pub(crate) use call::{Call, Queries, RowTensors};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    attention::{
        Attention, AttentionArgs, AttentionCapacity, AttentionCompute, AttentionLimits, AttentionMergeArgs,
        AttentionMergeSpec, AttentionPlan, AttentionSpec, AttentionStep, Mask, ValueProducts, cut::Parted,
    },
    cache::KvCacheOps,
};

/// The largest part: its weights of 8 bits times values are summed exactly in F32.
const MAX_PART: usize = 512;
/// The most columns of values: an invocation of a workgroup has four.
const MAX_VALUE_DIM: usize = 1024;

impl Attention for Wgpu {
    type AttentionPlan = WgpuAttentionPlan;

    fn attention_supports(&self, spec: &AttentionSpec) -> Support {
        let queries = float_only(spec.dtype);
        if queries != Support::Native {
            return queries;
        }
        let cache = self.cache_supports(&spec.kv);
        if cache != Support::Native {
            return cache;
        }
        match spec.compute {
            AttentionCompute::Float
            | AttentionCompute::Int8 { values: ValueProducts::Float | ValueProducts::Int8 } => {}
            other => return Support::No(format!("{other:?} is not implemented")),
        }
        let (split, columns) = (spec.kv_split, spec.kv.value_head_dim);
        if split > MAX_PART {
            return Support::No(format!("kv_split {split}: at most {MAX_PART}"));
        }
        if columns > MAX_VALUE_DIM {
            return Support::No(format!("value_head_dim {columns}: at most {MAX_VALUE_DIM}"));
        }
        if shape::fitting(spec, 1).is_none() {
            return Support::No(format!("head_dim {}: more than a workgroup holds", spec.kv.head_dim));
        }
        match spec.mask {
            Mask::Causal | Mask::Bidirectional | Mask::Sliding { .. } | Mask::Chunked { .. } | Mask::Tree => {
                Support::Native
            }
            other => Support::No(format!("{other:?} is not implemented")),
        }
    }

    fn attention_plan(
        &self,
        spec: &AttentionSpec,
        capacity: &AttentionCapacity,
    ) -> Result<WgpuAttentionPlan> {
        spec.check()?;
        self.attention_supports(spec).require("attention", self, spec)?;
        spec.kv.cache_bytes(capacity.cache_blocks)?;
        WgpuAttentionPlan::new(self, "attention", spec, capacity, Parted::Long)
    }

    fn attention_workspace(&self, plan: &WgpuAttentionPlan) -> u64 {
        plan.workspace()
    }

    fn attention_update(
        &self,
        stream: &mut WgpuStream,
        plan: &mut WgpuAttentionPlan,
        step: &Checked<AttentionStep<'_>, AttentionLimits>,
    ) -> Result<()> {
        step.checked_against("attention", &plan.limits())?;
        plan.update(stream, "attention", step)
    }

    fn attention(&self, stream: &mut WgpuStream, args: Checked<AttentionArgs<'_, Self>>) -> Result<()> {
        let &AttentionArgs { plan, cache, layer, q, state_in, out, sinks, log_sum_exp } = &*args;
        let tensors = RowTensors { q, state_in, out, sinks, log_sum_exp };
        Call { operator: "attention", plan, cache, layer, tensors }.run(stream)
    }

    fn attention_merge_supports(&self, spec: &AttentionMergeSpec) -> Support {
        float_only(spec.dtype)
    }

    fn attention_merge(
        &self,
        stream: &mut WgpuStream,
        args: Checked<AttentionMergeArgs<'_, Self>>,
    ) -> Result<()> {
        self.attention_merge_supports(args.spec).require("attention_merge", self, args.spec)?;
        merge::merge(stream, &args)
    }
}
