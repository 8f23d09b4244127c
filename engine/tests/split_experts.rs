//! The default model as a mixture of experts that gives the dense model's logits.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

mod support;

use halite_cpu::Tier;
use halite_engine::gguf::GgufFile;
use halite_engine::model_file::{self, ModelFile};
use halite_engine::{Engine, WeightsFormat};
use support::split_experts::{EXPERTS, split};
use support::{cpu, model_file, options};

/// As in `golden.rs`: what sums in another order make of logits of about 20.
const LOGIT_TOLERANCE: f32 = 0.001;

fn logits(file: &dyn ModelFile, tokens: &[u32]) -> Vec<Vec<f32>> {
    let options = options(WeightsFormat::F32);
    let mut engine = Engine::from_file(cpu(2, Tier::best()), file, &options, &mut |_| {}).unwrap();
    let positions: Vec<usize> = (0..tokens.len()).collect();
    engine.logits(tokens, &positions).unwrap()
}

#[test]
fn eight_experts_of_192_give_the_dense_models_logits() {
    let dense = model_file::open(model_file()).unwrap();
    let split = GgufFile::from_bytes(split(&std::fs::read(model_file()).unwrap())).unwrap();
    let config = split.config().unwrap();
    let routing = config.experts.as_ref().unwrap();
    assert_eq!((routing.experts, routing.top_k, config.ffn), (EXPERTS, EXPERTS, 192));
    let golden: serde_json::Value =
        serde_json::from_str(include_str!("fixtures/golden/smollm2-135m-f32.json")).unwrap();
    let tokens: Vec<u32> = serde_json::from_value(golden["windows"][0]["token_ids"].clone()).unwrap();
    let tokens = &tokens[..32];
    let (got, expected) = (logits(&split, tokens), logits(&*dense, tokens));
    let mut largest = 0.0f32;
    for (row, (got, expected)) in got.iter().zip(&expected).enumerate() {
        for (token, (got, expected)) in got.iter().zip(expected).enumerate() {
            let difference = (got - expected).abs();
            assert!(difference < LOGIT_TOLERANCE, "row {row}, token {token}: {got}, dense {expected}");
            largest = largest.max(difference);
        }
    }
    println!("{} rows, largest difference of a logit: {largest:e}", got.len());
}
