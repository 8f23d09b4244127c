//! Llama 3's rope scaling, which GGUF files give as a tensor of divisors instead of its parameters.

use super::{ModelConfig, ModelError};
use crate::Result;
use crate::gguf::GgufFile;
use halite_kernels::rope::RopeScaling;

/// Divisors of the frequencies, `[rotary_dim / 2]`.
pub(super) const TENSOR: &str = "rope_freqs.weight";

/// Every Llama from 3.1 on was trained with these.
const LOW_FREQ_FACTOR: f32 = 1.0;
const HIGH_FREQ_FACTOR: f32 = 4.0;
const ORIGINAL_CONTEXT: u32 = 8192;

/// The tensor is F32 and was computed in F32.
const TOLERANCE: f64 = 1e-4;

/// Sets the scaling whose divisors are those of the file: the largest one is its factor, and the others must follow
/// from it.
pub(super) fn apply(file: &GgufFile, config: &mut ModelConfig) -> Result<()> {
    let tensor = file.tensor(TENSOR)?;
    let [kind] = config.attention_kinds.as_slice() else {
        let what = "rope scaling by divisors, with layers of two kinds";
        return Err(ModelError::Unsupported { what, key: TENSOR.to_owned(), got: "both".to_owned() }.into());
    };
    let expected = [kind.rope.rotary_dim / 2];
    if tensor.shape() != expected {
        let (tensor, expected, got) = (TENSOR.to_owned(), expected.to_vec(), tensor.shape().to_vec());
        return Err(ModelError::TensorShape { tensor, expected, got }.into());
    }
    let divisors = tensor.to_f32()?;
    let unsupported = |got: String| {
        let what = "rope scaling by divisors that are not those of Llama 3";
        ModelError::Unsupported { what, key: TENSOR.to_owned(), got }
    };
    if kind.rope.scaling != RopeScaling::None {
        return Err(unsupported(format!("together with {:?}", kind.rope.scaling)).into());
    }
    let factor = divisors.iter().copied().fold(1.0, f32::max);
    let scaling = RopeScaling::Llama3 {
        factor,
        low_freq_factor: LOW_FREQ_FACTOR,
        high_freq_factor: HIGH_FREQ_FACTOR,
        original_context: ORIGINAL_CONTEXT,
    };
    let plain = config.rope(kind, config.context);
    let scaled = plain.clone().with_scaling(scaling.clone());
    scaled.check()?;
    let expected =
        plain.frequencies().into_iter().zip(scaled.frequencies()).map(|(plain, scaled)| plain / scaled);
    for (pair, (&got, expected)) in divisors.iter().zip(expected).enumerate() {
        // A NaN is within nothing.
        let within = (f64::from(got) / expected - 1.0).abs() <= TOLERANCE;
        if !within {
            return Err(unsupported(format!("{got} for pair {pair}, not {expected:.6}")).into());
        }
    }
    for kind in &mut config.attention_kinds {
        kind.rope.scaling = scaling.clone();
    }
    Ok(())
}
