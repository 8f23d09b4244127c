//! `config.json` in its older form, with what published files leave out, and what is refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

mod support;

use halite_engine::model_file::{ModelConfig, ModelFile, ModelFolder};
use halite_engine::{EngineError, Result};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;
use support::checkpoints::checkpoint;
use tempfile::TempDir;

/// A copy of a checkpoint whose `config.json` was changed.
fn changed(name: &str, change: impl FnOnce(&mut Map<String, Value>)) -> TempDir {
    let folder = TempDir::new().unwrap();
    for file in fs::read_dir(checkpoint(name)).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
    }
    let path = folder.path().join("config.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(config.as_object_mut().unwrap());
    fs::write(&path, config.to_string()).unwrap();
    folder
}

fn read(folder: &Path) -> Result<ModelConfig> {
    ModelFolder::open(folder)?.config()
}

fn refused(name: &str, change: impl FnOnce(&mut Map<String, Value>), parts: &[&str]) {
    let error: EngineError = read(changed(name, change).path()).expect_err(&format!("{parts:?}"));
    for part in parts {
        assert!(error.to_string().contains(part), "`{error}` does not name `{part}`");
    }
}

fn remove(config: &mut Map<String, Value>, keys: &[&str]) {
    keys.iter().for_each(|key| drop(config.remove(*key).unwrap_or_else(|| panic!("no {key}"))));
}

fn set(config: &mut Map<String, Value>, pairs: &[(&str, Value)]) {
    config.extend(pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
}

/// Version 4 of `transformers` had the rotation in keys of its own, and no list of the layers' kinds.
#[test]
fn the_older_form_means_the_same() {
    type Change = fn(&mut Map<String, Value>);
    let forms: [(&str, Change); 6] = [
        ("llama2", |config| {
            remove(config, &["rope_parameters", "head_dim", "tie_word_embeddings"]);
            set(config, &[("rope_theta", json!(10000)), ("rope_scaling", Value::Null)]);
        }),
        ("llama3", |config| {
            remove(config, &["rope_parameters"]);
            let scaling = json!({
                "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                "original_max_position_embeddings": 32, "rope_type": "llama3"
            });
            set(config, &[("rope_theta", json!(10000.0)), ("rope_scaling", scaling)]);
        }),
        ("qwen2", |config| {
            remove(config, &["rope_parameters", "layer_types"]);
            set(config, &[("rope_theta", json!(1e6)), ("max_window_layers", json!(2))]);
        }),
        ("gemma2", |config| {
            remove(config, &["rope_parameters", "layer_types"]);
            set(config, &[("hidden_act", json!("gelu_pytorch_tanh"))]);
        }),
        ("gemma3", |config| {
            remove(config, &["rope_parameters", "layer_types"]);
            config.remove("_sliding_window_pattern");
            set(
                config,
                &[
                    ("rope_theta", json!(1_000_000.0)),
                    ("rope_local_base_freq", json!(10000.0)),
                    ("rope_scaling", json!({"rope_type": "linear", "factor": 8.0})),
                    ("sliding_window_pattern", json!(6)),
                ],
            );
        }),
        ("gemma3-vision", |config| {
            // What is by default is left out.
            let text = config["text_config"].as_object_mut().unwrap();
            remove(text, &["rope_parameters", "layer_types", "rms_norm_eps", "tie_word_embeddings"]);
            set(text, &[("rope_scaling", json!({"rope_type": "linear", "factor": 8.0}))]);
        }),
    ];
    for (name, change) in forms {
        let expected = read(&checkpoint(name)).unwrap();
        assert_eq!(read(changed(name, change).path()).unwrap(), expected, "{name}");
    }
}

#[test]
fn windows_that_are_switched_off_are_none() {
    let off = changed("qwen2", |config| {
        config.remove("layer_types");
        set(config, &[("use_sliding_window", json!(false))]);
    });
    let config = read(off.path()).unwrap();
    assert!(config.attention_kinds.iter().all(|kind| kind.window.is_none()));
    let off = changed("mistral", |config| set(config, &[("sliding_window", Value::Null)]));
    assert!(read(off.path()).unwrap().attention_kinds[0].window.is_none());
}

#[test]
fn what_is_not_built_in_is_refused_by_name() {
    let name = |what: &'static str| {
        move |config: &mut Map<String, Value>| set(config, &[("model_type", json!(what))])
    };
    refused("llama2", name("mamba"), &["mamba", "supported", "qwen3"]);
    refused("llama2", |config| drop(config.remove("model_type")), &["config.json", "model_type"]);
    for (checkpoint, key, value, part) in [
        ("llama2", "attention_bias", json!(true), "attention_bias"),
        ("llama2", "mlp_bias", json!(true), "mlp_bias"),
        ("llama2", "hidden_act", json!("relu"), "hidden_act"),
        ("llama2", "rope_scaling", json!({"rope_type": "yarn", "factor": 4.0}), "yarn"),
        ("llama2", "rope_scaling", json!({"type": "dynamic", "factor": 4.0}), "dynamic"),
        ("llama2", "rope_scaling", json!({"rope_type": "linear"}), "factor"),
        ("llama2", "partial_rotary_factor", json!(0.5), "partial_rotary_factor"),
        ("gemma3", "layer_types", json!(["full_attention"]), "layer_types"),
        (
            "qwen3",
            "layer_types",
            json!(["full_attention", "linear_attention", "full_attention"]),
            "linear_attention",
        ),
        ("gemma3", "use_bidirectional_attention", json!(true), "bidirectional"),
    ] {
        let change = |config: &mut Map<String, Value>| {
            if key == "rope_scaling" {
                config.remove("rope_parameters");
            }
            set(config, &[(key, value)]);
        };
        refused(checkpoint, change, &[part, "config.json"]);
    }
}

