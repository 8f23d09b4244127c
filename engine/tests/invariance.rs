//! Batch invariance: the logits of a sequence are the same bits alone, in a batch, in chunks, after a prefix hit and
//! for any number of threads.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

mod support;

use halite_cpu::Tier;
use halite_engine::gguf::GgufFile;
use halite_engine::model::load_runner;
use halite_engine::runner::Runner;
use halite_engine::{Engine, Event, KvCapacity, Request, SamplingParams, WeightsFormat};
use std::collections::BTreeMap;
use support::sequences::{Sequence, in_chunks, lay_out, step};
use support::tiny_model::{Random, TinyModel, VOCABULARY};
use support::{cpu, model_file, options};

/// What is compared: the logits' bits by position.
type Bits = BTreeMap<usize, Vec<u32>>;

fn runner(file: &GgufFile, weights: WeightsFormat, threads: usize, tier: Tier) -> Box<dyn Runner> {
    let options = options(weights).kv(KvCapacity::Tokens(4096)).max_batch_tokens(1024);
    load_runner(cpu(threads, tier), file, &options, &mut |_| {}).unwrap()
}

fn same(expected: &Bits, got: &Bits, how: &str) {
    assert_eq!(expected.keys().collect::<Vec<_>>(), got.keys().collect::<Vec<_>>(), "{how}");
    for (position, bits) in expected {
        let different = bits.iter().zip(&got[position]).filter(|(a, b)| a != b).count();
        assert!(different == 0, "{how}: {different} of {} logits differ at position {position}", bits.len());
    }
}

/// The first sequence's logits at `wanted`, in every way there is, against the ones of `reference`.
fn every_way(
    runner: &mut dyn Runner,
    sequences: &[Vec<u32>],
    wanted: &[usize],
    reference: &Bits,
    case: &str,
) {
    // Two more copies of the first, with blocks of their own.
    let with_copies = [sequences, &[sequences[0].clone(), sequences[0].clone()]].concat();
    let mut laid_out = lay_out(runner, &with_copies);
    let copies = laid_out.split_off(sequences.len());
    let (first, len) = (&laid_out[0], laid_out[0].tokens.len());
    same(reference, &in_chunks(runner, first, 0, len, wanted), &format!("{case}: alone"));
    for chunk in [1, 16, 100] {
        let got = in_chunks(runner, first, 0, chunk, wanted);
        same(reference, &got, &format!("{case}: in chunks of {chunk}"));
    }
    same(
        reference,
        &in_a_batch(runner, &laid_out, wanted),
        &format!("{case}: in a batch of {}", laid_out.len()),
    );

    // A prefix hit: a copy begins with blocks that the first has filled.
    let [mut hit, imported] = <[Sequence; 2]>::try_from(copies).unwrap();
    let shared_blocks = (len - 1) / first.block_size / 2;
    let shared = shared_blocks * first.block_size;
    assert!(shared > 0);
    hit.blocks[..shared_blocks].copy_from_slice(&first.blocks[..shared_blocks]);
    let after: Bits = reference.range(shared..).map(|(position, bits)| (*position, bits.clone())).collect();
    let got = in_chunks(runner, &hit, shared, len, wanted);
    same(&after, &got, &format!("{case}: after a prefix hit of {shared}"));

    // The same, but the blocks are brought in from outside.
    let exported = runner.export_blocks(&first.blocks[..shared_blocks]).unwrap();
    runner.import_blocks(&imported.blocks[..shared_blocks], &exported).unwrap();
    let got = in_chunks(runner, &imported, shared, len, wanted);
    same(&after, &got, &format!("{case}: after importing {shared}"));
}

/// All prompts in one step, the first in the middle of the batch.
fn in_a_batch(runner: &mut dyn Runner, sequences: &[Sequence], wanted: &[usize]) -> Bits {
    let mut order: Vec<usize> = (0..sequences.len()).collect();
    order.rotate_left(sequences.len() / 2 + 1);
    let parts: Vec<_> = order.iter().map(|&i| (i, &sequences[i], 0..sequences[i].tokens.len())).collect();
    let all = step(runner, &parts, wanted);
    all.into_iter()
        .filter(|((name, _), _)| *name == 0)
        .map(|((_, position), bits)| (position, bits))
        .collect()
}

/// A sequence of `len` tokens, the one under test, and six others.
fn sequences(random: &mut Random, len: usize, vocabulary: usize) -> Vec<Vec<u32>> {
    [len, 1, 5, 17, 33, 100, 130].iter().map(|&len| random.tokens(len, vocabulary)).collect()
}

#[test]
fn tiny_model_on_every_tier() {
    let mut model = TinyModel::new(7);
    // Keys and values in one part, and in three.
    for (untied, len) in [(false, 150), (true, 600)] {
        if untied {
            model.untie(8);
        }
        let file = GgufFile::from_bytes(model.bytes()).unwrap();
        let sequences = sequences(&mut Random(9), len, VOCABULARY);
        let wanted: Vec<usize> = (0..len).collect();
        for tier in Tier::available() {
            for weights in WeightsFormat::ALL {
                let mut one = runner(&file, weights, 1, tier);
                let laid_out = lay_out(&*one, &sequences);
                let reference = in_chunks(&mut *one, &laid_out[0], 0, len, &wanted);
                assert!(reference.values().flatten().all(|&bits| f32::from_bits(bits).is_finite()));
                for threads in [1, 2, 3] {
                    let mut runner = runner(&file, weights, threads, tier);
                    let case = format!("{weights} on {tier} with {threads} threads, {len} tokens");
                    every_way(&mut *runner, &sequences, &wanted, &reference, &case);
                }
            }
        }
    }
}

