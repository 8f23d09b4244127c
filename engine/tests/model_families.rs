//! Every family against the `transformers` package: tiny random checkpoints and the logits it computes from them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

mod support;

use halite_cpu::Tier;
use halite_engine::model_file::{self, ModelFile, ModelFolder};
use halite_engine::{Engine, EngineOptions, KvFormat, WeightsFormat};
use halite_kernels::DType;
use support::checkpoints::{FAMILIES, checkpoint, expected_logits, tokens};
use support::cpu;

/// The largest difference of two logits, as a part of the larger one; logits near 0 are held against a tenth of their
/// row's root mean square.
fn relative_difference(got: &[f32], expected: &[f32]) -> f64 {
    let square = |x: &f32| f64::from(*x).powi(2);
    let rms = (expected.iter().map(square).sum::<f64>() / expected.len() as f64).sqrt();
    let differences = got.iter().zip(expected).map(|(&got, &expected)| {
        let size = f64::from(got.abs().max(expected.abs())).max(rms / 10.0);
        f64::from(got - expected).abs() / size
    });
    // A NaN must not be passed over, as `f64::max` would.
    differences.fold(0.0, |largest, difference| if difference <= largest { largest } else { difference })
}

fn logits(file: &dyn ModelFile, options: &EngineOptions, tokens: &[u32], tier: Tier) -> Vec<Vec<f32>> {
    let mut engine = Engine::from_file(cpu(2, tier), file, options, &mut |_| {}).unwrap();
    let positions: Vec<usize> = (0..tokens.len()).collect();
    engine.logits(tokens, &positions).unwrap()
}

/// The largest relative difference over all rows.
fn difference(name: &str, options: &EngineOptions, tier: Tier) -> f64 {
    let file = ModelFolder::open(checkpoint(name)).unwrap();
    let got = logits(&file, options, &tokens(name), tier);
    let expected = expected_logits(name, got[0].len());
    assert_eq!(got.len(), expected.len());
    let rows = got.iter().zip(&expected).map(|(got, expected)| relative_difference(got, expected));
    rows.fold(0.0, f64::max)
}

#[test]
fn logits_are_those_of_transformers() {
    for name in FAMILIES {
        for tier in Tier::available() {
            let options = EngineOptions::new().weights(WeightsFormat::F32);
            let found = difference(name, &options, tier);
            println!("{name} on {tier:?}: relative difference of the logits {found:.1e}");
            assert!(found < 1e-3, "{name} on {tier:?}: {found:e}");
        }
    }
}

#[test]
fn chunks_of_a_prompt_change_no_bit() {
    for name in FAMILIES {
        let file = ModelFolder::open(checkpoint(name)).unwrap();
        let options = EngineOptions::new();
        let whole = logits(&file, &options, &tokens(name), Tier::best());
        for chunk in [1, 7] {
            let options = options.clone().max_batch_tokens(chunk).max_sequences(1);
            assert!(logits(&file, &options, &tokens(name), Tier::best()) == whole, "{name} by {chunk}");
        }
    }
}

/// Kept as BF16, the weights of a BF16 checkpoint are exactly the file's.
#[test]
fn bf16_checkpoints_lose_nothing_as_bf16() {
    for name in ["llama3", "mixtral", "qwen2", "qwen3", "qwen3-moe", "smollm2", "gemma2", "gemma3"] {
        let options = EngineOptions::new().weights(WeightsFormat::Bf16).kv_dtype(DType::F32);
        let found = difference(name, &options, Tier::best());
        assert!(found < 1e-3, "{name}: {found:e}");
    }
}

/// The difference of each row of logits, as a part of the row: root mean squares.
fn row_errors(got: &[Vec<f32>], expected: &[Vec<f32>]) -> Vec<f64> {
    let square = |x: f32| f64::from(x).powi(2);
    let row = |(got, expected): (&Vec<f32>, &Vec<f32>)| {
        let error: f64 = got.iter().zip(expected).map(|(got, expected)| square(got - expected)).sum();
        (error / expected.iter().copied().map(square).sum::<f64>()).sqrt()
    };
    let mut rows: Vec<f64> = got.iter().zip(expected).map(row).collect();
    rows.sort_by(f64::total_cmp);
    rows
}

