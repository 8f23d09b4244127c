//! Multi-head latent attention.
//!
//! The absorbed form is attention's, over rows of the latent cache; `project.cu` has the products before and after it. The
//! expanded form takes the same way in F32: queries are absorbed, and states of parts are projected before they are joined,
//! so that what is handed on is of values and not of latents. It makes no key or value of a head, and costs what the
//! absorbed form costs.

mod expanded;
mod packed;
mod project;

pub use packed::CudaMlaPacked;

use crate::{
    attention::{CudaAttentionPlan, RowTensors},
    compile::Program,
    device::Cuda,
    stream::CudaStream,
};
use halite_hal::{DType, Result};
use halite_kernels::{
    Checked, Support,
    attention::{
        Attention, AttentionCapacity, AttentionLimits, AttentionPlan, AttentionSpec, AttentionStep,
        cut::Parted,
    },
    mla::{AbsorbArgs, LatentAttention, MlaArgs, MlaForm, MlaPlan, MlaSpec, MlaWeights, UpProjectArgs},
};

/// Every program of the family; attention has its own.
pub(crate) fn programs() -> Vec<Program> {
    vec![project::program()]
}

/// A step's tables for the expanded form.
#[derive(Debug)]
pub struct CudaMlaPlan {
    mla: MlaSpec,
    /// Of attention over latents, in F32.
    plan: CudaAttentionPlan,
}

impl AttentionPlan for CudaMlaPlan {
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

impl MlaPlan for CudaMlaPlan {
    fn mla(&self) -> &MlaSpec {
        &self.mla
    }
}

impl LatentAttention for Cuda {
    type MlaPacked = CudaMlaPacked;
    type MlaPlan = CudaMlaPlan;

    fn mla_supports(&self, spec: &MlaSpec) -> Support {
        match (self.attention_supports(&spec.attention), spec.form) {
            (Support::Native, MlaForm::Expanded) => {
                Support::Composed("absorb, attention over latents, up_project")
            }
            (answer, MlaForm::Absorbed | MlaForm::Expanded) => answer,
            (_, other) => Support::No(format!("the form {other:?} is not implemented")),
        }
    }

    fn mla_pack(
        &self,
        stream: &mut CudaStream,
        weights: Checked<MlaWeights<'_>, &MlaSpec>,
    ) -> Result<CudaMlaPacked> {
        self.mla_supports(weights.context()).require("mla", self, *weights.context())?;
        packed::pack(self, stream, &weights)
    }

    fn mla_save(&self, stream: &mut CudaStream, packed: &CudaMlaPacked) -> Result<Vec<u8>> {
        packed::save(stream, packed)
    }

    fn mla_restore(&self, stream: &mut CudaStream, spec: &MlaSpec, saved: &[u8]) -> Result<CudaMlaPacked> {
        spec.check()?;
        self.mla_supports(spec).require("mla", self, spec)?;
        packed::restore(self, stream, spec, saved)
    }

    fn absorb(&self, stream: &mut CudaStream, args: Checked<AbsorbArgs<'_, Self>>) -> Result<()> {
        project::run(stream, args.weights.uk(), args.weights.as_ref().rope_dim(), args.q, args.out)
    }

    fn up_project(&self, stream: &mut CudaStream, args: Checked<UpProjectArgs<'_, Self>>) -> Result<()> {
        project::run(stream, args.weights.uv(), 0, args.x, args.out)
    }

    fn mla_plan(&self, spec: &MlaSpec, capacity: &AttentionCapacity) -> Result<CudaMlaPlan> {
        spec.check_expanded()?;
        self.mla_supports(spec).require("mla", self, spec)?;
        spec.attention.kv.cache_bytes(capacity.cache_blocks)?;
        let over_latents = spec.attention.clone().with_dtype(DType::F32);
        let plan = CudaAttentionPlan::new(self, "mla", &over_latents, capacity, Parted::All)?;
        Ok(CudaMlaPlan { mla: spec.clone(), plan })
    }

    fn mla_workspace(&self, plan: &CudaMlaPlan) -> u64 {
        expanded::workspace(plan)
    }

    fn mla_update(
        &self,
        stream: &mut CudaStream,
        plan: &mut CudaMlaPlan,
        step: &Checked<AttentionStep<'_>, AttentionLimits>,
    ) -> Result<()> {
        step.checked_against("mla", &plan.limits())?;
        plan.plan.update(stream, "mla", step)
    }

    fn mla(&self, stream: &mut CudaStream, args: Checked<MlaArgs<'_, Self>>) -> Result<()> {
        let &MlaArgs { plan, cache, layer, weights, q, state_in, out, sinks, log_sum_exp } = &*args;
        let tensors = RowTensors { q, state_in, out, sinks, log_sum_exp };
        expanded::run(stream, plan, weights, (cache, layer), tensors)
    }
}
