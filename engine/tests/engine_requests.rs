//! What a request gets: its tokens, its text, its end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

mod support;

use halite_cpu::Tier;
use halite_engine::gguf::GgufFile;
use halite_engine::{Engine, EngineError, EngineOptions, Event, FinishReason, Request, SamplingParams};
use halite_kernels::sampling::uniform;
use support::cpu;
use support::tiny_model::{TinyModel, VOCABULARY};

fn engine(model: &TinyModel, options: &EngineOptions) -> Engine {
    let file = GgufFile::from_bytes(model.bytes()).unwrap();
    Engine::from_gguf(cpu(1, Tier::best()), &file, options, &mut |_| {}).unwrap()
}

#[test]
fn seed_and_position_decide_a_draw() {
    // All logits are 0: every token is as likely as any other, and candidates are in the order of their ids.
    let mut model = TinyModel::new(6);
    model.untie(1);
    model.tensors.get_mut("output.weight").unwrap().values.fill(0.0);
    for chunk in [1, 7, 512] {
        let options = EngineOptions::new().max_batch_tokens(chunk).max_sequences(1);
        let mut engine = engine(&model, &options);
        for seed in [0, 1, u64::MAX] {
            let request = Request::new(vec![3; 20], 30).sampling(SamplingParams::seeded(1.0, seed));
            let answer = engine.generate(request, &mut |_| {}).unwrap();
            // The first token drawn has position 20.
            let draws = (20..50).map(|position| uniform(seed, position) * VOCABULARY as f32);
            for (index, (draw, token)) in draws.zip(answer.finished.generated).enumerate() {
                // A running sum of 67 roundings may fall on the other side of a border.
                assert!(
                    (draw - (token as f32 + 0.5)).abs() < 0.5001,
                    "seed {seed}, token {index}: {token}, {draw}"
                );
            }
        }
    }
}

#[test]
fn a_stop_token_ends_the_answer_and_is_no_part_of_it() {
    let mut engine = engine(&TinyModel::new(6), &EngineOptions::new());
    let prompt = engine.prompt("HELLO").unwrap();
    let whole = engine.generate(Request::new(prompt.clone(), 12), &mut |_| {}).unwrap();
    assert_eq!(whole.finished.reason, FinishReason::Length);
    let tokens = whole.finished.generated;
    let last = *tokens.last().unwrap();
    let until = tokens.iter().position(|&token| token == last).unwrap();
    let request = Request::new(prompt, 12).stop_tokens([last]);
    let stopped = engine.generate(request, &mut |_| {}).unwrap();
    assert_eq!(stopped.finished.reason, FinishReason::Stop);
    assert_eq!(stopped.finished.generated, tokens[..until]);
}

#[test]
fn pieces_put_together_are_the_text() {
    let mut engine = engine(&TinyModel::new(6), &EngineOptions::new());
    let prompt = engine.prompt("ABC").unwrap();
    let request = Request::new(prompt, 40).sampling(SamplingParams::seeded(2.0, 5));
    let mut pieces = String::new();
    let answer = engine.generate(request, &mut |piece| pieces.push_str(piece)).unwrap();
    assert_eq!(pieces, answer.text);
    assert_eq!(answer.text, engine.tokenizer().decode(&answer.finished.generated).unwrap());
    assert!(answer.elapsed >= answer.time_to_first_token);
    assert!(answer.prompt_tokens_per_s() > 0.0);
    assert!(answer.generated_tokens_per_s().is_some());
}

#[test]
fn a_cancelled_request_gives_everything_back() {
    let mut engine = engine(&TinyModel::new(6), &EngineOptions::new().max_batch_tokens(16).max_sequences(2));
    // Cancelled in the middle of its prompt, while it answers, and while it waits.
    for steps in 0..8 {
        let kept = engine.add(Request::new(vec![1; 30], 4)).unwrap();
        let cancelled = engine.add(Request::new(vec![2; 40], 9)).unwrap();
        let waiting = engine.add(Request::new(vec![3; 5], 9)).unwrap();
        for _ in 0..steps {
            engine.step().unwrap();
        }
        for id in [cancelled, waiting] {
            if let Some(finished) = engine.cancel(id) {
                assert_eq!(finished.reason, FinishReason::Cancelled);
            }
            assert_eq!(engine.cancel(id), None);
        }
        while !engine.is_idle() {
            for event in engine.step().unwrap() {
                match event {
                    Event::Token { id, .. } => assert_eq!(id, kept),
                    Event::Finished(finished) => assert_eq!(finished.id, kept),
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(engine.blocks().used, 0, "after {steps} steps");
    }
}

#[test]
fn a_model_without_a_chat_template_says_so() {
    let engine = engine(&TinyModel::new(6), &EngineOptions::new());
    assert!(!engine.has_chat_template());
    assert!(matches!(engine.chat_prompt(Vec::new()), Err(EngineError::NoChatTemplate)));
}
