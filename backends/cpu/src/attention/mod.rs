//! Attention over the paged cache.
//!
//! A task is one KV head of one sequence and up to [`TASK_ROWS`] query rows. It walks those of the sequence's parts that
//! a row of it sees from left to right: its `source` fills a part once (`choice` is which; `stage` widens what a cache
//! holds), `tile` puts up to 12 rows at a time against it, `state` is what they know so far, `ends` is how rows begin and
//! what becomes of them. Prefill, chunks and decode take the same path, and which thread takes which task is free.

mod alibi;
mod call;
mod choice;
mod ends;
mod int8;
pub(crate) mod latent;
mod merge;
mod operands;
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
mod weigh;

use crate::{cache::Kind, device::Cpu, stream::CpuStream, view::with_float};
pub(crate) use call::RowTensors;
use choice::SourceKind;
use halite_hal::Result;
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
use source::{Guarded, Int8Layer};
use stage::MAX_PART;
use stored::with_stored;

/// Query rows of a task: enough that staging a part costs little beside using it, few enough that their states stay in
/// the second-level cache.
const TASK_ROWS: usize = 192;

impl Attention for Cpu {
    type AttentionPlan = CpuAttentionPlan;

    fn attention_supports(&self, spec: &AttentionSpec) -> Support {
        let queries = crate::float_only(spec.dtype);
        if queries != Support::Native {
            return queries;
        }
        match spec.kv.format {
            KvFormat::Float(dtype) if dtype.is_float() => {}
            KvFormat::Int8PerTokenHead => {}
            other => {
                return Support::No(format!("{other} keys and values: only F32, F16, BF16 and INT8"));
            }
        }
        if spec.kv_split > MAX_PART {
            return Support::No(format!("kv_split {}: at most {MAX_PART}", spec.kv_split));
        }
        match spec.compute {
            AttentionCompute::Float
            | AttentionCompute::Int8 { values: ValueProducts::Float | ValueProducts::Int8 } => {}
            other => return Support::No(format!("{other:?} is not implemented")),
        }
        match spec.mask {
            Mask::Causal | Mask::Bidirectional | Mask::Sliding { .. } | Mask::Chunked { .. } | Mask::Tree => {
                Support::Native
            }
            other => Support::No(format!("{other:?} is not implemented")),
        }
    }

    fn attention_plan(&self, spec: &AttentionSpec, capacity: &AttentionCapacity) -> Result<CpuAttentionPlan> {
        spec.check()?;
        self.attention_supports(spec).require("attention", self, spec)?;
        // Offsets into the cache stay within what was checked when the cache was made.
        spec.kv.cache_bytes(capacity.cache_blocks)?;
        let cut = TaskCut { rows: TASK_ROWS, staging: 0 };
        CpuAttentionPlan::new("attention", spec, capacity, cut, self.threads())
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
        let AttentionArgs { q, state_in, out, sinks, log_sum_exp, .. } = *args;
        let rows = RowTensors { q, state_in, out, sinks, log_sum_exp };
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
