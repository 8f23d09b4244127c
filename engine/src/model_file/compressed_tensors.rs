//! W8A8 weights in the layout of the compressed-tensors package: an I8 matrix and a scale a row beside it.

use super::ModelError;
use super::json::JsonObject;
use crate::Result;
use crate::quoted::quoted;
use crate::safetensors::SafetensorsView;
use serde_json::Value;

/// The one scheme that is read: INT8 weights, symmetric, a scale an output channel; activations INT8, symmetric,
/// quantised per token as they come.
#[derive(Debug)]
pub(super) struct CompressedTensors;

/// What the scheme of a group of layers must say, by key.
const WEIGHTS: &[(&str, &[&str])] =
    &[("num_bits", &["8"]), ("type", &["\"int\""]), ("symmetric", &["true"]), ("strategy", &["\"channel\""])];
const ACTIVATIONS: &[(&str, &[&str])] = &[
    ("num_bits", &["8"]),
    ("type", &["\"int\""]),
    ("symmetric", &["true"]),
    ("strategy", &["\"token\""]),
    ("dynamic", &["true"]),
];

impl CompressedTensors {
    /// Reads `quantization_config`; `None`: the weights are floats.
    pub(super) fn read(config: &JsonObject) -> Result<Option<Self>> {
        // Older files have it under the second name.
        let quantization = match config.opt_object("quantization_config")? {
            Some(quantization) => quantization,
            None => match config.opt_object("compression_config")? {
                Some(quantization) => quantization,
                None => return Ok(None),
            },
        };
        let what = "this kind of quantisation (only W8A8 of compressed-tensors is read)";
        require(&quantization, &[("quant_method", &["\"compressed-tensors\""])], what)?;
        require(&quantization, &[("format", &["\"int-quantized\""])], what)?;
        if quantization.get("kv_cache_scheme").is_some() {
            return Err(unsupported(&quantization, "kv_cache_scheme", "a quantised KV cache"));
        }
        // Rotations that activations have to go through as well.
        if quantization.opt_object("transform_config")?.is_some_and(|it| it.entries().next().is_some()) {
            return Err(unsupported(&quantization, "transform_config", "transforms beside the quantisation"));
        }
        let groups = quantization.opt_object("config_groups")?;
        let groups = groups.ok_or_else(|| unsupported(&quantization, "config_groups", what))?;
        for (name, _) in groups.entries() {
            let Some(group) = groups.opt_object(name)? else { continue };
            for (part, scheme) in [("weights", WEIGHTS), ("input_activations", ACTIVATIONS)] {
                let Some(settings) = group.opt_object(part)? else {
                    return Err(unsupported(&group, part, what));
                };
                require(&settings, scheme, what)?;
            }
            if group.get("output_activations").is_some() {
                return Err(unsupported(&group, "output_activations", "quantised outputs"));
            }
        }
        Ok(Some(Self))
    }

    /// What the scales of a weight are called.
    pub(super) fn scale_name(weight: &str) -> String {
        format!("{weight}_scale")
    }

    /// Whether a tensor belongs to a quantised weight.
    pub(super) fn is_scale(name: &str) -> bool {
        name.ends_with(".weight_scale")
    }

    /// The scales of a weight, `[rows]`, from a tensor of `[rows, 1]` or `[rows]`.
    pub(super) fn scales(weight: &SafetensorsView<'_>, scales: SafetensorsView<'_>) -> Result<Vec<f32>> {
        let rows = weight.shape().first().copied().unwrap_or(0);
        if !(scales.shape() == [rows, 1] || scales.shape() == [rows]) {
            let (tensor, got) = (scales.name().to_owned(), scales.shape().to_vec());
            return Err(ModelError::TensorShape { tensor, expected: vec![rows, 1], got }.into());
        }
        let values = scales.to_f32()?;
        match values.iter().position(|scale| !(scale.is_finite() && *scale > 0.0)) {
            Some(row) => Err(ModelError::Value {
                key: scales.name().to_owned(),
                expected: "finite scales above 0".to_owned(),
                got: format!("{} in row {row}", values[row]),
            }
            .into()),
            None => Ok(values),
        }
    }
}

/// Each key must have one of its values. Values are compared as JSON texts.
fn require(object: &JsonObject, scheme: &[(&str, &[&str])], what: &'static str) -> Result<()> {
    for (key, allowed) in scheme {
        let found = object.get(key).map(Value::to_string);
        if !found.is_some_and(|found| allowed.contains(&found.as_str())) {
            return Err(unsupported(object, key, what));
        }
    }
    Ok(())
}

fn unsupported(object: &JsonObject, key: &str, what: &'static str) -> crate::EngineError {
    let got = object.get(key).map_or_else(|| "nothing".to_owned(), |value| quoted(&value.to_string()));
    ModelError::Unsupported { what, key: object.key(key), got }.into()
}
