//! Models that are broken, and requests that cannot be served: errors that name the thing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

mod support;

use halite_cpu::Tier;
use halite_engine::gguf::GgufFile;
use halite_engine::{Engine, EngineError, EngineOptions, KvCapacity, Request, SamplingParams, WeightsFormat};
use support::cpu;
use support::tiny_model::{CONTEXT, TinyModel, TinyTensor, VOCABULARY, Value};

fn load(model: &TinyModel, options: &EngineOptions) -> Result<Engine, EngineError> {
    let file = GgufFile::from_bytes(model.bytes())?;
    Engine::from_file(cpu(1, Tier::best()), &file, options, &mut |_| {})
}

/// Loads a model that `change` broke; the error must have all of `parts` in its text.
fn refused(change: impl FnOnce(&mut TinyModel), parts: &[&str]) -> EngineError {
    let mut model = TinyModel::new(1);
    change(&mut model);
    let error = load(&model, &EngineOptions::new()).expect_err(&format!("must be refused: {parts:?}"));
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "`{text}` does not name `{part}`");
    }
    error
}

#[test]
fn the_model_itself_is_sound() {
    for weights in WeightsFormat::ALL {
        let mut engine = load(&TinyModel::new(1), &EngineOptions::new().weights(weights)).unwrap();
        assert_eq!(engine.describe().vocabulary, VOCABULARY);
        let answer = engine.generate(Request::new(vec![1, 2, 3], 5), &mut |_| {}).unwrap();
        assert_eq!(answer.finished.generated.len(), 5);
    }
}

#[test]
fn a_wrong_padding_token_does_not_matter() {
    for pad in [Value::U32(u32::MAX), Value::Str("none".to_owned())] {
        let mut model = TinyModel::new(1);
        model.set("tokenizer.ggml.padding_token_id", pad);
        load(&model, &EngineOptions::new()).unwrap();
    }
}

#[test]
fn every_tensor_is_missed() {
    for name in TinyModel::new(1).tensors.keys() {
        refused(|model| drop(model.tensors.remove(name)), &[name]);
    }
}

#[test]
fn every_tensor_of_another_shape_is_refused() {
    for name in TinyModel::new(1).tensors.keys() {
        for shape in [vec![1], vec![3, 5], vec![2, 3, 4], vec![0, 40], vec![40, 0]] {
            let values = vec![0.5; shape.iter().product()];
            let tensor = TinyTensor { shape, values };
            refused(|model| drop(model.tensors.insert(name.clone(), tensor)), &[]);
        }
    }
}

#[test]
fn tensors_that_are_not_numbers_are_refused() {
    for name in TinyModel::new(1).tensors.keys() {
        for weights in WeightsFormat::ALL {
            for value in [f32::NAN, f32::INFINITY] {
                let mut model = TinyModel::new(1);
                *model.tensors.get_mut(name).unwrap().values.last_mut().unwrap() = value;
                let error = load(&model, &EngineOptions::new().weights(weights)).unwrap_err();
                assert!(error.to_string().contains(name.as_str()), "{error}");
            }
        }
    }
}

#[test]
fn a_tensor_that_nobody_would_read_is_refused() {
    let bias = TinyTensor { shape: vec![48], values: vec![1.0; 48] };
    refused(|model| drop(model.tensors.insert("blk.0.attn_q.bias".to_owned(), bias)), &["blk.0.attn_q.bias"]);
}

#[test]
fn text_from_the_file_is_safe_to_print() {
    let hostile = format!("\u{1b}[2J\n{}", "x".repeat(10_000));
    let tensor = TinyTensor { shape: vec![1], values: vec![1.0] };
    let text = || Value::Str(hostile.clone());
    let errors = [
        refused(|model| drop(model.tensors.insert(hostile.clone(), tensor)), &["no place"]),
        refused(|model| model.set("general.architecture", text()), &["architecture"]),
        refused(|model| model.set("llama.rope.scaling.type", text()), &["rope.scaling.type"]),
        refused(|model| model.set("tokenizer.ggml.model", text()), &["tokenizer.ggml.model"]),
        refused(|model| model.set("tokenizer.ggml.pre", text()), &["tokenizer.ggml.pre"]),
    ];
    for message in errors.map(|error| error.to_string()) {
        assert!(message.len() < 500 && !message.contains(char::is_control), "{message:?}");
    }
}

#[test]
fn absurd_hyper_parameters_are_refused() {
    let sizes = [
        "block_count",
        "context_length",
        "embedding_length",
        "feed_forward_length",
        "attention.head_count",
        "attention.head_count_kv",
        "attention.key_length",
        "rope.dimension_count",
    ];
    for name in sizes {
        let key = format!("llama.{name}");
        for value in [0, 1 << 31, 1 << 62, u64::MAX] {
            refused(|model| model.set(&key, Value::U64(value)), &[&key]);
        }
        refused(|model| model.set(&key, Value::Str("many".to_owned())), &[&key]);
        refused(|model| model.set(&key, Value::F32(2.0)), &[&key]);
    }
    // Within the limits, and at odds with the tensors or with one another.
    for name in sizes.iter().filter(|name| **name != "context_length") {
        for value in [1, 3, 7, 41, 1000] {
            refused(|model| model.set(&format!("llama.{name}"), Value::U64(value)), &[]);
        }
    }
    for value in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        for name in ["attention.layer_norm_rms_epsilon", "rope.freq_base"] {
            let key = format!("llama.{name}");
            refused(|model| model.set(&key, Value::F32(value)), &[&key]);
        }
    }
}