fn default_model(weights: WeightsFormat) {
    let file = GgufFile::open(model_file()).unwrap();
    let tier = Tier::best();
    let mut two = runner(&file, weights, 2, tier);
    let sequences = sequences(&mut Random(11), 150, two.info().vocabulary);
    let wanted = [0, 1, 15, 16, 63, 99, 100, 148, 149];
    let laid_out = lay_out(&*two, &sequences);
    let reference = in_chunks(&mut *two, &laid_out[0], 0, 150, &wanted);
    every_way(&mut *two, &sequences, &wanted, &reference, &format!("{weights} with 2 threads"));
    drop(two);
    let mut one = runner(&file, weights, 1, tier);
    let got = in_chunks(&mut *one, &laid_out[0], 0, 150, &wanted);
    same(&reference, &got, &format!("{weights} with 1 thread"));
    same(
        &reference,
        &in_a_batch(&mut *one, &laid_out, &wanted),
        &format!("{weights} with 1 thread in a batch"),
    );
}

#[test]
fn default_model_f32() {
    default_model(WeightsFormat::F32);
}

#[test]
fn default_model_bf16() {
    default_model(WeightsFormat::Bf16);
}

#[test]
fn default_model_w8a8() {
    default_model(WeightsFormat::W8a8);
}

#[test]
fn default_model_w4a8() {
    default_model(WeightsFormat::W4a8);
}

/// Tokens of a cache that is too small for all requests.
const TIGHT: usize = 256;

/// Runs all requests at once; returns each one's tokens, and how many of its prompt's were found in the cache.
fn answers(engine: &mut Engine, requests: &[Request]) -> Vec<(Vec<u32>, usize)> {
    let ids: Vec<_> = requests.iter().map(|request| engine.add(request.clone()).unwrap()).collect();
    let mut streamed: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    let mut finished = BTreeMap::new();
    while !engine.is_idle() {
        for event in engine.step().unwrap() {
            match event {
                Event::Token { id, token } => streamed.entry(id).or_default().push(token),
                Event::Finished(end) => {
                    finished.insert(end.id, end);
                }
                other => panic!("{other:?}"),
            }
        }
    }
    let ends = ids.iter().map(|id| finished.remove(id).unwrap());
    ends.map(|end| {
        assert_eq!(streamed.remove(&end.id).unwrap_or_default(), end.generated);
        (end.generated, end.cached_tokens)
    })
    .collect()
}

#[test]
fn requests_get_what_they_would_get_alone() {
    let file = GgufFile::from_bytes(TinyModel::new(3).bytes()).unwrap();
    let mut random = Random(4);
    let shared = random.tokens(40, VOCABULARY);
    let requests: Vec<Request> = (0..12u64)
        .map(|i| {
            let own = random.tokens(1 + 13 * i as usize % 90, VOCABULARY);
            let prompt = if i % 3 == 0 { [shared.as_slice(), &own].concat() } else { own };
            let sampling = if i % 2 == 0 {
                SamplingParams::greedy()
            } else {
                SamplingParams::seeded(1.5, i).with_top_p(0.95)
            };
            Request::new(prompt, 20).sampling(sampling)
        })
        .collect();
    for weights in WeightsFormat::ALL {
        // Few blocks, so that requests are preempted and computed again.
        let options = options(weights).max_batch_tokens(64).max_sequences(8).block_size(8);
        let roomy = options.clone().kv(KvCapacity::Tokens(8 * TIGHT));
        let alone: Vec<_> = requests
            .iter()
            .map(|request| {
                let engine = Engine::from_file(cpu(1, Tier::best()), &file, &roomy, &mut |_| {});
                answers(&mut engine.unwrap(), std::slice::from_ref(request)).remove(0).0
            })
            .collect();
        let tight = options.kv(KvCapacity::Tokens(TIGHT));
        let mut engine = Engine::from_file(cpu(2, Tier::best()), &file, &tight, &mut |_| {}).unwrap();
        let together = answers(&mut engine, &requests);
        for (index, (expected, (got, _))) in alone.iter().zip(&together).enumerate() {
            assert_eq!(got, expected, "{weights}: request {index}");
        }
        let cached: usize = answers(&mut engine, &requests[9..10])[0].1;
        assert!(cached >= 40 / 8 * 8, "{weights}: only {cached} tokens of the prompt were found again");
        let again = answers(&mut engine, &requests);
        assert!(
            again.iter().zip(&alone).all(|(again, alone)| again.0 == *alone),
            "{weights}: the second time"
        );
        let blocks = engine.blocks();
        assert_eq!(blocks.used, 0, "{blocks:?}");
    }
}
