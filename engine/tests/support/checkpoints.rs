//! The tiny checkpoints of `fixtures/models`, and what `transformers` computes from them.

use std::path::PathBuf;

/// Folders of `fixtures/models` whose logits come from the model as `transformers` has it.
pub(crate) const FAMILIES: [&str; 11] = [
    "llama2",
    "llama3",
    "mistral",
    "mixtral",
    "qwen2",
    "qwen3",
    "qwen3-moe",
    "smollm2",
    "gemma2",
    "gemma3",
    "gemma3-vision",
];

pub(crate) fn checkpoint(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "fixtures", "models", name].iter().collect()
}

pub(crate) fn tokens(name: &str) -> Vec<u32> {
    serde_json::from_slice(&std::fs::read(checkpoint(name).join("tokens.json")).unwrap()).unwrap()
}

/// `[tokens][vocabulary]`.
pub(crate) fn expected_logits(name: &str, vocabulary: usize) -> Vec<Vec<f32>> {
    let bytes = std::fs::read(checkpoint(name).join("logits.f32")).unwrap();
    let values: Vec<f32> = bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    values.chunks_exact(vocabulary).map(<[f32]>::to_vec).collect()
}
