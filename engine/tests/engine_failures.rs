//! Devices that fail and steps that make no sense: what is lost is what was in the step.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

mod support;

use halite_cpu::Tier;
use halite_engine::gguf::GgufFile;
use halite_engine::model::load_runner;
use halite_engine::model_file::ModelTexts;
use halite_engine::runner::{ModelInfo, Runner, SequencePart, StepBatch, StepLimits, StepOutput};
use halite_engine::text::{Tokenizer, VocabularySource};
use halite_engine::{
    Engine, EngineError, EngineOptions, Event, FinishReason, KvCapacity, Request, SamplingParams,
};
use std::collections::BTreeSet;
use support::cpu;
use support::tiny_model::{TinyModel, VOCABULARY};

/// A runner whose device fails in some steps.
struct Failing {
    inner: Box<dyn Runner>,
    step: usize,
    fails_in: BTreeSet<usize>,
}

impl Runner for Failing {
    fn info(&self) -> &ModelInfo {
        self.inner.info()
    }

    fn limits(&self) -> StepLimits {
        self.inner.limits()
    }

    fn step(&mut self, batch: &StepBatch) -> Result<StepOutput, EngineError> {
        self.step += 1;
        if self.fails_in.contains(&self.step) {
            let cause = "the cable fell out".to_owned();
            return Err(halite_hal::Error::Device { device: "test".to_owned(), cause }.into());
        }
        self.inner.step(batch)
    }

    fn export_blocks(&mut self, blocks: &[u32]) -> Result<Vec<u8>, EngineError> {
        self.inner.export_blocks(blocks)
    }

    fn import_blocks(&mut self, blocks: &[u32], bytes: &[u8]) -> Result<(), EngineError> {
        self.inner.import_blocks(blocks, bytes)
    }
}

fn file() -> GgufFile {
    GgufFile::from_bytes(TinyModel::new(5).bytes()).unwrap()
}

fn options() -> EngineOptions {
    EngineOptions::new().kv(KvCapacity::Tokens(1024)).max_batch_tokens(32).max_sequences(4)
}

fn runner() -> Box<dyn Runner> {
    load_runner(cpu(1, Tier::best()), &file(), &options(), &mut |_| {}).unwrap()
}

fn engine(fails_in: impl IntoIterator<Item = usize>) -> Engine {
    let failing = Failing { inner: runner(), step: 0, fails_in: fails_in.into_iter().collect() };
    let tokenizer = Tokenizer::new(VocabularySource::from_gguf(file().metadata()).unwrap()).unwrap();
    Engine::new(Box::new(failing), ModelTexts::new(tokenizer, None), &options()).unwrap()
}

