//! Rope scaling from a file: what Llama 3 files bring as a tensor, and what other files name.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

mod support;

use halite_cpu::Tier;
use halite_engine::gguf::GgufFile;
use halite_engine::model_file::{ModelConfig, ModelFile};
use halite_engine::{Engine, EngineError, EngineOptions, WeightsFormat};
use halite_kernels::rope::RopeScaling;
use support::cpu;
use support::tiny_model::{TinyModel, TinyTensor, Value};

/// Divisors for heads of 8 elements and a base of 500,000, by hand: wavelengths 2π · 500000^(i/4) are 6.3, 167, 4443
/// and 118,143; of the trained 8,192 positions the first two turn more than 4 times, the third 1.8438 times and the
/// last not once.
fn divisors(factor: f32) -> Vec<f32> {
    let keep = (8192.0 / (std::f64::consts::TAU * 500_000f64.sqrt()) - 1.0) / 3.0;
    let third = 1.0 / ((1.0 - keep) / f64::from(factor) + keep);
    vec![1.0, 1.0, third as f32, factor]
}

fn model(divisors: &[f32]) -> TinyModel {
    let mut model = TinyModel::new(2);
    model.set("llama.rope.freq_base", Value::F32(500_000.0));
    let tensor = TinyTensor { shape: vec![divisors.len()], values: divisors.to_vec() };
    model.tensors.insert("rope_freqs.weight".to_owned(), tensor);
    model
}

fn read(model: &TinyModel) -> Result<ModelConfig, EngineError> {
    GgufFile::from_bytes(model.bytes()).unwrap().config()
}

fn last_logits(model: &TinyModel) -> Vec<f32> {
    let file = GgufFile::from_bytes(model.bytes()).unwrap();
    let options = EngineOptions::new().weights(WeightsFormat::F32);
    let mut engine = Engine::from_file(cpu(1, Tier::best()), &file, &options, &mut |_| {}).unwrap();
    let tokens: Vec<u32> = (0..600).map(|i| i * 7 % 60).collect();
    engine.logits(&tokens, &[599]).unwrap().remove(0)
}

#[test]
fn llama_3_is_recognised_by_its_divisors() {
    for factor in [8.0, 32.0] {
        let config = read(&model(&divisors(factor))).unwrap();
        assert!(
            matches!(config.attention_kinds[0].rope.scaling, RopeScaling::Llama3 { factor: found, .. } if found == factor),
            "{:?}",
            config.attention_kinds[0].rope.scaling
        );
    }
    assert_ne!(
        last_logits(&model(&divisors(8.0))),
        last_logits(&model(&[1.0; 4])),
        "the tensor changes nothing"
    );
}

#[test]
fn other_divisors_are_refused() {
    for broken in [
        vec![1.0, 1.0, 2.0, 8.0],
        vec![1.0, 1.1, divisors(8.0)[2], 8.0],
        vec![0.0, 1.0, divisors(8.0)[2], 8.0],
        vec![1.0, 1.0, f32::NAN, 8.0],
        vec![1.0, 1.0, divisors(8.0)[2], f32::INFINITY],
        vec![1.0; 3],
    ] {
        let error = read(&model(&broken)).unwrap_err().to_string();
        assert!(error.contains("rope_freqs.weight") || error.contains("scaling"), "{error}");
    }
    let mut both = model(&divisors(8.0));
    both.set("llama.rope.scaling.type", Value::Str("linear".to_owned()));
    both.set("llama.rope.scaling.factor", Value::F32(2.0));
    assert!(read(&both).unwrap_err().to_string().contains("rope_freqs.weight"));
}

#[test]
fn linear_scaling_is_read_from_both_of_its_keys() {
    let mut named = TinyModel::new(2);
    named.set("llama.rope.scaling.type", Value::Str("linear".to_owned()));
    assert!(read(&named).unwrap_err().to_string().contains("llama.rope.scaling.factor"));
    named.set("llama.rope.scaling.factor", Value::F32(4.0));
    let mut bare = TinyModel::new(2);
    bare.set("llama.rope.scale_linear", Value::F32(4.0));
    for model in [&named, &bare] {
        assert_eq!(read(model).unwrap().attention_kinds[0].rope.scaling, RopeScaling::Linear { factor: 4.0 });
        assert_ne!(last_logits(model), last_logits(&TinyModel::new(2)));
    }
}
