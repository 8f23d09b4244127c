//! Multi-head latent attention.
//!
//! The absorbed form is attention's, over rows of the latent cache; `project` has the products before and after it. The
//! expanded form is attention's too, over parts that `expand` makes of latents, for each head anew.

mod expand;
mod packed;
mod project;

pub use packed::CpuMlaPacked;

use crate::{
    attention::{CpuAttentionPlan, RowTensors, TaskCut, latent::LatentLayer},
    cache::Kind,
    device::Cpu,
    stream::CpuStream,
    view::with_float,
};
use expand::Expand;
use halite_hal::{DType, Result};
use halite_kernels::{
    Checked, Support,
    attention::{Attention, AttentionCapacity, AttentionLimits, AttentionPlan, AttentionSpec, AttentionStep},
    cache::KvValues,
    mla::{AbsorbArgs, LatentAttention, MlaArgs, MlaForm, MlaPlan, MlaSpec, MlaWeights, UpProjectArgs},
};
use packed::Matrix;
use project::Carried;

/// Query rows of a task: making a part's keys and values costs as much as some 400 rows' use of them.
pub(crate) const TASK_ROWS: usize = 576;

/// A step's tables for the expanded form.
#[derive(Debug)]
pub struct CpuMlaPlan {
    mla: MlaSpec,
    /// Of each head's own keys and values, which are never stored.
    plan: CpuAttentionPlan,
}

impl AttentionPlan for CpuMlaPlan {
    fn spec(&self) -> &AttentionSpec {
        &self.mla.attention
    }

    fn capacity(&self) -> &AttentionCapacity {
        self.plan.capacity()
    }

    fn tokens(&self) -> usize {
        self.plan.tokens()
    }
}

impl MlaPlan for CpuMlaPlan {
    fn mla(&self) -> &MlaSpec {
        &self.mla
    }
}

/// Attention as it runs over keys and values of each head.
fn expanded(spec: &MlaSpec) -> AttentionSpec {
    let mut attention = spec.attention.clone();
    attention.kv.kv_heads = spec.heads();
    attention.kv.head_dim = spec.query_dim();
    attention.kv.value_head_dim = spec.value_head_dim;
    attention.kv.values = KvValues::Own;
    attention
}

/// The type in which weights are stored: the check has found one.
fn stored(spec: &MlaSpec) -> DType {
    spec.weights.float_type().unwrap_or(DType::F32)
}

impl LatentAttention for Cpu {
    type MlaPacked = CpuMlaPacked;
    type MlaPlan = CpuMlaPlan;

    fn mla_supports(&self, spec: &MlaSpec) -> Support {
        match self.attention_supports(&spec.attention) {
            Support::Native if spec.form == MlaForm::Expanded => self.attention_supports(&expanded(spec)),
            other => other,
        }
    }

    fn mla_pack(
        &self,
        _stream: &mut CpuStream,
        weights: Checked<MlaWeights<'_>, &MlaSpec>,
    ) -> Result<CpuMlaPacked> {
        self.mla_supports(weights.context()).require("mla", self, weights.context())?;
        packed::pack(self, &weights)
    }

    fn mla_save(&self, _stream: &mut CpuStream, packed: &CpuMlaPacked) -> Result<Vec<u8>> {
        packed::save(packed)
    }

    fn mla_restore(&self, _stream: &mut CpuStream, spec: &MlaSpec, saved: &[u8]) -> Result<CpuMlaPacked> {
        spec.check()?;
        self.mla_supports(spec).require("mla", self, spec)?;
        packed::restore(self, spec, saved)
    }

    fn absorb(&self, _stream: &mut CpuStream, args: Checked<AbsorbArgs<'_, Self>>) -> Result<()> {
        let spec = args.weights.as_ref();
        let panels = args.weights.read(Matrix::Uk)?;
        with_float!(spec.attention.dtype, Query => with_float!(stored(spec), Stored => {
            let weights = args.weights.heads::<Stored>(Matrix::Uk, &panels);
            self.head_products::<Query, _>(weights, Carried(spec.rope_dim()), args.q, args.out)
        }))
    }

    fn up_project(&self, _stream: &mut CpuStream, args: Checked<UpProjectArgs<'_, Self>>) -> Result<()> {
        let spec = args.weights.as_ref();
        let panels = args.weights.read(Matrix::Uv)?;
        with_float!(spec.attention.dtype, Sum => with_float!(stored(spec), Stored => {
            let weights = args.weights.heads::<Stored>(Matrix::Uv, &panels);
            self.head_products::<Sum, _>(weights, Carried(0), args.x, args.out)
        }))
    }

    fn mla_plan(&self, spec: &MlaSpec, capacity: &AttentionCapacity) -> Result<CpuMlaPlan> {
        spec.check_expanded()?;
        self.mla_supports(spec).require("mla", self, spec)?;
        // Offsets into the cache stay within what was checked when the cache was made.
        spec.attention.kv.cache_bytes(capacity.cache_blocks)?;
        let cut = TaskCut { rows: TASK_ROWS, staging: expand::latent_lines(spec) };
        let plan = CpuAttentionPlan::new("mla", &expanded(spec), capacity, cut, self.threads())?;
        Ok(CpuMlaPlan { mla: spec.clone(), plan })
    }

    fn mla_workspace(&self, plan: &CpuMlaPlan) -> u64 {
        plan.plan.workspace(self.threads())
    }

    fn mla_update(
        &self,
        _stream: &mut CpuStream,
        plan: &mut CpuMlaPlan,
        step: &Checked<AttentionStep<'_>, AttentionLimits>,
    ) -> Result<()> {
        step.checked_against("mla", &plan.limits())?;
        plan.plan.update(step);
        Ok(())
    }

    fn mla(&self, stream: &mut CpuStream, args: Checked<MlaArgs<'_, Self>>) -> Result<()> {
        if args.plan.tokens() == 0 {
            return Ok(());
        }
        let spec = args.plan.mla();
        let MlaArgs { q, state_in, out, sinks, log_sum_exp, .. } = *args;
        let rows = RowTensors { q, state_in, out, sinks, log_sum_exp };
        let (memory, range) = args.cache.elements(Kind::Keys, args.layer);
        let memory = memory.read(range)?;
        let (uk, uv) = (args.weights.read(Matrix::Uk)?, args.weights.read(Matrix::Uv)?);
        with_float!(spec.attention.kv.format.element(), Latent => {
            with_float!(stored(spec), Weight => {
                let latents = LatentLayer::<Latent>::new(args.cache, bytemuck::cast_slice(&memory));
                let source = Expand {
                    latents,
                    w_uk: args.weights.heads::<Weight>(Matrix::Uk, &uk),
                    w_uv: args.weights.heads::<Weight>(Matrix::Uv, &uv),
                };
                self.attend("mla", stream, &args.plan.plan, &source, rows)
            })
        })
    }
}
