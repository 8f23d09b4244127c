//! What a request gets: its tokens, its text, its end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

mod support;

use halite_cpu::Tier;
use halite_engine::gguf::GgufFile;
use halite_engine::text::TextError;
use halite_engine::{
    Engine, EngineError, EngineOptions, Event, FinishReason, KvCapacity, Request, SamplingParams,
};
use halite_kernels::sampling::uniform;
use support::cpu;
use support::tiny_model::{TinyModel, VOCABULARY, Value};

fn engine(model: &TinyModel, options: &EngineOptions) -> Engine {
    let file = GgufFile::from_bytes(model.bytes()).unwrap();
    Engine::from_file(cpu(1, Tier::best()), &file, options, &mut |_| {}).unwrap()
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

/// Output layers are padded: they may have more rows than the tokenizer has tokens.
#[test]
fn rows_without_a_token_are_never_drawn() {
    let mut model = TinyModel::new(6);
    model.untie(1);
    model.tensors.get_mut("output.weight").unwrap().values.fill(0.0);
    let tokens = 20;
    for key in ["tokenizer.ggml.tokens", "tokenizer.ggml.token_type"] {
        match model.keys.get_mut(key).unwrap() {
            Value::Strs(texts) => texts.truncate(tokens),
            Value::I32s(types) => types.truncate(tokens),
            _ => panic!("{key} is a list"),
        }
    }
    model.set("tokenizer.ggml.eos_token_id", Value::U32(tokens as u32 - 1));
    let mut engine = engine(&model, &EngineOptions::new());
    let request = Request::new(vec![3], 200).sampling(SamplingParams::seeded(1.0, 5));
    let answer = engine.generate(request, &mut |_| {}).unwrap();
    let drawn = answer.finished.generated;
    assert_eq!(drawn.len(), 200);
    assert!(drawn.iter().all(|&id| (id as usize) < tokens), "{drawn:?}");
    assert!(drawn.contains(&(tokens as u32 - 1)) && drawn.contains(&0), "all others are: {drawn:?}");
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
fn a_stop_string_ends_the_answer_just_before_it() {
    let mut engine = engine(&TinyModel::new(6), &EngineOptions::new());
    let prompt = engine.prompt("ABC").unwrap();
    let request = Request::new(prompt, 40).sampling(SamplingParams::seeded(2.0, 5));
    let whole = engine.generate(request.clone(), &mut |_| {}).unwrap();
    let (tokens, len) = (&whole.finished.generated, whole.text.len());
    for (start, length) in [(0, 1), (0, 3), (7, 1), (7, 2), (20, 4), (len - 4, 4)] {
        let stop = &whole.text[start..start + length];
        let found = whole.text.find(stop).unwrap();
        // The stop string is complete with this many tokens.
        let complete = |&end: &usize| engine.tokenizer().decode(&tokens[..end]).unwrap().contains(stop);
        let end = (1..=40).find(complete).unwrap();
        let request = request.clone().stop_strings(["not in it", stop]);
        let mut pieces = String::new();
        let answer = engine.generate(request.clone(), &mut |piece| pieces.push_str(piece)).unwrap();
        assert_eq!(answer.text, whole.text[..found], "before {stop:?}");
        assert_eq!(pieces, answer.text);
        assert_eq!(answer.finished.generated, tokens[..end]);
        assert_eq!(answer.finished.reason, FinishReason::Stop);

        // Also where the token that completes it is the last one that was asked for.
        let mut tight = request.clone();
        tight.max_tokens = end;
        let answer = engine.generate(tight, &mut |_| {}).unwrap();
        assert_eq!((&*answer.text, answer.finished.reason), (&whole.text[..found], FinishReason::Stop));

        // Whoever steps by hand is told of the same end, once.
        let id = engine.add(request).unwrap();
        let mut events = Vec::new();
        while !engine.is_idle() {
            events.extend(engine.step().unwrap());
        }
        assert_eq!(events.len(), end + 1);
        let Some(Event::Finished(finished)) = events.pop() else { panic!("no end: {events:?}") };
        assert_eq!((finished.id, finished.reason), (id, FinishReason::Stop));
        assert_eq!(finished.generated, tokens[..end]);
    }
    // The beginning of a stop string that never comes is part of the answer.
    let almost = format!("{}\u{e9}", &whole.text[len - 2..]);
    let answer = engine.generate(request.clone().stop_strings([almost]), &mut |_| {}).unwrap();
    assert_eq!((answer.text, answer.finished.reason), (whole.text, FinishReason::Length));

    for refused in [vec![String::new()], vec!["x".to_owned(); 65]] {
        let error = engine.add(request.clone().stop_strings(refused)).unwrap_err();
        assert!(matches!(error, EngineError::Text(TextError::StopStrings(_))), "{error}");
    }
    assert_eq!(engine.blocks().used, 0);
}

#[test]
fn a_prompt_takes_a_step_a_chunk_and_has_the_same_answer() {
    let model = TinyModel::new(6);
    let request = Request::new((0..40).collect(), 12).sampling(SamplingParams::seeded(1.5, 3));
    let mut answers = Vec::new();
    for (options, steps) in [
        (EngineOptions::new(), 1),
        (EngineOptions::new().max_batch_tokens(32), 2),
        (EngineOptions::new().prefill_chunk(1), 40),
        (EngineOptions::new().prefill_chunk(7), 6),
        (EngineOptions::new().prefill_chunk(16).max_batch_tokens(32), 3),
        (EngineOptions::new().prefill_chunk(40), 1),
    ] {
        let mut engine = engine(&model, &options);
        engine.add(request.clone()).unwrap();
        for step in 1..=steps {
            let events = engine.step().unwrap();
            assert_eq!(events.is_empty(), step < steps, "step {step} of {options:?}");
        }
        while !engine.is_idle() {
            for event in engine.step().unwrap() {
                if let Event::Finished(finished) = event {
                    answers.push(finished.generated);
                }
            }
        }
    }
    assert_eq!(answers.len(), 6);
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
}

#[test]
fn scoring_finds_no_prefix_and_leaves_none_behind() {
    // Room for the prompt and one score; more would have to evict something.
    let options = EngineOptions::new().block_size(16).kv(KvCapacity::Tokens(96)).context(96);
    let mut engine = engine(&TinyModel::new(6), &options);
    let request = Request::new((0..40).collect(), 1);
    engine.generate(request.clone(), &mut |_| {}).unwrap();
    let cached = engine.blocks();
    assert_eq!((cached.cached, cached.used), (2, 0));
    let tokens: Vec<u32> = (0..60).collect();
    let scores = engine.score(&tokens).unwrap();
    for _ in 0..3 {
        assert_eq!(engine.score(&tokens).unwrap(), scores);
        engine.logits(&tokens, &[0, 20, 59]).unwrap();
        assert_eq!(engine.blocks(), cached);
    }
    let again = engine.generate(request, &mut |_| {}).unwrap();
    assert_eq!(again.finished.cached_tokens, 32);
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
