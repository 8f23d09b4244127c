//! The families as GGUF files: the checkpoints of `fixtures/models`, laid out as the format has them.
//!
//! What differs is known from the format's public converters: query and key rows of the Llama family are permuted so
//! that pairs lie side by side, Gemma's norms have their 1 added, and Llama 3's scaling is a tensor of divisors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

mod support;

use halite_cpu::Tier;
use halite_engine::gguf::GgufFile;
use halite_engine::model_file::{ModelFile, ModelFolder};
use halite_engine::safetensors::SafetensorsFolder;
use halite_engine::{Engine, EngineOptions, WeightsFormat};
use halite_kernels::moe::RouterWeights;
use support::checkpoints::{checkpoint, expected_logits, tokens};
use support::cpu;
use support::tiny_model::{TinyModel, TinyTensor, Value};

/// A tensor's name in GGUF.
fn name(name: &str, gemma: bool) -> String {
    let name = name.strip_prefix("model.").unwrap_or(name);
    let Some(rest) = name.strip_prefix("layers.") else {
        return match name {
            "embed_tokens.weight" => "token_embd.weight",
            "norm.weight" => "output_norm.weight",
            "lm_head.weight" => "output.weight",
            other => panic!("{other}"),
        }
        .to_owned();
    };
    let (layer, rest) = rest.split_once('.').unwrap();
    let (rest, kind) = rest.rsplit_once('.').unwrap();
    let rest = match rest {
        "input_layernorm" => "attn_norm",
        "self_attn.q_proj" => "attn_q",
        "self_attn.k_proj" => "attn_k",
        "self_attn.v_proj" => "attn_v",
        "self_attn.o_proj" => "attn_output",
        "self_attn.q_norm" => "attn_q_norm",
        "self_attn.k_norm" => "attn_k_norm",
        "post_attention_layernorm" if gemma => "post_attention_norm",
        "pre_feedforward_layernorm" | "post_attention_layernorm" => "ffn_norm",
        "mlp.gate" | "block_sparse_moe.gate" => "ffn_gate_inp",
        "mlp.gate_proj" => "ffn_gate",
        "mlp.up_proj" => "ffn_up",
        "mlp.down_proj" => "ffn_down",
        "post_feedforward_layernorm" => "post_ffw_norm",
        other => panic!("{other}"),
    };
    format!("blk.{layer}.{rest}.{kind}")
}

/// The tensor of all experts that a tensor of one belongs to, and which expert it is.
fn expert_name(name: &str) -> Option<(String, usize)> {
    let (layer, rest) = name.strip_prefix("model.layers.")?.split_once('.')?;
    let (_, rest) = rest.split_once(".experts.")?;
    let (expert, part) = rest.strip_suffix(".weight")?.split_once('.')?;
    let part = match part {
        "w1" | "gate_proj" => "gate",
        "w3" | "up_proj" => "up",
        "w2" | "down_proj" => "down",
        other => panic!("{other}"),
    };
    Some((format!("blk.{layer}.ffn_{part}_exps.weight"), expert.parse().unwrap()))
}

/// Puts an expert's matrix into the tensor of all, which grows as far as it has to.
fn stack(model: &mut TinyModel, name: String, expert: usize, shape: &[usize], values: &[f32]) {
    let empty = TinyTensor { shape: [&[0], shape].concat(), values: Vec::new() };
    let all = model.tensors.entry(name).or_insert(empty);
    let end = (expert + 1) * values.len();
    if all.values.len() < end {
        all.values.resize(end, f32::NAN);
        all.shape[0] = expert + 1;
    }
    all.values[end - values.len()..end].copy_from_slice(values);
}

/// Rows of each head from halves to pairs.
fn permuted(values: &[f32], columns: usize, head_dim: usize) -> Vec<f32> {
    let rows: Vec<&[f32]> = values.chunks_exact(columns).collect();
    let half = head_dim / 2;
    let heads = rows.chunks_exact(head_dim);
    heads.flat_map(|head| (0..half).flat_map(|i| [head[i], head[i + half]])).flatten().copied().collect()
}

