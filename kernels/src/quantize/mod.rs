//! Quantisation of rows to integers, round to nearest even, in every format that [`linear`](crate::linear) reads.
//!
//! All of it is F32 arithmetic in the order given here, so that every backend with IEEE division gives the same bits.
//! First, in this order: columns divided by their smoothing factor (SmoothQuant, Xiao et al. 2022, arXiv:2211.10438,
//! equation 3), columns kept in float set to 0 (LLM.int8(), Dettmers et al. 2022, arXiv:2208.07339), or each block of
//! columns rotated, `x · H / √block` with the Walsh-Hadamard matrix `H[i, j] = (-1)^popcount(i & j)` (QuaRot, Ashkboos
//! et al. 2024, arXiv:2404.00456). [`smoothing_factors`], [`smooth_weights`] and [`rotate_weights`] do to weights what
//! undoes it. [`RotateArgs`] is the rotation alone.
//!
//! Then, over a row, a group of its columns or all rows:
//!
//! - symmetric: `scale = max(max|x| / 127, 2^-126)`, `q = clamp(round_ties_even(x · (1 / scale)), -127, 127)`;
//! - with a zero point, for integers from `least` to `most`, 255 apart: `low = min(0, min x)`, `high = max(0, max x)`,
//!   `scale = max(high / 255 - low / 255, 2^-126)`, `zero = clamp(round_ties_even(least - low / scale), least, most)`,
//!   `q = clamp(round_ties_even(x / scale) + zero, least, most)`.
//!
//! A row of zeros gives zeros and the smallest normal scale; nothing finite gives an infinity. What shares a scale with
//! a NaN or an infinity gives zeros with a NaN scale and the zero point 0: it stays visible in every product and touches
//! nothing with another scale. A static scale cannot say so: with one, infinities saturate and a NaN gives the zero
//! point. One dynamic scale for all rows depends on all of them, and with it each row's bits on the batch.
//!
//! [Norms](crate::norm) and [activations](crate::activation) end with any of it in their own pass
//! ([`QuantizeOut`] is what they are given), but for one dynamic scale for all rows: it is known after the last of them.

mod args;
mod int4;
mod out;
mod rotate;
mod spec;
mod weights;

pub use args::QuantizeArgs;
pub use int4::{int4_per_group, quantize_int4_group};
pub use out::{QuantizeOut, QuantizeOutliers};
pub use rotate::{RotateArgs, RotateSpec, largest_rotation_block};
pub use spec::{MAX_ROTATION_BLOCK, QuantizeSpec, Rotation, ScaleSource, Smoothing};
pub use weights::{
    QuantizedWeights, per_channel, per_channel_asymmetric, per_group, quantize_row, rotate_weights,
    smooth_weights, smoothing_factors,
};

use crate::{Checked, Support, check::Check};
use halite_hal::{Device, Result};

const CHECK: Check = Check("quantize");

/// The family's trait.
pub trait Quantize: Device {
    /// Whether and how the backend runs `spec`.
    fn quantize_supports(&self, spec: &QuantizeSpec) -> Support;

    /// Scratch bytes of a call of up to `max_rows` rows, exact, or a bound where a vendor decides.
    fn quantize_workspace(&self, spec: &QuantizeSpec, max_rows: usize, columns: usize) -> u64;

    /// Runs it.
    ///
    /// # Errors
    /// An unsupported spec, or the device's.
    fn quantize(&self, stream: &mut Self::Stream, args: Checked<QuantizeArgs<'_, Self>>) -> Result<()>;

    /// Whether and how the backend runs the rotation alone.
    fn rotate_supports(&self, spec: &RotateSpec) -> Support;

    /// Runs the rotation alone.
    ///
    /// # Errors
    /// An unsupported spec, or the device's.
    fn rotate(&self, stream: &mut Self::Stream, args: Checked<RotateArgs<'_, Self>>) -> Result<()>;
}
