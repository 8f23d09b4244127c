//! The default model against figures from an independent float32 implementation; see fixtures/golden/ORIGIN.md.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

mod support;

use halite_cpu::Tier;
use halite_engine::text::ChatMessage;
use halite_engine::{Engine, FinishReason, Request, WeightsFormat};
use serde::Deserialize;
use support::{cpu, model_file, options};

#[derive(Deserialize)]
struct Golden {
    windows: Vec<Window>,
    greedy: Vec<Greedy>,
}

#[derive(Deserialize)]
struct Window {
    token_ids: Vec<u32>,
    nll: Vec<f32>,
    mean_nll: f64,
    top_logits: Vec<TopLogits>,
}

#[derive(Deserialize)]
struct TopLogits {
    position: usize,
    token_ids: Vec<usize>,
    logits: Vec<f32>,
}

#[derive(Deserialize)]
struct Greedy {
    prompt_token_ids: Vec<u32>,
    output_token_ids: Vec<u32>,
    top1_margin: Vec<f32>,
}

fn golden() -> Golden {
    let golden: Golden = serde_json::from_str(include_str!("fixtures/golden/smollm2-135m-f32.json")).unwrap();
    assert_eq!((golden.windows.len(), golden.greedy.len()), (4, 3));
    golden
}

fn engine(weights: WeightsFormat) -> Engine {
    Engine::load(cpu(2, Tier::best()), model_file(), &options(weights), &mut |_| {}).unwrap()
}

fn mean(values: &[f32]) -> f64 {
    values.iter().map(|&value| f64::from(value)).sum::<f64>() / values.len() as f64
}

#[test]
fn f32_likelihoods() {
    let mut engine = engine(WeightsFormat::F32);
    for (index, window) in golden().windows.iter().enumerate() {
        let nll = engine.score(&window.token_ids).unwrap();
        assert_eq!(nll.len(), window.nll.len());
        let (got, expected) = (mean(&nll), window.mean_nll);
        println!("window {index}: mean {got:.6}, golden {expected:.6}");
        assert!((got - expected).abs() < 0.001, "window {index}: mean {got}, golden {expected}");
        for (position, (got, expected)) in nll.iter().zip(&window.nll).enumerate() {
            let difference = (got - expected).abs();
            assert!(difference < 0.05, "window {index}, after {position}: {got}, golden {expected}");
        }
    }
}

#[test]
fn f32_logits() {
    let mut engine = engine(WeightsFormat::F32);
    let mut largest = 0.0f32;
    for (index, window) in golden().windows.iter().enumerate() {
        let positions: Vec<usize> = window.top_logits.iter().map(|top| top.position).collect();
        assert!(!positions.is_empty());
        let logits = engine.logits(&window.token_ids, &positions).unwrap();
        for (row, top) in logits.iter().zip(&window.top_logits) {
            for (&token, &expected) in top.token_ids.iter().zip(&top.logits) {
                let difference = (row[token] - expected).abs();
                largest = largest.max(difference);
                assert!(
                    difference < LOGIT_TOLERANCE,
                    "window {index}, position {}, token {token}: {}, golden {expected}",
                    top.position,
                    row[token]
                );
            }
        }
    }
    println!("largest difference of a logit: {largest}");
}

/// Two float32 implementations sum in different orders: logits of about 20 differ by this at most.
const LOGIT_TOLERANCE: f32 = 0.001;

#[test]
fn f32_greedy_answers() {
    let mut engine = engine(WeightsFormat::F32);
    for (index, greedy) in golden().greedy.iter().enumerate() {
        let tokens = [greedy.prompt_token_ids.as_slice(), &greedy.output_token_ids].concat();
        let first = greedy.prompt_token_ids.len() - 1;
        let positions: Vec<usize> = (first..tokens.len() - 1).collect();
        let logits = engine.logits(&tokens, &positions).unwrap();
        let mut compared = 0;
        for (step, (row, &expected)) in logits.iter().zip(&greedy.output_token_ids).enumerate() {
            if greedy.top1_margin[step] > 0.05 {
                compared += 1;
                let best = (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
                assert_eq!(best, expected as usize, "answer {index}, token {step}");
            }
        }
        assert!(
            compared * 2 > greedy.output_token_ids.len(),
            "answer {index}: only {compared} margins suffice"
        );
    }
}

/// INT8 rounding is amplified by the layers: the difference varies by about 0.007 between tiers, whose bits differ.
#[test]
fn w8a8_likelihoods_with_and_without_fusing() {
    likelihoods_of_quantised_activations(WeightsFormat::W8a8, 0.04);
}

/// The file's own 4 bits; what differs is the rounding of activations, and the output layer in INT8.
#[test]
fn w4a8_likelihoods_with_and_without_fusing() {
    likelihoods_of_quantised_activations(WeightsFormat::W4a8, 0.045);
}

fn likelihoods_of_quantised_activations(weights: WeightsFormat, allowed: f64) {
    let golden = golden();
    // The tiers between them give the best one's bits; the slowest has one window.
    for (tier, windows) in [(Tier::PORTABLE, 1), (Tier::best(), golden.windows.len())] {
        let windows = &golden.windows[..windows];
        let expected: Vec<f64> = windows.iter().map(|window| window.mean_nll).collect();
        let options = options(weights);
        let mut engine = Engine::load(cpu(2, tier), model_file(), &options, &mut |_| {}).unwrap();
        let got: Vec<f64> =
            windows.iter().map(|window| mean(&engine.score(&window.token_ids).unwrap())).collect();
        let difference = (got.iter().sum::<f64>() - expected.iter().sum::<f64>()) / got.len() as f64;
        println!("{weights} on {tier}: means {got:.4?}, golden {expected:.4?}, difference {difference:+.5}");
        assert!(
            difference.abs() < allowed,
            "{weights} on {tier}: mean over the windows is off by {difference}: {got:?}, golden {expected:?}"
        );
    }
}

#[test]
fn chat_prompts() {
    let engine = engine(WeightsFormat::W8a8);
    let questions =
        ["What is the capital of France?", "Name three primary colors.", "Write one sentence about the sea."];
    for (question, greedy) in questions.iter().zip(&golden().greedy) {
        // The template adds the system message.
        let prompt = engine.chat_prompt(vec![ChatMessage::new("user", *question)]).unwrap();
        assert_eq!(prompt, greedy.prompt_token_ids, "{question}");
    }
}

#[test]
fn w8a8_answers() {
    let mut engine = engine(WeightsFormat::W8a8);
    let prompt =
        engine.chat_prompt(vec![ChatMessage::new("user", "What is the capital of France?")]).unwrap();
    let request = Request::new(prompt, 32).stop_tokens(engine.stop_tokens());
    let answer = engine.generate(request, &mut |_| {}).unwrap();
    assert_eq!(answer.finished.reason, FinishReason::Stop);
    assert!(answer.text.contains("Paris"), "{}", answer.text);
}