/// The checkpoint as a GGUF file, and its architecture's name there.
fn gguf(folder: &str, architecture: &str) -> TinyModel {
    let (gemma, llama) = (architecture.starts_with("gemma"), architecture == "llama");
    let config = ModelFolder::open(checkpoint(folder)).unwrap().config().unwrap();
    let mut model = TinyModel::new(0);
    model.tensors.clear();
    model.keys.retain(|key, _| key.starts_with("tokenizer."));
    model.set("general.architecture", Value::Str(architecture.to_owned()));
    let sizes = [
        ("block_count", config.layers),
        ("context_length", config.context),
        ("embedding_length", config.hidden),
        ("feed_forward_length", config.ffn),
        ("attention.head_count", config.query_heads),
        ("attention.head_count_kv", config.kv_heads),
        ("attention.key_length", config.head_dim),
        ("attention.value_length", config.head_dim),
    ];
    for (key, value) in sizes {
        model.set(&format!("{architecture}.{key}"), Value::U32(value as u32));
    }
    let mut set = |key: &str, value: f32| model.set(&format!("{architecture}.{key}"), Value::F32(value));
    set("attention.layer_norm_rms_epsilon", config.norm_eps);
    let full = config
        .attention_kinds
        .iter()
        .find(|kind| kind.window.is_none())
        .unwrap_or(&config.attention_kinds[0]);
    set("rope.freq_base", full.rope.theta);
    if let Some(cap) = config.attention_soft_cap {
        set("attn_logit_softcapping", cap);
    }
    if let Some(cap) = config.logit_soft_cap {
        set("final_logit_softcapping", cap);
    }
    if architecture == "gemma3" {
        set("rope.scaling.factor", 8.0);
        model.set("gemma3.rope.scaling.type", Value::Str("linear".to_owned()));
    }
    if let Some(window) = config.attention_kinds.iter().find_map(|kind| kind.window) {
        model.set(&format!("{architecture}.attention.sliding_window"), Value::U32(window as u32));
    }
    if let Some(routing) = &config.experts {
        for (key, value) in [
            ("expert_count", routing.experts),
            ("expert_used_count", routing.top_k),
            ("expert_feed_forward_length", config.ffn),
        ] {
            model.set(&format!("{architecture}.{key}"), Value::U32(value as u32));
        }
        let renormalized = routing.weights == RouterWeights::Renormalized;
        model.set(&format!("{architecture}.expert_weights_norm"), Value::Bool(renormalized));
    }
    let tensors = SafetensorsFolder::open(checkpoint(folder)).unwrap();
    for tensor in tensors.tensors() {
        if let Some((name, expert)) = expert_name(tensor.name()) {
            stack(&mut model, name, expert, tensor.shape(), &tensor.to_f32().unwrap());
            continue;
        }
        let mut values = tensor.to_f32().unwrap();
        let is_rotated = tensor.name().contains("q_proj") || tensor.name().contains("k_proj");
        if llama && is_rotated {
            values = permuted(&values, config.hidden, config.head_dim);
        }
        if gemma && tensor.name().contains("norm") {
            values.iter_mut().for_each(|value| *value += 1.0);
        }
        let tiny = TinyTensor { shape: tensor.shape().to_vec(), values };
        model.tensors.insert(name(tensor.name(), gemma), tiny);
    }
    model
}

/// The largest difference of a logit of the first rows, as a part of its row's largest.
fn difference(folder: &str, model: &TinyModel, rows: usize) -> f32 {
    let file = GgufFile::from_bytes(model.bytes()).unwrap();
    let options = EngineOptions::new().weights(WeightsFormat::F32);
    let mut engine = Engine::from_file(cpu(1, Tier::best()), &file, &options, &mut |_| {}).unwrap();
    let tokens = tokens(folder);
    let got = engine.logits(&tokens, &(0..rows).collect::<Vec<_>>()).unwrap();
    let expected = expected_logits(folder, got[0].len());
    let rows = got.iter().zip(&expected).map(|(got, expected)| {
        let largest = expected.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
        got.iter().zip(expected).map(|(a, b)| (a - b).abs() / largest).fold(0.0, f32::max)
    });
    rows.fold(0.0, f32::max)
}

#[test]
fn logits_are_those_of_transformers() {
    for (folder, architecture, rows) in [
        ("llama2", "llama", 72),
        ("smollm2", "llama", 72),
        ("mistral", "llama", 72),
        ("mixtral", "llama", 72),
        ("qwen3-moe", "qwen3moe", 72),
        // Windows of some layers only have no key here: rows that windows show everything to.
        ("qwen2", "qwen2", 16),
        ("qwen3", "qwen3", 72),
        ("gemma2", "gemma2", 72),
        ("gemma3", "gemma3", 72),
    ] {
        let mut model = gguf(folder, architecture);
        if folder == "qwen2" {
            model.keys.remove("qwen2.attention.sliding_window");
        }
        // The checkpoints' scores are divided by √40. There is no key for that: files are by the heads' size, √24.
        let (queries, factor) = match architecture {
            "gemma2" => ("attn_q.weight", (24.0f32 / 40.0).sqrt()),
            "gemma3" => ("attn_q_norm.weight", (24.0f32 / 40.0).sqrt()),
            _ => ("none", 1.0),
        };
        for (_, tensor) in model.tensors.iter_mut().filter(|(name, _)| name.ends_with(queries)) {
            tensor.values.iter_mut().for_each(|value| *value *= factor);
        }
        let found = difference(folder, &model, rows);
        println!("{folder} as {architecture}: {found:.1e}");
        assert!(found < 1e-4, "{folder}: {found:e}");
    }
}
