//! Linear layers: `out = epilogue(x · Wᵀ)` with weights packed once, for any number of rows.
//!
//! W8A8 (per-token activations, per-channel weights; Xiao et al. 2022, arXiv:2211.10438, equation 2):
//! `y[t, n] = (Σ_k q_x[t, k] · q_w[n, k]) · s_w[n] · s_x[t]`, the sum exact in i32.
//!
//! Other formats of integers, with `s_x` and `z_x` of a row, of all rows or of a group of columns, `z_w` of a channel:
//!
//! - zero points (Jacob et al. 2017, arXiv:1712.05877, equation 7), exact in i32, not folded into a bias:
//!   `Σ_k (q_x - z_x) · (q_w - z_w) = Σ q_x q_w - z_x · Σ_k (q_w - z_w) - z_w · Σ_k q_x`;
//! - groups along K: `y[t, n] = (Σ_g f32(Σ_{k in g} q_x · q_w) · s_x[t, g]) · s_w[n]`, groups in ascending order;
//! - outlier columns in float (LLM.int8(), Dettmers et al. 2022, arXiv:2208.07339): a fixed list of input columns whose
//!   integer weights count as zero; `y = y + Σ_j x[t, c_j] · w[n, c_j]` after the scales, one F32 sum in the order of
//!   the list. They go with every pair of integers, scales along K included: there neither their integers nor their
//!   group's minimum count.
//!
//! Weights with scales along K, `w[n, k] = s[n, g] · (q[n, k] - z[n, g]) + m[n, g]` (see [`WeightFormat`]), times INT8:
//! `y[t, n] = (Σ_g d[t, n, g] · s[n, g] + x[t, g] · m[n, g]) · s_x[t]`, where `d = Σ q_x · (q - z)` and `x = Σ q_x` over a
//! group are exact in i32; activations with groups of their own have `s_x[t, g]` inside the sum. Integer weights times
//! floats: `y[t, n] = Σ_k x[t, k] · w[n, k]`, with `w` in F32. docs/numerics.md has the order of the operations.
//!
//! Smoothing factors (arXiv:2211.10438) and rotations (arXiv:2404.00456) change activations before they are quantised and
//! weights before they are packed: see [`quantize`](crate::quantize).
//!
//! The epilogue, in this order: scales, outliers, `+ bias[n]`, activation or gate, soft-cap, `+ residual[t, n]`, rounding
//! to the output type or, for I8 and U8, division by the static [`OutputScale`] and saturation. A gated layer has
//! `2 · out_features` weight rows, the gate's first, and gives `act(gate) · up`.

mod activations;
mod args;
pub mod blocks;
mod epilogue;
mod format;
mod groups;
pub mod lora;
mod spec;
mod weights;

pub use activations::{ActivationFormat, Activations, Quantized};
pub use args::LinearArgs;
pub use blocks::{BLOCK_GROUP, BlockSize, BlockValues};
pub use epilogue::{Epilogue, OutputScale};
pub use format::{GROUP_STEP, GroupOffset, WeightFormat};
pub use groups::GroupFactors;
pub use lora::{Lora, LoraAdapter, LoraArgs, LoraLimits, LoraPlan, LoraSpec, LoraStep};
pub use spec::{LinearSpec, MAX_INT8_IN_FEATURES, OutlierSpec};
pub use weights::{GroupOffsets, HostWeights};

use crate::{Checked, Support, check::Check};
use halite_hal::{Device, Result};

const CHECK: Check = Check("linear");

/// The family's trait.
pub trait Linear: Device {
    /// Packed weights: they remember their spec and layout, and serve every number of rows.
    type Packed: AsRef<LinearSpec> + Clone + std::fmt::Debug + Send + Sync + 'static;

    /// Whether and how the backend runs `spec`.
    fn linear_supports(&self, spec: &LinearSpec) -> Support;

    /// Packs weights for this device, once.
    ///
    /// # Errors
    /// An unsupported spec, or no memory.
    fn linear_pack(
        &self,
        stream: &mut Self::Stream,
        weights: Checked<HostWeights<'_>, &LinearSpec>,
    ) -> Result<Self::Packed>;

    /// The packed bytes, with a header that names spec and layout.
    ///
    /// # Errors
    /// The device's.
    fn linear_save(&self, stream: &mut Self::Stream, packed: &Self::Packed) -> Result<Vec<u8>>;

    /// Takes back what [`Linear::linear_save`] gave.
    ///
    /// # Errors
    /// [`Error::Layout`](crate::Error::Layout) where the bytes were saved for another spec, layout or kernel family,
    /// or are damaged in length.
    fn linear_restore(
        &self,
        stream: &mut Self::Stream,
        spec: &LinearSpec,
        saved: &[u8],
    ) -> Result<Self::Packed>;

    /// Scratch bytes of a call of up to `max_rows` rows, exact, or a bound where a vendor decides.
    fn linear_workspace(&self, packed: &Self::Packed, max_rows: usize) -> u64;

    /// Runs it.
    ///
    /// # Errors
    /// The device's.
    fn linear(&self, stream: &mut Self::Stream, args: Checked<LinearArgs<'_, Self>>) -> Result<()>;
}
