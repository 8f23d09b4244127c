//! Latent attention: not begun, so there are no packed weights and no plans.

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    attention::{AttentionCapacity, AttentionLimits, AttentionPlan, AttentionSpec, AttentionStep},
    mla::{AbsorbArgs, LatentAttention, MlaArgs, MlaPlan, MlaSpec, MlaWeights, UpProjectArgs},
};

use crate::{device::Ascend, stream::AscendStream, support::unsupported};

/// What is missing.
const MISSING: &str = "caches of latent keys are not written yet, and neither MlaProlog nor FusedInferAttentionScore with \
                       rope beside the head is called";

/// Packed weights; none can be made yet.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AscendMlaPacked {}

impl AsRef<MlaSpec> for AscendMlaPacked {
    fn as_ref(&self) -> &MlaSpec {
        match *self {}
    }
}

/// A plan; none can be made yet.
#[derive(Debug)]
#[non_exhaustive]
pub enum AscendMlaPlan {}

impl AttentionPlan for AscendMlaPlan {
    fn spec(&self) -> &AttentionSpec {
        match *self {}
    }

    fn capacity(&self) -> &AttentionCapacity {
        match *self {}
    }

    fn tokens(&self) -> usize {
        match *self {}
    }
}

impl MlaPlan for AscendMlaPlan {
    fn mla(&self) -> &MlaSpec {
        match *self {}
    }
}

impl LatentAttention for Ascend {
    type MlaPacked = AscendMlaPacked;
    type MlaPlan = AscendMlaPlan;

    fn mla_supports(&self, _: &MlaSpec) -> Support {
        Support::No(MISSING.to_owned())
    }

    fn mla_pack(
        &self,
        _: &mut AscendStream,
        weights: Checked<MlaWeights<'_>, &MlaSpec>,
    ) -> Result<AscendMlaPacked> {
        Err(unsupported("mla", MISSING, weights.context()))
    }

    fn mla_save(&self, _: &mut AscendStream, packed: &AscendMlaPacked) -> Result<Vec<u8>> {
        match *packed {}
    }

    fn mla_restore(&self, _: &mut AscendStream, spec: &MlaSpec, _saved: &[u8]) -> Result<AscendMlaPacked> {
        Err(unsupported("mla", MISSING, spec))
    }

    fn absorb(&self, _: &mut AscendStream, args: Checked<AbsorbArgs<'_, Self>>) -> Result<()> {
        match *args.weights {}
    }

    fn up_project(&self, _: &mut AscendStream, args: Checked<UpProjectArgs<'_, Self>>) -> Result<()> {
        match *args.weights {}
    }

    fn mla_plan(&self, spec: &MlaSpec, _: &AttentionCapacity) -> Result<AscendMlaPlan> {
        Err(unsupported("mla", MISSING, spec))
    }

    fn mla_workspace(&self, plan: &AscendMlaPlan) -> u64 {
        match *plan {}
    }

    fn mla_update(
        &self,
        _: &mut AscendStream,
        plan: &mut AscendMlaPlan,
        _: &Checked<AttentionStep<'_>, AttentionLimits>,
    ) -> Result<()> {
        match *plan {}
    }

    fn mla(&self, _: &mut AscendStream, args: Checked<MlaArgs<'_, Self>>) -> Result<()> {
        match *args.plan {}
    }
}