#[test]
fn a_failing_step_ends_its_requests_and_no_others() {
    for failing in 1..12 {
        let mut engine = engine([failing]);
        let request = |i: u32| Request::new(vec![i; 20 + 9 * i as usize], 6);
        // More requests than run at once, so that some wait while others fail.
        let ids: Vec<_> = (0..7).map(|i| engine.add(request(i)).unwrap()).collect();
        let (mut failed, mut answered) = (0, 0);
        while !engine.is_idle() {
            for event in engine.step().unwrap() {
                let Event::Finished(finished) = event else { continue };
                assert!(ids.contains(&finished.id));
                match finished.reason {
                    FinishReason::Error(message) => {
                        assert!(message.contains("the cable fell out"), "{message}");
                        failed += 1;
                    }
                    FinishReason::Length => {
                        assert_eq!(finished.generated.len(), 6);
                        answered += 1;
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(failed + answered, 7);
        assert!((1..=4).contains(&failed), "{failed} requests were in failing step {failing}");
        assert_eq!(engine.blocks().used, 0);

        // What comes later is answered as by an engine that never failed.
        let later = engine.generate(request(3), &mut |_| {}).unwrap();
        let expected = sound().generate(request(3), &mut |_| {}).unwrap();
        assert_eq!(later.finished.generated, expected.finished.generated);
    }
}

fn sound() -> Engine {
    engine([])
}

#[test]
fn whoever_waits_for_one_request_is_told() {
    let mut engine = engine([1, 3, 5]);
    let unanswered = |error: EngineError| {
        assert!(matches!(&error, EngineError::Unanswered(text) if text.contains("cable")), "{error}");
    };
    unanswered(engine.generate(Request::new(vec![1, 2], 3), &mut |_| {}).unwrap_err());
    assert_eq!(engine.blocks().used, 0);
    // Step 2 is right, step 3 fails.
    unanswered(engine.score(&[7; 50]).unwrap_err());
    assert!(engine.logits(&[1, 2, 3], &[0, 2]).is_ok());
    unanswered(engine.logits(&[1, 2, 3], &[0, 2]).unwrap_err());
    assert!(engine.is_idle());
    assert_eq!(engine.blocks().used, 0);
}

#[test]
fn events_of_others_wait_while_one_is_followed() {
    let mut engine = engine([]);
    let other = engine.add(Request::new(vec![4; 5], 3)).unwrap();
    let cancelled = engine.add(Request::new(vec![4; 6], 3)).unwrap();
    engine.generate(Request::new(vec![9; 40], 8), &mut |_| {}).unwrap();
    assert!(!engine.is_idle());
    engine.cancel(cancelled);
    let events = engine.step().unwrap();
    let tokens =
        events.iter().filter(|event| matches!(event, Event::Token { id, .. } if *id == other)).count();
    let ends = events.iter().filter(|event| matches!(event, Event::Finished(end) if end.id == other)).count();
    assert_eq!((events.len(), tokens, ends), (4, 3, 1), "{events:?}");
    assert!(engine.is_idle());
}

#[test]
fn scores_are_the_logits_of_the_tokens() {
    let mut engine = engine([]);
    let tokens: Vec<u32> = (0..90).map(|i| i * 31 % VOCABULARY as u32).collect();
    let scores = engine.score(&tokens).unwrap();
    let positions: Vec<usize> = (0..tokens.len() - 1).collect();
    let logits = engine.logits(&tokens, &positions).unwrap();
    for (position, (row, &score)) in logits.iter().zip(&scores).enumerate() {
        let sum: f64 = row.iter().map(|&logit| f64::from(logit).exp()).sum();
        let expected = sum.ln() - f64::from(row[tokens[position + 1] as usize]);
        assert!((expected - f64::from(score)).abs() < 1e-5, "position {position}: {score}, not {expected}");
    }
    // What was computed before must not be skipped the second time.
    assert_eq!(engine.score(&tokens).unwrap(), scores);
}

/// A step of three tokens that works; tests break it.
fn sound_step() -> StepBatch {
    let mut batch = StepBatch::new();
    batch.push(SequencePart { start: 0, tokens: &[1, 2, 3], slot_mapping: &[16, 17, 18], block_table: &[1] });
    batch.samples.push((2, SamplingParams::greedy()));
    batch
}

#[test]
fn steps_that_make_no_sense_are_refused() {
    let mut runner = runner();
    let expected = runner.step(&sound_step()).unwrap();
    assert_eq!(expected.tokens.len(), 1);
    type Break = fn(&mut StepBatch);
    let cases: [(Break, &str); 17] = [
        (|step| step.tokens[0] = VOCABULARY as u32, "vocabulary"),
        (|step| step.tokens.push(0), "positions"),
        (|step| step.positions.truncate(2), "positions"),
        (|step| step.positions[1] = u32::MAX, "positions"),
        (|step| step.slot_mapping.truncate(2), "slot_mapping"),
        (|step| step.slot_mapping[0] = 1 << 40, "slot_mapping"),
        (|step| step.slot_mapping[0] = 17, "slot_mapping"),
        (|step| step.cu_seqlens = vec![], "cu_seqlens"),
        (|step| step.cu_seqlens = vec![0, 4], "cu_seqlens"),
        (|step| step.cu_seqlens = vec![3, 3], "cu_seqlens"),
        (|step| step.kv_lens[0] = u32::MAX, "blocks"),
        (|step| step.kv_lens.push(1), "block_tables"),
        (|step| step.block_tables[0] = vec![u32::MAX], "block_table"),
        (|step| step.block_tables[0] = vec![], "block_table"),
        (|step| step.samples[0].0 = 3, "wanted row"),
        (|step| step.samples[0].1.temperature = -1.0, "temperature"),
        (|step| step.log_probs.push((0, VOCABULARY as u32)), "vocabulary"),
    ];
    for (index, (broken, part)) in cases.into_iter().enumerate() {
        let mut step = sound_step();
        broken(&mut step);
        let error = runner.step(&step).expect_err(&format!("case {index}: {part}")).to_string();
        assert!(error.contains(part), "case {index}: `{error}` does not name `{part}`");
    }
    let mut long = StepBatch::new();
    let (tokens, slot_mapping): (Vec<u32>, Vec<i64>) = ((0..33).collect(), (0..33).collect());
    long.push(SequencePart {
        start: 0,
        tokens: &tokens,
        slot_mapping: &slot_mapping,
        block_table: &[0, 1, 2],
    });
    assert!(runner.step(&long).unwrap_err().to_string().contains("32"));
    let mut beyond = StepBatch::new();
    beyond.push(SequencePart {
        start: usize::MAX - 1,
        tokens: &[1, 2, 3],
        slot_mapping: &[1, 2, 3],
        block_table: &[1],
    });
    assert!(runner.step(&beyond).unwrap_err().to_string().contains("positions"));
    assert!(runner.export_blocks(&[u32::MAX]).is_err());
    assert!(runner.import_blocks(&[0], &[0; 3]).is_err());

    assert_eq!(runner.step(&StepBatch::new()).unwrap(), StepOutput::default(), "nothing is nothing");
    assert_eq!(runner.step(&sound_step()).unwrap(), expected, "the runner works on");
}
