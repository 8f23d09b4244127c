//! Linear layers: `out = epilogue(x · Wᵀ)` with weights packed once, for any number of rows.
//!
//! W8A8 (per-token activations, per-channel weights; Xiao et al. 2022, arXiv:2211.10438, equation 2):
//! `y[t, n] = (Σ_k q_x[t, k] · q_w[n, k]) · s_w[n] · s_x[t]`, the sum exact in i32.
//!
//! The epilogue, in this order: scales, `+ bias[n]`, activation or gate, soft-cap, `+ residual[t, n]`, rounding to the
//! output type. A gated layer has `2 · out_features` weight rows, the gate's first, and gives `act(gate) · up`.

mod args;
mod epilogue;
mod spec;
mod weights;

pub use args::{Activations, LinearArgs};
pub use epilogue::Epilogue;
pub use spec::{ActivationFormat, LinearSpec, MAX_INT8_IN_FEATURES, WeightFormat};
pub use weights::HostWeights;

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
