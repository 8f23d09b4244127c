//! The families of models that the decoder runs, and what each of them fixes.

use halite_kernels::activation::Activation;

/// Architectures that are built in, as model files name them.
pub const ARCHITECTURES: &str = "llama (Llama 2 and 3, SmolLM2), mistral, mixtral, qwen2, qwen3, qwen3_moe, gemma2, gemma3 (its text model)";

/// A family: the same operators in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// Llama 2 and 3 (arXiv:2307.09288, arXiv:2407.21783), SmolLM2.
    Llama,
    /// Mistral (arXiv:2310.06825): Llama with windows.
    Mistral,
    /// Mixtral (arXiv:2401.04088): experts. As GGUF these files call themselves `llama`.
    Mixtral,
    /// Qwen2 and 2.5 (arXiv:2407.10671): biases.
    Qwen2,
    /// Qwen3 (arXiv:2505.09388): norms of heads instead.
    Qwen3,
    /// Qwen3's mixtures of experts.
    Qwen3Moe,
    /// Gemma 2 (arXiv:2408.00118): norms on both sides, soft-caps, every other layer with a window.
    Gemma2,
    /// Gemma 3 (arXiv:2503.19786): norms of heads instead of soft-caps, five of six layers with a window.
    Gemma3,
}

impl Family {
    /// The family of an architecture's name.
    pub(super) fn of(architecture: &str) -> Option<Self> {
        Some(match architecture {
            "llama" => Self::Llama,
            "mistral" => Self::Mistral,
            "mixtral" => Self::Mixtral,
            "qwen2" => Self::Qwen2,
            "qwen3" => Self::Qwen3,
            "qwen3_moe" | "qwen3moe" => Self::Qwen3Moe,
            "gemma2" => Self::Gemma2,
            "gemma3" | "gemma3_text" => Self::Gemma3,
            _ => return None,
        })
    }

    pub(super) fn is_gemma(self) -> bool {
        matches!(self, Self::Gemma2 | Self::Gemma3)
    }

    pub(super) fn activation(self) -> Activation {
        if self.is_gemma() { Activation::GeluTanh } else { Activation::Silu }
    }

    pub(super) fn qkv_bias(self) -> bool {
        self == Self::Qwen2
    }

    pub(super) fn head_norms(self) -> bool {
        matches!(self, Self::Qwen3 | Self::Qwen3Moe | Self::Gemma3)
    }

    pub(super) fn post_norms(self) -> bool {
        self.is_gemma()
    }

    pub(super) fn embedding_scale(self, hidden: usize) -> f32 {
        if self.is_gemma() { (hidden as f32).sqrt() } else { 1.0 }
    }

    /// Which layers have a window where a file gives a window and does not name its layers: `layer % period != period - 1`.
    pub(super) fn window_period(self) -> Option<usize> {
        match self {
            Self::Gemma2 => Some(2),
            Self::Gemma3 => Some(6),
            _ => None,
        }
    }
}
