//! Which tensors a model has, and their shapes: all are checked before anything is converted.

use super::{ModelConfig, ModelError, rope_factors};
use crate::gguf::GgufFile;
use crate::quoted::quoted;
use std::collections::BTreeMap;

/// The names of one layer's tensors.
pub(super) fn layer_tensor(layer: usize, name: &str) -> String {
    format!("blk.{layer}.{name}.weight")
}

/// A layer's tensors and their shapes, `[rows, columns]`.
fn layer_shapes(config: &ModelConfig) -> [(&'static str, Vec<usize>); 9] {
    let (hidden, ffn) = (config.hidden, config.ffn);
    let (query, kv) = (config.query_width(), config.kv_width());
    [
        ("attn_norm", vec![hidden]),
        ("attn_q", vec![query, hidden]),
        ("attn_k", vec![kv, hidden]),
        ("attn_v", vec![kv, hidden]),
        ("attn_output", vec![hidden, query]),
        ("ffn_norm", vec![hidden]),
        ("ffn_gate", vec![ffn, hidden]),
        ("ffn_up", vec![ffn, hidden]),
        ("ffn_down", vec![hidden, ffn]),
    ]
}

/// Checks that the file has every tensor in its shape, and none that would be passed over.
pub(super) fn check_tensors(file: &GgufFile, config: &ModelConfig) -> Result<(), ModelError> {
    let table = vec![config.vocabulary, config.hidden];
    let mut expected = BTreeMap::from([
        ("token_embd.weight".to_owned(), table.clone()),
        ("output_norm.weight".to_owned(), vec![config.hidden]),
    ]);
    if !config.tied {
        expected.insert("output.weight".to_owned(), table);
    }
    if file.tensor_info(rope_factors::TENSOR).is_some() {
        expected.insert(rope_factors::TENSOR.to_owned(), vec![config.rotary_dim / 2]);
    }
    for layer in 0..config.layers {
        for (name, shape) in layer_shapes(config) {
            let tensor = layer_tensor(layer, name);
            // Here and not in the loop below: a file that claims a thousand layers more than it has ends at the first.
            check_tensor(file, &tensor, &shape)?;
            expected.insert(tensor, shape);
        }
    }
    for (tensor, shape) in &expected {
        check_tensor(file, tensor, shape)?;
    }
    match file.tensors().find(|tensor| !expected.contains_key(tensor.name())) {
        Some(unknown) => Err(ModelError::UnknownTensor {
            tensor: quoted(unknown.name()),
            architecture: config.architecture.clone(),
        }),
        None => Ok(()),
    }
}

fn check_tensor(file: &GgufFile, tensor: &str, expected: &[usize]) -> Result<(), ModelError> {
    let Some(info) = file.tensor_info(tensor) else {
        return Err(ModelError::MissingTensor { tensor: tensor.to_owned(), expected: expected.to_vec() });
    };
    if info.shape() == expected {
        return Ok(());
    }
    Err(ModelError::TensorShape {
        tensor: tensor.to_owned(),
        expected: expected.to_vec(),
        got: info.shape().to_vec(),
    })
}
