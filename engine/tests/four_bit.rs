//! Weights of 4 bits: blocks as the file has them, and groups that are quantised here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

mod support;

use half::f16;
use halite_cpu::Tier;
use halite_engine::gguf::GgufFile;
use halite_engine::model_file::{FourBit, ModelFile, ModelFolder};
use halite_engine::{Engine, EngineOptions, KvFormat, WeightsFormat};
use halite_kernels::DType;
use halite_kernels::linear::WeightFormat;
use halite_kernels::quantize::int4_per_group;
use support::checkpoints::{checkpoint, expected_logits, tokens};
use support::split_experts::split;
use support::tiny_model::{Random, TinyModel, VOCABULARY};
use support::{cpu, model_file};

fn logits(file: &dyn ModelFile, weights: WeightsFormat, tokens: &[u32], tier: Tier) -> Vec<Vec<f32>> {
    let options = EngineOptions::new().weights(weights).kv_dtype(DType::F32);
    let mut engine = Engine::from_file(cpu(2, tier), file, &options, &mut |_| {}).unwrap();
    let config = file.config().unwrap();
    let foretold = config.memory(weights, KvFormat::Float(DType::F32)).weights;
    assert_eq!(engine.describe().weight_bytes, foretold, "what inspect foretells is what loading takes");
    engine.logits(tokens, &(0..tokens.len()).collect::<Vec<_>>()).unwrap()
}

/// The difference of all logits, as a part of them: root mean squares.
fn error(got: &[Vec<f32>], expected: &[Vec<f32>]) -> f64 {
    let square = |x: f32| f64::from(x).powi(2);
    let pairs = || got.iter().flatten().zip(expected.iter().flatten());
    let wrong: f64 = pairs().map(|(a, b)| square(a - b)).sum();
    (wrong / pairs().map(|(_, b)| square(*b)).sum::<f64>()).sqrt()
}

/// The model's matrices as they are when rounded to groups of 4 bits: what is kept, as floats.
fn rounded(mut model: TinyModel) -> TinyModel {
    for (name, tensor) in &mut model.tensors {
        let &[_, columns] = tensor.shape.as_slice() else { continue };
        if name != "token_embd.weight" {
            let kept = int4_per_group(&tensor.values, columns, 32).unwrap();
            let rows = kept.q.chunks(columns).zip(kept.scales.chunks(columns.div_ceil(32)));
            let row = |(q, scales): (&[i8], &[f32])| -> Vec<f32> {
                q.iter().enumerate().map(|(k, &q)| f32::from(q) * scales[k / 32]).collect()
            };
            tensor.values = rows.flat_map(row).collect();
        }
    }
    model
}

/// Against floats of the rounded weights what differs is INT8: activations, and the table. It is as near as W8A8 is to
/// floats. The rounding itself is some 8 % of a random matrix, and each layer adds its own.
#[test]
fn quantised_weights_are_what_they_are_rounded_to() {
    let tokens = Random(25).tokens(60, VOCABULARY);
    for (name, model) in [("narrow", TinyModel::new(20)), ("wide", TinyModel::wide(20))] {
        let file = |model: &TinyModel| GgufFile::from_bytes(model.bytes()).unwrap();
        let (given, rounded) = (file(&model), file(&rounded(model.clone())));
        let of_given = logits(&given, WeightsFormat::F32, &tokens, Tier::best());
        let of_rounded = logits(&rounded, WeightsFormat::F32, &tokens, Tier::best());
        for tier in Tier::available() {
            let got = logits(&given, WeightsFormat::W4a8, &tokens, tier);
            let (int8, all) = (error(&got, &of_rounded), error(&got, &of_given));
            println!("{name} on {tier}: {int8:.4} from the rounded weights, {all:.4} from the given ones");
            assert!((0.001..0.05).contains(&int8), "{name} on {tier}: {int8}");
            assert!((0.05..0.3).contains(&all), "{name} on {tier}: {all}");
        }
    }
}

/// Mixtures of experts too: random models of a few layers turn 8 % of each matrix into some tens of percents.
#[test]
fn families_are_near_their_floats() {
    for name in ["llama2", "smollm2", "qwen3", "gemma2", "mixtral", "qwen3-moe"] {
        let file = ModelFolder::open(checkpoint(name)).unwrap();
        let tokens = tokens(name);
        let got = logits(&file, WeightsFormat::W4a8, &tokens, Tier::best());
        let found = error(&got, &expected_logits(name, got[0].len()));
        println!("{name}: {found:.3}");
        assert!((0.01..0.7).contains(&found), "{name}: {found}");
    }
}