#[test]
fn required_keys_are_missed() {
    for key in [
        "general.architecture",
        "llama.block_count",
        "llama.context_length",
        "llama.embedding_length",
        "llama.feed_forward_length",
        "llama.attention.head_count",
        "llama.attention.layer_norm_rms_epsilon",
        "tokenizer.ggml.model",
        "tokenizer.ggml.tokens",
    ] {
        refused(|model| drop(model.keys.remove(key)), &[key]);
    }
}

#[test]
fn what_is_not_built_in_is_named() {
    let text = |text: &str| Value::Str(text.to_owned());
    refused(|model| model.set("general.architecture", text("mamba")), &["mamba", "llama"]);
    refused(|model| model.set("llama.rope.scaling.type", text("yarn")), &["yarn", "rope.scaling.type"]);
    refused(|model| model.set("llama.expert_count", Value::U32(8)), &["llama.expert_used_count"]);
    let experts = |model: &mut TinyModel, key: &str, value| {
        model.set("llama.expert_count", Value::U32(8));
        model.set("llama.expert_used_count", Value::U32(2));
        model.set(&format!("llama.{key}"), Value::U32(value));
    };
    refused(|model| experts(model, "expert_used_count", 9), &["llama.expert_used_count", "1 to 8"]);
    refused(|model| experts(model, "expert_count", 1 << 20), &["llama.expert_count"]);
    refused(|model| experts(model, "expert_shared_count", 1), &["llama.expert_shared_count"]);
    refused(|model| experts(model, "expert_gating_func", 2), &["llama.expert_gating_func"]);
    refused(|model| experts(model, "expert_group_count", 4), &["llama.expert_group_count"]);
    refused(|model| experts(model, "expert_count", 8), &["blk.0.ffn_gate_inp.weight"]);
    refused(|model| model.set("llama.attention.value_length", Value::U32(16)), &["value_length"]);
}

/// Tokenizers of models that also see have a token more than the text model has rows. A text does not come by it.
#[test]
fn a_token_beyond_the_embedding_table_is_refused_where_it_is_used() {
    let mut model = TinyModel::new(1);
    model.set("tokenizer.ggml.tokens", Value::Strs((0..=VOCABULARY).map(|i| format!("t{i}")).collect()));
    model.keys.remove("tokenizer.ggml.token_type");
    let mut engine = load(&model, &EngineOptions::new()).unwrap();
    let request = Request::new(vec![1, VOCABULARY as u32], 5);
    let error = engine.add(request).unwrap_err().to_string();
    assert!(error.contains("67") && error.contains("token 1 "), "{error}");
    let request = Request::new(vec![1], 50).sampling(SamplingParams::seeded(5.0, 1));
    let answer = engine.generate(request, &mut |_| {}).unwrap();
    assert!(answer.finished.generated.iter().all(|&id| (id as usize) < VOCABULARY));
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let new = EngineOptions::new;
    let cases = [
        (new().context(CONTEXT + 1), "context"),
        (new().context(1), "context"),
        (new().kv(KvCapacity::Bytes(100)), "kv"),
        (new().kv(KvCapacity::Tokens(0)), "kv"),
        (new().kv(KvCapacity::Tokens(usize::MAX)), "kv"),
        (new().block_size(0), "block_size"),
    ];
    for (options, name) in cases {
        let error = load(&TinyModel::new(1), &options).unwrap_err();
        assert!(matches!(&error, EngineError::Option { option, .. } if *option == name), "{error}");
    }
}

#[test]
fn requests_that_cannot_be_served_are_refused_and_others_go_on() {
    let mut engine = load(&TinyModel::new(1), &EngineOptions::new()).unwrap();
    let running = engine.add(Request::new(vec![5; 10], 10)).unwrap();
    engine.step().unwrap();
    let unknown = VOCABULARY as u32;
    let cases = [
        (Request::new(vec![], 4), "0 tokens"),
        (Request::new(vec![1; CONTEXT], 4), "shorten"),
        (Request::new(vec![1; 100_000], 4), "100000"),
        (Request::new(vec![1], 0), "max_tokens"),
        (Request::new(vec![1, unknown], 4), "token 1"),
        (Request::new(vec![1], 4).sampling(SamplingParams::seeded(-1.0, 0)), "temperature"),
        (Request::new(vec![1], 4).sampling(SamplingParams::seeded(f32::NAN, 0)), "temperature"),
        (Request::new(vec![1], 4).sampling(SamplingParams::greedy().with_top_p(0.0)), "top_p"),
    ];
    for (request, part) in cases {
        let error = engine.add(request).unwrap_err().to_string();
        assert!(error.contains(part), "`{error}` does not name `{part}`");
    }
    assert!(engine.score(&[]).is_err());
    assert!(engine.score(&[3]).unwrap().is_empty());
    assert!(engine.score(&[1, unknown]).is_err());
    assert!(engine.score(&vec![1; CONTEXT + 1]).is_err());
    assert_eq!(engine.score(&vec![1; CONTEXT]).unwrap().len(), CONTEXT - 1);
    assert!(engine.logits(&[1, 2], &[2]).is_err());
    assert!(engine.logits(&[1, 2], &[1, 0]).is_err());

    let mut tokens = 0;
    while !engine.is_idle() {
        let events = engine.step().unwrap();
        tokens += events
            .iter()
            .filter(|event| matches!(event, halite_engine::Event::Token { id, .. } if *id == running))
            .count();
    }
    // One came with the first step.
    assert_eq!(tokens, 9, "the request that ran before is answered in full");
    assert_eq!(engine.blocks().used, 0);
}

#[test]
fn a_prompt_that_fills_the_context_gets_one_token() {
    let mut engine = load(&TinyModel::new(1), &EngineOptions::new()).unwrap();
    let answer = engine.generate(Request::new(vec![1; CONTEXT - 1], 50), &mut |_| {}).unwrap();
    assert_eq!(answer.finished.generated.len(), 1);
}