/// Each key and value is within half a step, a 254th of its largest magnitude; what is left of that in the logits of the
/// families' small random models is measured, and is the same by token as whole.
#[test]
fn int8_keys_and_values_are_close() {
    for name in ["llama3", "qwen3", "gemma2", "gemma3"] {
        let file = ModelFolder::open(checkpoint(name)).unwrap();
        let expected = expected_logits(name, 320);
        let options = EngineOptions::new().weights(WeightsFormat::F32).kv_format(KvFormat::Int8PerTokenHead);
        for tier in Tier::available() {
            let whole = logits(&file, &options, &tokens(name), tier);
            let rows = row_errors(&whole, &expected);
            let worst = rows[rows.len() - 1];
            println!(
                "{name}, {tier}: the median row is off by {:.4}, the worst by {worst:.4}",
                rows[rows.len() / 2]
            );
            assert!((1e-5..0.06).contains(&worst), "{name}, {tier}: {worst}");
            let options = options.clone().max_batch_tokens(1).max_sequences(1);
            assert!(logits(&file, &options, &tokens(name), tier) == whole, "{name}, {tier}: by token");
        }
    }
}

/// A sum in another order moves an activation across the border between two integers now and then, and with it a row by
/// a hundredth or so. Most rows have no such activation; they match.
#[test]
fn a_w8a8_checkpoint_matches_its_simulation() {
    let file = ModelFolder::open(checkpoint("w8a8")).unwrap();
    let expected = expected_logits("w8a8", 320);
    let rows = |options: EngineOptions, tier| {
        let options = options.kv_dtype(DType::F32);
        row_errors(&logits(&file, &options, &tokens("w8a8"), tier), &expected)
    };
    for tier in Tier::available() {
        let rows = rows(EngineOptions::new().weights(WeightsFormat::W8a8), tier);
        println!("w8a8 on {tier:?}: {rows:.5?}");
        let (most, worst) = (rows[rows.len() * 3 / 4], rows[rows.len() - 1]);
        assert!(most < 1e-3 && worst < 0.02, "{tier:?}: {most:e}, {worst:e}");
    }
    // Without the rounding of activations no row does.
    let floats = rows(EngineOptions::new().weights(WeightsFormat::F32), Tier::best());
    println!("as floats: {floats:.5?}");
    assert!(floats[0] > 1e-3 && floats[floats.len() - 1] < 0.1, "{floats:?}");
}

#[test]
fn what_a_folder_says_is_read() {
    let file = model_file::open(checkpoint("gemma3")).unwrap();
    let config = file.config().unwrap();
    let windows: Vec<Option<usize>> =
        config.layer_kinds.iter().map(|&kind| config.attention_kinds[kind].window).collect();
    let (near, far) = (Some(16), None);
    assert_eq!(windows, [near, near, near, near, near, far, near]);
    assert_eq!(file.architecture().as_deref(), Some("gemma3_text"));
    let texts = file.texts().unwrap();
    assert_eq!(texts.tokenizer().end_tokens().collect::<Vec<_>>(), [1]);
    assert!(texts.template().is_some());
    assert_eq!(file.generation().unwrap(), Default::default());
    let engine =
        Engine::load(cpu(1, Tier::best()), checkpoint("gemma3"), &EngineOptions::new(), &mut |_| {}).unwrap();
    assert_eq!(engine.describe().parameters, config.parameters());
    assert_eq!(
        engine.describe().weight_bytes,
        config.memory(WeightsFormat::W8a8, KvFormat::Float(DType::F16)).weights,
        "what inspect foretells is what loading takes"
    );
}

#[test]
fn experts_are_counted() {
    for (name, experts, per_token, ffn) in [("mixtral", 5, 2, 40), ("qwen3-moe", 6, 3, 24)] {
        let config = ModelFolder::open(checkpoint(name)).unwrap().config().unwrap();
        let routing = config.experts.as_ref().unwrap();
        assert_eq!((routing.experts, routing.top_k, config.ffn), (experts, per_token, ffn));
        for weights in WeightsFormat::ALL {
            let options = EngineOptions::new().weights(weights);
            let engine = Engine::load(cpu(1, Tier::best()), checkpoint(name), &options, &mut |_| {}).unwrap();
            assert_eq!(engine.describe().parameters, config.parameters());
            let foretold = config.memory(weights, KvFormat::Float(DType::F16)).weights;
            assert_eq!(engine.describe().weight_bytes, foretold, "{name} as {weights:?}");
        }
    }
}