#[test]
fn values_that_make_no_sense_are_refused_by_key() {
    for key in
        ["num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "rms_norm_eps"]
    {
        for bad in [json!(0), json!(-1), json!("3"), json!([]), json!(1e300)] {
            refused("llama2", |config| set(config, &[(key, bad)]), &[key, "config.json"]);
        }
    }
    for key in ["num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size"] {
        refused("llama2", |config| set(config, &[(key, json!(u64::MAX))]), &[key, "config.json"]);
        refused("mistral", |config| drop(config.remove(key)), &[key, "missing"]);
    }
    refused(
        "llama2",
        |config| set(config, &[("num_key_value_heads", json!(3))]),
        &["num_key_value_heads", "divisor"],
    );
    refused("llama2", |config| set(config, &[("head_dim", json!(7))]), &["head_dim", "even"]);
    refused("llama2", |config| set(config, &[("hidden_size", json!(50))]), &["50"]);
    refused("llama2", |config| set(config, &[("num_hidden_layers", json!(4))]), &["layers.3", "missing"]);
    refused("llama2", |config| set(config, &[("num_hidden_layers", json!(2))]), &["layers.2"]);
    refused("qwen2", |config| set(config, &[("model_type", json!("llama"))]), &["self_attn.k_proj.bias"]);
}

#[test]
fn other_quantisations_are_refused_by_key() {
    let edit = |path: &'static str, value: Value| {
        move |config: &mut Map<String, Value>| {
            *config["quantization_config"].pointer_mut(path).expect(path) = value;
        }
    };
    for (path, value, part) in [
        ("/quant_method", json!("gptq"), "quant_method"),
        ("/format", json!("pack-quantized"), "format"),
        ("/kv_cache_scheme", json!({"num_bits": 8}), "kv_cache_scheme"),
        ("/transform_config", json!({"config_groups": {"R1": {"type": "hadamard"}}}), "transform_config"),
        ("/config_groups", Value::Null, "config_groups"),
        ("/config_groups/group_0/weights/num_bits", json!(4), "num_bits"),
        ("/config_groups/group_0/weights/strategy", json!("group"), "strategy"),
        ("/config_groups/group_0/weights/symmetric", json!(false), "symmetric"),
        ("/config_groups/group_0/input_activations/dynamic", json!(false), "dynamic"),
        ("/config_groups/group_0/input_activations/strategy", json!("tensor"), "strategy"),
        ("/config_groups/group_0/input_activations", Value::Null, "input_activations"),
        ("/config_groups/group_0/output_activations", json!({"num_bits": 8}), "output_activations"),
    ] {
        refused("w8a8", edit(path, value), &[part, "quantization_config"]);
    }
    // Without a word about it, INT8 weights are nothing to guess at.
    let folder = changed("w8a8", |config| remove(config, &["quantization_config"]));
    let error = read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("type I8") && error.contains("config.json"), "{error}");
}

