//! Links `halite` as a stranger's crate does, and checks the answers on data of its own.

use halite::cpu::{Cpu, Options};
use halite::hal::{DType, Device, Error, Result, Stream, Tensor};
use halite::kernels::attention::{
    Attention, AttentionArgs, AttentionCapacity, AttentionOut, AttentionSpec, AttentionStep,
};
use halite::kernels::cache::{CacheWriteArgs, KvCacheOps, KvSpec, SlotMapping};
use halite::kernels::linear::{Activations, Epilogue, HostWeights, Linear, LinearArgs, LinearSpec};

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let device = Cpu::new(Options::default().threads(1))?;
    let attention = decode(&device)?;
    let expected = decode_plainly();
    let close = attention.iter().zip(expected).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-6 * b.abs());
    println!("paged attention: {attention:?}, expected {expected:?}");
    let linear = linear(&device)?;
    println!("W8A8 linear: {linear:?}, expected {LINEAR:?}");
    let refusal = linear_of_a_wrong_shape(&device)?;
    println!("a wrong shape: {refusal}");
    let typed = matches!(refusal, Error::Argument { operator: "linear", argument: "q", .. });
    if close && linear == LINEAR && typed { Ok(()) } else { Err("an answer is wrong".into()) }
}

/// Five positions, in blocks of two: block 3, then 0, then half of 2. Small whole numbers are exact in BF16.
const BLOCKS: [i32; 3] = [3, 0, 2];
const KEYS: [[f32; 2]; 5] = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.0], [2.0, -1.0]];
const VALUES: [[f32; 2]; 5] = [[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0], [5.0, 50.0]];
const QUERY: [f32; 2] = [0.5, -0.25];

/// One query row of one head over all five positions.
fn decode(device: &Cpu) -> Result<Vec<f32>> {
    let stream = &mut device.stream()?;
    let kv = KvSpec::new(1, 1, 2).with_block_size(2);
    let cache = device.kv_cache(&kv, 4)?;
    let mut slots = device.slots_plan(&cache, 5)?;
    let slot_mapping: Vec<i64> = (0..5).map(|at| i64::from(BLOCKS[at / 2]) * 2 + at as i64 % 2).collect();
    let mapping = SlotMapping { slots: &slot_mapping }.check(&slots)?;
    device.slots_update(stream, &mut slots, &mapping)?;
    let k = Tensor::from_slice(stream, KEYS.as_flattened(), &[5, 1, 2])?;
    let v = Tensor::from_slice(stream, VALUES.as_flattened(), &[5, 1, 2])?;
    let write = CacheWriteArgs { slots: &slots, cache: &cache, layer: 0, k: &k, v: &v };
    device.cache_write(stream, write.check()?)?;

    let capacity =
        AttentionCapacity { max_tokens: 1, max_sequences: 1, max_blocks_per_sequence: 3, cache_blocks: 4 };
    let mut plan = device.attention_plan(&AttentionSpec::causal(1, kv), &capacity)?;
    stream.reserve(device.attention_workspace(&plan))?;
    let step = AttentionStep {
        cu_seqlens: &[0, 1],
        kv_lens: &[5],
        kv_ranges: &[],
        block_table: &BLOCKS,
        tree_parents: &[],
    }
    .check(&plan)?;
    device.attention_update(stream, &mut plan, &step)?;
    let q = Tensor::from_slice(stream, &QUERY, &[1, 1, 2])?;
    let out = Tensor::new(device, DType::F32, &[1, 1, 2])?;
    let args = AttentionArgs {
        plan: &plan,
        cache: &cache,
        layer: 0,
        q: &q,
        state_in: None,
        out: AttentionOut::Normalised(&out),
        sinks: None,
        log_sum_exp: None,
    };
    device.attention(stream, args.check()?)?;
    out.to_vec(stream)
}

fn decode_plainly() -> [f64; 2] {
    let dot = |key: &[f32; 2]| f64::from(QUERY[0] * key[0] + QUERY[1] * key[1]);
    let weights = KEYS.map(|key| (dot(&key) / 2.0f64.sqrt()).exp());
    let sum: f64 = weights.iter().sum();
    [0, 1].map(|d| weights.iter().zip(VALUES).map(|(w, value)| w * f64::from(value[d])).sum::<f64>() / sum)
}

/// Scales are powers of two, so every answer is exact.
const LINEAR: [f32; 4] = [14.0 * 0.5 * 2.0, -6.0 * 0.25 * 2.0, -381.0 * 0.5 * 0.125, 127.0 * 0.25 * 0.125];

/// Two tokens `[2, 3]` times two channels `[2, 3]` transposed.
fn linear(device: &Cpu) -> Result<Vec<f32>> {
    linear_of(device, &[1, 2, 3, -127, 0, 0], &[2, 3])
}

fn linear_of_a_wrong_shape(device: &Cpu) -> std::result::Result<Error, &'static str> {
    linear_of(device, &[1, 2, 3, -127], &[2, 2]).err().ok_or("two columns were multiplied with three")
}

fn linear_of(device: &Cpu, x: &[i8], dims: &[usize]) -> Result<Vec<f32>> {
    let stream = &mut device.stream()?;
    let spec = LinearSpec::w8a8(3, 2);
    let host = HostWeights::Int8PerChannel { q: &[3, 1, 3, -1, -1, -1], scales: &[0.5, 0.25] };
    let weights = device.linear_pack(stream, host.check(&spec)?)?;
    let q = Tensor::from_slice(stream, x, dims)?;
    let scales = Tensor::from_slice(stream, &[2.0f32, 0.125], &[2])?;
    let out = Tensor::new(device, DType::F32, &[2, 2])?;
    let x = Activations::int8_per_token(&q, &scales);
    stream.reserve(device.linear_workspace(&weights, 2))?;
    device.linear(
        stream,
        LinearArgs { x, weights: &weights, epilogue: Epilogue::default(), out: &out }.check()?,
    )?;
    out.to_vec(stream)
}
