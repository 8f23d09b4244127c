//! Attention over the paged cache.
//!
//! A step is cut on the host (`halite_kernels::attention::cut`): tiles of query rows (`shape`: as many as shared memory
//! holds), and items, which are what a block of threads does: a tile with all that it sees, or, where there are too few tiles to keep a
//! GPU busy, a tile with one part of that. Keys and values are read once for all rows of a tile: by `mma.cu`, which multiplies
//! them by the tensor cores, where `mma::has` says so (F16 and BF16 queries over their own type or INT8), by `attend.cu` in
//! every other type and shape. `join.cu` joins parts that several blocks read. All join from left to right by the same functions
//! (`state.cuh`), and within a part the order of sums goes by the positions alone, so a row's bits depend neither on its
//! neighbours nor on who read what.

#[cfg(all(test, feature = "interpreter"))]
mod bits_tests;
mod call;
#[cfg(all(test, feature = "interpreter"))]
mod fault_tests;
mod merge;
mod mma;
mod plan;
mod shape;
#[cfg(all(test, feature = "interpreter"))]
mod testing;

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    attention::{
        Attention, AttentionArgs, AttentionCapacity, AttentionCompute, AttentionLimits, AttentionMergeArgs,
        AttentionMergeSpec, AttentionPlan, AttentionSpec, AttentionStep, Mask, ValueProducts, cut::Parted,
    },
    cache::KvCacheOps,
};

use crate::{compile::Program, device::Cuda, stream::CudaStream, support::float_only};
pub(crate) use call::{Call, Queries, RowTensors, code};

pub use plan::CudaAttentionPlan;

/// Every program of the family.
pub(crate) fn programs() -> Vec<Program> {
    let mut programs = call::programs();
    programs.extend(merge::programs());
    programs
}

impl Attention for Cuda {
    type AttentionPlan = CudaAttentionPlan;

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
        if shape::fitting(spec, 1).is_none() {
            let (keys, values, split) = (spec.kv.head_dim, spec.kv.value_head_dim, spec.kv_split);
            return Support::No(format!(
                "head_dim {keys}, value_head_dim {values} and kv_split {split}: together more than a block of threads \
                 holds"
            ));
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
    ) -> Result<CudaAttentionPlan> {
        spec.check()?;
        self.attention_supports(spec).require("attention", self, spec)?;
        spec.kv.cache_bytes(capacity.cache_blocks)?;
        CudaAttentionPlan::new(self, "attention", spec, capacity, Parted::Long)
    }

    fn attention_workspace(&self, plan: &CudaAttentionPlan) -> u64 {
        plan.workspace()
    }

    fn attention_update(
        &self,
        stream: &mut CudaStream,
        plan: &mut CudaAttentionPlan,
        step: &Checked<AttentionStep<'_>, AttentionLimits>,
    ) -> Result<()> {
        step.checked_against("attention", &plan.limits())?;
        plan.update(stream, "attention", step)
    }

    fn attention(&self, stream: &mut CudaStream, args: Checked<AttentionArgs<'_, Self>>) -> Result<()> {
        let &AttentionArgs { plan, cache, layer, q, state_in, out, sinks, log_sum_exp } = &*args;
        let tensors = RowTensors { q, state_in, out, sinks, log_sum_exp };
        Call { operator: "attention", plan, cache, layer, tensors }.run(stream)
    }

    fn attention_merge_supports(&self, spec: &AttentionMergeSpec) -> Support {
        float_only(spec.dtype)
    }

    fn attention_merge(
        &self,
        stream: &mut CudaStream,
        args: Checked<AttentionMergeArgs<'_, Self>>,
    ) -> Result<()> {
        self.attention_merge_supports(args.spec).require("attention_merge", self, args.spec)?;
        merge::merge(stream, &args)
    }
}