/// A folder from a stranger must not hand out files of this machine.
#[cfg(unix)]
#[test]
fn links_out_of_the_folder_are_not_followed() {
    for name in [
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "chat_template.jinja",
    ] {
        let folder = changed("llama2", |_| {});
        let outside = TempDir::new().unwrap();
        let (path, target) = (folder.path().join(name), outside.path().join("file"));
        let text = fs::read(&path).unwrap_or_default();
        fs::write(&target, text).unwrap();
        _ = fs::remove_file(&path);
        std::os::unix::fs::symlink(&target, &path).unwrap();
        let file = ModelFolder::open(folder.path());
        let error = match &file {
            Err(error) => error.to_string(),
            Ok(file) => {
                file.texts().map(drop).and_then(|()| file.generation().map(drop)).unwrap_err().to_string()
            }
        };
        assert!(error.contains(name) && error.contains("link"), "{name}: {error}");
        // Within the folder a link is as good as the file.
        fs::remove_file(&path).unwrap();
        fs::rename(&target, folder.path().join("file")).unwrap();
        std::os::unix::fs::symlink("file", &path).unwrap();
        let file = ModelFolder::open(folder.path()).unwrap();
        file.texts().unwrap();
        file.generation().unwrap();
    }
}

/// Types are known before anything is converted.
#[test]
fn elements_that_are_not_read_are_refused_by_name() {
    let folder = changed("llama2", |_| {});
    let path = folder.path().join("model.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    let entry = br#""lm_head.weight":{"dtype":""#;
    let at = bytes.windows(entry.len()).position(|window| window == entry).unwrap() + entry.len();
    bytes[at..at + 3].copy_from_slice(b"I32");
    fs::write(&path, bytes).unwrap();
    let error = read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("lm_head.weight") && error.contains("I32") && error.contains("BF16"), "{error}");
}

#[test]
fn a_folder_without_its_files_says_which() {
    let empty = TempDir::new().unwrap();
    let error = ModelFolder::open(empty.path()).unwrap_err().to_string();
    assert!(error.contains("config.json") && error.contains(".gguf"), "{error}");
    fs::write(empty.path().join("config.json"), "{").unwrap();
    assert!(ModelFolder::open(empty.path()).unwrap_err().to_string().contains("config.json"));
    fs::write(empty.path().join("config.json"), "[1]").unwrap();
    assert!(ModelFolder::open(empty.path()).unwrap_err().to_string().contains("config.json"));
}

/// What is wrong with a folder, whichever part of it is asked for.
fn faults(folder: &Path) -> Vec<String> {
    let opened = match ModelFolder::open(folder) {
        Ok(opened) => opened,
        Err(error) => return vec![error.to_string()],
    };
    let errors = [opened.config().err(), opened.texts().err(), opened.generation().err()];
    errors.into_iter().flatten().map(|error| error.to_string()).collect()
}

#[test]
fn what_is_no_regular_file_is_not_read() {
    for name in [
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "chat_template.jinja",
    ] {
        let folder = changed("llama2", |_| {});
        let path = folder.path().join(name);
        _ = fs::remove_file(&path);
        fs::create_dir(&path).unwrap();
        let found = faults(folder.path());
        assert!(found.iter().any(|it| it.contains(name) && it.contains("no regular file")), "{found:?}");
        // What stands for all devices and pipes: to open some of them waits for ever.
        #[cfg(unix)]
        {
            fs::remove_dir(&path).unwrap();
            std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
            let found = faults(folder.path());
            assert!(found.iter().any(|it| it.contains(name) && it.contains("no regular file")), "{found:?}");
        }
    }
}

#[test]
fn errors_do_not_repeat_the_file() {
    let long = "x".repeat(100_000);
    for (name, text) in [
        ("config.json", format!(r#"{{"model_type": "{long}"}}"#)),
        ("config.json", format!(r#"{{"model_type": "llama", "hidden_size": "{long}"}}"#)),
        ("config.json", format!(r#""{long}""#)),
        ("generation_config.json", format!(r#"{{"eos_token_id": ["{long}"]}}"#)),
        ("generation_config.json", format!(r#"{{"top_p": "{long}"}}"#)),
        ("tokenizer.json", format!(r#"{{"added_tokens": "{long}"}}"#)),
        ("tokenizer.json", format!(r#"{{"model": {{"type": "{long}", "vocab": {{}}}}}}"#)),
        ("tokenizer_config.json", format!(r#"{{"added_tokens_decoder": "{long}"}}"#)),
        ("special_tokens_map.json", format!(r#""{long}""#)),
        ("model.safetensors.index.json", format!(r#"{{"weight_map": "{long}"}}"#)),
    ] {
        let folder = changed("llama2", |_| {});
        fs::write(folder.path().join(name), text).unwrap();
        if name.ends_with("index.json") {
            fs::remove_file(folder.path().join("model.safetensors")).unwrap();
        }
        let found = faults(folder.path());
        assert!(!found.is_empty(), "{name}");
        assert!(found.iter().all(|fault| fault.len() < 1000), "{name}: {found:?}");
    }
}