/// Random blocks of a type, with scales of either sign.
fn blocks(random: &mut Random, ty: u32, values: usize) -> (u32, Vec<u8>) {
    let mut half = |size: f32| f16::from_f32(random.next() * size).to_le_bytes();
    let (bytes, count, numbers) = match ty {
        2 => (18, values / 32, 1),
        3 => (20, values / 32, 2),
        _ => (144, values / 256, 2),
    };
    let mut data = Vec::new();
    for _ in 0..count {
        // A factor of Q4_K is up to 63.
        let (scale, min) = if ty == 12 { (0.0004, 0.002) } else { (0.02, 0.1) };
        data.extend(half(scale));
        if numbers == 2 {
            data.extend(half(min));
        }
        data.resize(data.len().next_multiple_of(bytes), 0);
    }
    for block in data.chunks_exact_mut(bytes) {
        block[2 * numbers..].iter_mut().for_each(|byte| *byte = (random.bits() >> 56) as u8);
    }
    (ty, data)
}

/// One layer of Q4_0 and Q4_1, one with a part of another kind in two of its matrices.
fn mixed() -> TinyModel {
    let mut model = TinyModel::wide(21);
    let mut random = Random(22);
    for (name, ty) in [
        ("blk.0.attn_q", 2),
        ("blk.0.attn_k", 2),
        ("blk.0.attn_v", 2),
        ("blk.0.attn_output", 3),
        ("blk.0.ffn_gate", 3),
        ("blk.0.ffn_up", 3),
        ("blk.0.ffn_down", 12),
        ("blk.1.attn_q", 12),
        ("blk.1.attn_k", 12),
        ("blk.1.ffn_gate", 2),
        ("blk.1.ffn_up", 12),
    ] {
        let name = format!("{name}.weight");
        let values = model.tensors[&name].values.len();
        model.stored.insert(name, blocks(&mut random, ty, values));
    }
    model
}

#[test]
fn a_file_of_several_types_is_used_as_it_is_where_it_can_be() {
    let file = GgufFile::from_bytes(mixed().bytes()).unwrap();
    let stored = FourBit::Stored;
    let [first, second] = file.config().unwrap().four_bit.try_into().unwrap();
    assert_eq!((first.qkv, first.attention_out), (stored(WeightFormat::Q4_0), stored(WeightFormat::Q4_1)));
    assert_eq!((first.gate_up, first.down), (stored(WeightFormat::Q4_1), stored(WeightFormat::Q4K)));
    assert_eq!((second.qkv, second.attention_out), (FourBit::Int8, FourBit::Quantized));
    assert_eq!((second.gate_up, second.down), (FourBit::Int8, FourBit::Quantized));
    let tokens = Random(23).tokens(60, VOCABULARY);
    let expected = logits(&file, WeightsFormat::F32, &tokens, Tier::best());
    for tier in Tier::available() {
        let found = error(&logits(&file, WeightsFormat::W4a8, &tokens, tier), &expected);
        println!("{tier}: {found:.4}");
        assert!((0.001..0.2).contains(&found), "{tier}: {found}");
    }
}

/// The file's experts are Q4_1 and stay so: what differs from floats is the rounding of activations.
#[test]
fn stored_experts_are_used_as_they_are() {
    let file = GgufFile::from_bytes(split(&std::fs::read(model_file()).unwrap())).unwrap();
    let layers = file.config().unwrap().four_bit;
    let q4_1 = FourBit::Stored(WeightFormat::Q4_1);
    assert!(layers.iter().all(|layer| layer.gate_up == q4_1 && layer.down == q4_1), "{layers:?}");
    let tokens = Random(24).tokens(24, 40_000);
    let expected = logits(&file, WeightsFormat::F32, &tokens, Tier::best());
    let found = error(&logits(&file, WeightsFormat::W4a8, &tokens, Tier::best()), &expected);
    println!("{found:.4}");
    assert!((0.001..0.2).contains(&found), "{found}");
}
