//! What loading takes beside what it keeps, in bytes of this thread's allocations: matrices and packed weights are made there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

mod support;

use allocation_counter::measure;
use halite_cpu::Tier;
use halite_engine::weights_cache::WeightsCache;
use halite_engine::{Engine, KvCapacity, WeightsFormat};
use support::{cpu, model_file, options};

/// The most bytes at once, as a part of the weights; what the KV cache takes is left out.
fn peak(weights: WeightsFormat, folder: &std::path::Path) -> (bool, f64) {
    let cache = WeightsCache::new(folder, model_file()).unwrap();
    // Little beside the weights: rows to work in, and the logits of a few.
    let options = options(weights).kv(KvCapacity::Tokens(16)).max_batch_tokens(8).max_sequences(1);
    let options = options.weights_cache(cache);
    let mut engine = None;
    let taken = measure(|| {
        engine = Some(Engine::load(cpu(2, Tier::best()), model_file(), &options, &mut |_| {}).unwrap());
    });
    let info = engine.as_ref().unwrap().describe();
    (info.weights_restored, (taken.bytes_max - info.kv_bytes) as f64 / info.weight_bytes as f64)
}

/// A matrix goes before the next one comes; what is kept is mapped, not read into memory.
#[test]
fn loading_takes_less_than_a_third_more_than_the_weights() {
    let folder = tempfile::tempdir().unwrap();
    for weights in [WeightsFormat::W4a8, WeightsFormat::W8a8, WeightsFormat::Bf16] {
        for start in ["first", "second"] {
            let (restored, peak) = peak(weights, folder.path());
            println!("{weights}, {start} start: {peak:.3} of the weights");
            assert_eq!(restored, start == "second");
            assert!(peak < 1.3, "{weights}, {start} start: {peak}");
        }
    }
}
