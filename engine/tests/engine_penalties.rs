//! What a request asks of its logits: penalties and biases.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

mod support;

use halite_cpu::Tier;
use halite_engine::gguf::GgufFile;
use halite_engine::runner::MAX_LOGIT_BIASES;
use halite_engine::{Engine, EngineError, EngineOptions, Event, Penalties, Request, SamplingParams};
use std::collections::BTreeMap;
use support::cpu;
use support::tiny_model::{Random, TinyModel, VOCABULARY};

fn engine(model: &TinyModel, options: &EngineOptions) -> Engine {
    let file = GgufFile::from_bytes(model.bytes()).unwrap();
    Engine::from_file(cpu(2, Tier::best()), &file, options, &mut |_| {}).unwrap()
}

/// All logits are 0, so that nothing but what a request asks decides: ties go to the lowest id.
fn flat() -> Engine {
    let mut model = TinyModel::new(6);
    model.untie(1);
    model.tensors.get_mut("output.weight").unwrap().values.fill(0.0);
    engine(&model, &EngineOptions::new())
}

fn generated(engine: &mut Engine, request: Request) -> Vec<u32> {
    engine.generate(request, &mut |_| {}).unwrap().finished.generated
}

#[test]
fn tokens_of_the_answer_lose_by_presence_and_by_frequency() {
    let mut engine = flat();
    let all: Vec<u32> = (0..VOCABULARY as u32).collect();
    let request = || Request::new(vec![0; 5], VOCABULARY + 3);
    let none = Penalties::NONE;
    assert_eq!(generated(&mut engine, request()), vec![0; VOCABULARY + 3]);
    // The prompt's tokens lose nothing by either.
    let presence = request().penalties(none.with_presence(1.0));
    assert_eq!(generated(&mut engine, presence), [&all[..], &[0, 0, 0]].concat());
    let frequency = request().penalties(none.with_frequency(0.5));
    assert_eq!(generated(&mut engine, frequency), [&all[..], &[0, 1, 2]].concat());
    let gains = request().penalties(none.with_frequency(-0.5)).logit_bias(BTreeMap::from([(7, 0.1)]));
    assert_eq!(generated(&mut engine, gains), vec![7; VOCABULARY + 3]);
}

#[test]
fn biases_are_added_after_penalties() {
    let mut engine = flat();
    let request = Request::new(vec![3], 6).logit_bias(BTreeMap::from([(0, -1.0), (5, 2.5), (66, -100.0)]));
    assert_eq!(generated(&mut engine, request.clone()), [5; 6]);
    let request = request.penalties(Penalties::NONE.with_frequency(1.0));
    assert_eq!(generated(&mut engine, request), [5, 5, 5, 1, 2, 3]);
}

#[test]
fn a_repetition_penalty_keeps_out_what_was_there() {
    let mut engine = engine(&TinyModel::new(6), &EngineOptions::new());
    let prompt = vec![5, 9, 9, 20];
    let penalties = Penalties::NONE.with_repetition(1e6);
    let mut drawn = generated(&mut engine, Request::new(prompt.clone(), 12).penalties(penalties));
    assert!(drawn.iter().all(|token| !prompt.contains(token)), "{drawn:?}");
    drawn.sort_unstable();
    drawn.dedup();
    assert_eq!(drawn.len(), 12, "none comes twice: {drawn:?}");
}

/// Histories that together are longer than a plan has room for, requests that ask for nothing among them.
#[test]
fn others_in_the_batch_change_nothing() {
    let model = TinyModel::new(6);
    let mut random = Random(5);
    let requests: Vec<Request> = (0..9)
        .map(|number| {
            let prompt = random.tokens(20 + 60 * number, VOCABULARY);
            let request = Request::new(prompt, 25).sampling(SamplingParams::seeded(1.0, number as u64));
            let penalties = Penalties::NONE.with_repetition(1.3).with_presence(0.4).with_frequency(0.2);
            match number % 4 {
                0 => request,
                1 => request.penalties(penalties),
                2 => request.logit_bias((0..40).map(|token| (token, 0.1 * token as f32)).collect()),
                _ => request.penalties(penalties).logit_bias(BTreeMap::from([(3, 2.0), (60, -3.0)])),
            }
        })
        .collect();
    let alone: Vec<Vec<u32>> = requests
        .iter()
        .map(|request| generated(&mut engine(&model, &EngineOptions::new()), request.clone()))
        .collect();
    for chunk in [64, 2048] {
        let mut engine = engine(&model, &EngineOptions::new().max_batch_tokens(chunk));
        let ids: Vec<_> = requests.iter().map(|request| engine.add(request.clone()).unwrap()).collect();
        let mut drawn = BTreeMap::new();
        while !engine.is_idle() {
            for event in engine.step().unwrap() {
                if let Event::Finished(finished) = event {
                    drawn.insert(finished.id, finished.generated);
                }
            }
        }
        for (number, id) in ids.iter().enumerate() {
            assert_eq!(drawn[id], alone[number], "request {number}, steps of {chunk}");
        }
    }
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let mut engine = flat();
    let request = || Request::new(vec![3], 6);
    let refused = |engine: &mut Engine, request| {
        let error = engine.add(request).unwrap_err();
        assert!(matches!(error, EngineError::Device(_) | EngineError::Option { .. }), "{error:?}");
        error.to_string()
    };
    for (request, named) in [
        (request().penalties(Penalties::NONE.with_repetition(0.0)), "repetition"),
        (request().penalties(Penalties::NONE.with_presence(f32::NAN)), "presence"),
        (request().logit_bias(BTreeMap::from([(VOCABULARY as u32, 1.0)])), "bias"),
        (request().logit_bias(BTreeMap::from([(3, f32::INFINITY)])), "bias"),
        (
            request().logit_bias((0..=MAX_LOGIT_BIASES as u32).map(|token| (token, 1.0)).collect()),
            "logit_bias",
        ),
    ] {
        let message = refused(&mut engine, request);
        assert!(message.contains(named), "{named}: {message}");
    }
    assert!(engine.is_idle());
}
