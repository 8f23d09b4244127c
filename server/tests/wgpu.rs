//! The default model on the wgpu backend, against golden figures and together with the CPU.

#![cfg(feature = "wgpu")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests: outside of test functions too"
)]

mod support;

use halite_cpu::Cpu;
use halite_engine::runner::{Runner, SequencePart, StepBatch};
use halite_engine::store::{self, Cache, DEFAULT_MODEL};
use halite_engine::{Engine, EngineOptions, KvCapacity, SamplingParams, WeightsFormat, model, model_file};
use halite_wgpu::Wgpu;
use std::path::PathBuf;
use support::{halite, json};

/// The default model's file.
fn fetched() -> PathBuf {
    let file = Cache::open(None).and_then(|cache| store::cached(DEFAULT_MODEL, &cache));
    file.unwrap_or_else(|error| panic!("{error}\nrun: cargo run --release -- pull {DEFAULT_MODEL}"))
}

fn golden() -> serde_json::Value {
    json(include_str!("../../engine/tests/fixtures/golden/smollm2-135m-f32.json"))
}

fn tokens(of: &serde_json::Value) -> Vec<u32> {
    of.as_array().unwrap().iter().map(|token| token.as_u64().unwrap() as u32).collect()
}

fn options(weights: WeightsFormat) -> EngineOptions {
    EngineOptions::new().weights(weights).context(512).kv(KvCapacity::Tokens(512)).max_sequences(1)
}

fn gpu() -> Wgpu {
    Wgpu::new(halite_wgpu::Options::default()).unwrap()
}

fn cpu() -> Cpu {
    Cpu::new(halite_cpu::Options::default()).unwrap()
}

/// Of the first window: drivers that compute on the CPU take a minute for it.
#[test]
fn likelihoods_are_the_golden_ones() {
    let window = &golden()["windows"][0];
    for (weights, allowed) in [(WeightsFormat::F32, 0.002), (WeightsFormat::W8a8, 0.05)] {
        let mut engine = Engine::load(gpu(), fetched(), &options(weights), &mut |_| {}).unwrap();
        let nll = engine.score(&tokens(&window["token_ids"])).unwrap();
        let mean = nll.iter().map(|&nll| f64::from(nll)).sum::<f64>() / nll.len() as f64;
        let difference = mean - window["mean_nll"].as_f64().unwrap();
        println!("{weights}: mean {mean:.6}, golden {}, difference {difference:+.6}", window["mean_nll"]);
        assert!(difference.abs() < allowed, "{weights}: {difference}");
    }
}

/// A part of a sequence that lies in these blocks; the token after it, if asked for.
fn step(runner: &mut dyn Runner, blocks: &[u32], start: usize, tokens: &[u32], ask: bool) -> Option<u32> {
    let size = runner.info().block_size;
    let slot = |position: usize| (blocks[position / size] as usize * size + position % size) as i64;
    let end = start + tokens.len();
    let slot_mapping: Vec<i64> = (start..end).map(slot).collect();
    let block_table = &blocks[..end.div_ceil(size)];
    let mut batch = StepBatch::new();
    let rows = batch.push(SequencePart { start, tokens, slot_mapping: &slot_mapping, block_table });
    if ask {
        batch.samples.push((rows.end - 1, SamplingParams::greedy().at(end as u64)));
    }
    runner.step(&batch).unwrap().tokens.first().copied()
}

/// Greedy tokens after a sequence whose last token is not computed yet.
fn decode(runner: &mut dyn Runner, blocks: &[u32], tokens: &[u32], count: usize) -> Vec<u32> {
    let mut all = tokens.to_vec();
    while all.len() < tokens.len() + count {
        let last = all.len() - 1;
        let next = step(runner, blocks, last, &all[last..], true);
        all.extend(next);
    }
    all.split_off(tokens.len())
}

#[test]
fn a_prompt_computed_on_the_gpu_is_answered_on_the_cpu() {
    let golden = golden();
    let prompt = tokens(&golden["greedy"][2]["prompt_token_ids"]);
    let (prefill, count) = (prompt.len() - 1, 24);
    let file = model_file::open(fetched()).unwrap();
    let options = options(WeightsFormat::F32);
    let alone = {
        let mut runner = model::load_runner(cpu(), &*file, &options, &mut |_| {}).unwrap();
        let blocks = [0, 1, 2, 3];
        step(&mut *runner, &blocks, 0, &prompt[..prefill], false);
        decode(&mut *runner, &blocks, &prompt, count)
    };
    let exported = {
        let mut runner = model::load_runner(gpu(), &*file, &options, &mut |_| {}).unwrap();
        let blocks = [7, 2, 5];
        step(&mut *runner, &blocks, 0, &prompt[..prefill], false);
        runner.export_blocks(&blocks).unwrap()
    };
    let mut runner = model::load_runner(cpu(), &*file, &options, &mut |_| {}).unwrap();
    let blocks = [3, 9, 4, 1];
    runner.import_blocks(&blocks[..3], &exported).unwrap();
    assert_eq!(decode(&mut *runner, &blocks, &prompt, count), alone);
    assert_eq!(alone[..8], tokens(&golden["greedy"][2]["output_token_ids"])[..8]);
}

#[test]
fn the_program_answers_as_on_the_cpu() {
    fetched();
    let run = |device: &str| {
        let run = ["run", "--weights", "bf16", "--device", device, "What is the capital of France?"];
        halite(&run)
    };
    let gpu = run("wgpu");
    for part in ["compiling kernels", "bf16 on wgpu vulkan"] {
        assert!(gpu.stderr.contains(part), "{gpu:?}");
    }
    assert_eq!(gpu.success(), run("cpu").success());
}
