//! Multi-head latent attention: DeepSeek-V2 (arXiv:2405.04434, section 2.1), DeepSeek-V3 (arXiv:2412.19437).
//!
//! Keys and values of all heads are made of one latent `c` a token, of `kv_lora_rank` elements, beside which all heads
//! share one rotated key `r` of `rope_dim` elements: a cache of [`KvSpec::latent`](crate::cache::KvSpec::latent) holds
//! `[c, r]`, once. For a query `[q_n, q_r]` of head `h`, of `nope_dim` and `rope_dim` elements, and the head's
//! `W_UK [nope_dim, kv_lora_rank]` and `W_UV [value_head_dim, kv_lora_rank]`:
//! `k_j = [W_UK c_j, r_j]`, `v_j = W_UV c_j`, and then [`attention`](crate::attention), its scale `1 / √(nope_dim +
//! rope_dim)` unless the caller has another. Rotations are the caller's, of `q_r` and of `r` as it is written.
//!
//! The caller chooses between two forms of it ([`MlaForm`]), equal but for rounding:
//!
//! - **Absorbed**: `q · k_j = (W_UKᵀ q_n) · c_j + q_r · r_j` and `Σ p_j v_j = W_UV Σ p_j c_j`. [`LatentAttention::absorb`]
//!   makes queries `[W_UKᵀ q_n, q_r]`; [`Attention::attention`] by [`MlaSpec::attention`] runs with them over the latent
//!   cache, one KV head for all query heads; [`LatentAttention::up_project`] multiplies what it gives by `W_UV`. Reads the
//!   least memory: for decoding.
//! - **Expanded**: [`LatentAttention::mla`] makes each head's keys and values from the latents of the cache as it needs
//!   them. Where many query rows see the same keys it multiplies less: for prefill.
//!
//! Queries and results are of the spec's type; between the absorbed form's products they are rounded to it. In both forms a
//! call may go on from another's state ([`AttentionState`](crate::attention::AttentionState)): in the absorbed form the
//! state is [`Attention::attention`]'s, of latents.
//!
//! Both take prefill, chunks and decode in one call. A row has the same bits in every batch within a form, not across
//! the two: whoever wants the same bits throughout uses the absorbed form throughout.

mod args;
mod rows;
mod spec;
mod weights;

pub use args::{AbsorbArgs, MlaArgs, UpProjectArgs};
pub use rows::MlaRows;
pub use spec::{MlaForm, MlaSpec};
pub use weights::MlaWeights;

use crate::{
    Checked, Support,
    attention::{Attention, AttentionCapacity, AttentionLimits, AttentionPlan, AttentionStep},
    check::Check,
};
use halite_hal::Result;

const CHECK: Check = Check("mla");

/// What a backend's plan of the expanded form tells of itself. Its [`AttentionPlan::spec`] is [`MlaSpec::attention`].
pub trait MlaPlan: AttentionPlan {
    /// What it was planned for.
    fn mla(&self) -> &MlaSpec;
}

/// The family's trait.
pub trait LatentAttention: Attention {
    /// Both up-projections of a layer, packed for a form: they remember their spec and serve every number of rows.
    type MlaPacked: AsRef<MlaSpec> + Clone + std::fmt::Debug + Send + Sync + 'static;
    /// Tables of the expanded form at stable addresses.
    type MlaPlan: MlaPlan + std::fmt::Debug + Send + 'static;

    /// Whether and how the backend runs `spec`: its products, and attention in its form.
    fn mla_supports(&self, spec: &MlaSpec) -> Support;

    /// Packs weights for this device and the spec's form, once.
    ///
    /// # Errors
    /// An unsupported spec, or no memory.
    fn mla_pack(
        &self,
        stream: &mut Self::Stream,
        weights: Checked<MlaWeights<'_>, &MlaSpec>,
    ) -> Result<Self::MlaPacked>;

    /// The packed bytes, with a header that names sizes, form and layout.
    ///
    /// # Errors
    /// The device's.
    fn mla_save(&self, stream: &mut Self::Stream, packed: &Self::MlaPacked) -> Result<Vec<u8>>;

    /// Takes back what [`LatentAttention::mla_save`] gave.
    ///
    /// # Errors
    /// [`Error::Layout`](crate::Error::Layout) where the bytes were saved for other sizes, another form, layout or kernel
    /// family, or are damaged in length.
    fn mla_restore(&self, stream: &mut Self::Stream, spec: &MlaSpec, saved: &[u8])
    -> Result<Self::MlaPacked>;

    /// Queries of the absorbed form: allocates nothing.
    ///
    /// # Errors
    /// The device's.
    fn absorb(&self, stream: &mut Self::Stream, args: Checked<AbsorbArgs<'_, Self>>) -> Result<()>;

    /// What attention gave in the absorbed form, up-projected: allocates nothing.
    ///
    /// # Errors
    /// The device's.
    fn up_project(&self, stream: &mut Self::Stream, args: Checked<UpProjectArgs<'_, Self>>) -> Result<()>;

    /// Plans the expanded form for steps of up to `capacity`: allocates, once. The absorbed form's plan is
    /// [`Attention::attention_plan`]'s of [`MlaSpec::attention`].
    ///
    /// # Errors
    /// A spec that makes no sense, is of the absorbed form or not supported, or no memory.
    fn mla_plan(&self, spec: &MlaSpec, capacity: &AttentionCapacity) -> Result<Self::MlaPlan>;

    /// Scratch bytes of one call of [`LatentAttention::mla`], exact, or a bound where a vendor decides.
    fn mla_workspace(&self, plan: &Self::MlaPlan) -> u64;

    /// Uploads a step's lengths and tables: once a step.
    ///
    /// # Errors
    /// A step that was checked against another plan's capacity.
    fn mla_update(
        &self,
        stream: &mut Self::Stream,
        plan: &mut Self::MlaPlan,
        step: &Checked<AttentionStep<'_>, AttentionLimits>,
    ) -> Result<()>;

    /// Runs one layer in the expanded form: allocates nothing, waits for nothing, reads nothing back.
    ///
    /// # Errors
    /// The device's.
    fn mla(&self, stream: &mut Self::Stream, args: Checked<MlaArgs<'_, Self>>) -> Result<()>;
}
