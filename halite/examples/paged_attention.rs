//! Paged attention: two sequences in one call, their keys and values in blocks scattered over one cache.
//!
//! The first sequence is in prefill: 6 query rows over its own 6 positions. The second decodes: 1 query row over 9
//! positions, 8 of which earlier steps would have written. The answer is compared with plain loops in f64.
//!
//! ```sh
//! cargo run -p halite --example paged_attention
//! ```

use halite::cpu::{Cpu, Options};
use halite::hal::{DType, Device, Stream, Tensor};
use halite::kernels::attention::{
    Attention, AttentionArgs, AttentionCapacity, AttentionOut, AttentionSpec, AttentionStep,
};
use halite::kernels::cache::{CacheWriteArgs, KvCacheOps, KvSpec, SlotMapping};

const QUERY_HEADS: usize = 4;
const KV_HEADS: usize = 2;
const HEAD_DIM: usize = 8;
const BLOCK_SIZE: usize = 4;

/// Query rows and cached positions of each sequence, and the cache's blocks that hold them.
const SEQUENCES: [(usize, usize, [i32; 3]); 2] = [(6, 6, [5, 2, -1]), (1, 9, [7, 0, 3])];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Cpu::new(Options::default())?;
    let stream = &mut device.stream()?;

    // Once: a cache of 8 blocks, and plans for the largest step.
    let kv = KvSpec::new(1, KV_HEADS, HEAD_DIM).with_block_size(BLOCK_SIZE).with_dtype(DType::F32);
    let cache = device.kv_cache(&kv, 8)?;
    let spec = AttentionSpec::causal(QUERY_HEADS, kv);
    let capacity =
        AttentionCapacity { max_tokens: 16, max_sequences: 2, max_blocks_per_sequence: 3, cache_blocks: 8 };
    let mut plan = device.attention_plan(&spec, &capacity)?;
    let mut slots = device.slots_plan(&cache, 16)?;
    stream.reserve(device.attention_workspace(&plan))?;

    // Keys and values of all 15 positions, each to its slot: `block · BLOCK_SIZE + offset`.
    let (k, v) = (numbers(15 * KV_HEADS * HEAD_DIM, 1), numbers(15 * KV_HEADS * HEAD_DIM, 2));
    let slot_mapping: Vec<i64> = SEQUENCES
        .iter()
        .flat_map(|(_, kv_len, blocks)| (0..*kv_len).map(|position| slot(blocks, position)))
        .collect();
    let mapping = SlotMapping { slots: &slot_mapping }.check(&slots)?;
    device.slots_update(stream, &mut slots, &mapping)?;
    let k_tensor = Tensor::from_slice(stream, &k, &[15, KV_HEADS, HEAD_DIM])?;
    let v_tensor = Tensor::from_slice(stream, &v, &[15, KV_HEADS, HEAD_DIM])?;
    let write = CacheWriteArgs { slots: &slots, cache: &cache, layer: 0, k: &k_tensor, v: &v_tensor };
    device.cache_write(stream, write.check()?)?;

    // Once a step: where each sequence's query rows begin, how far it reaches, and its row of the block table.
    let block_table: Vec<i32> = SEQUENCES.iter().flat_map(|(_, _, blocks)| *blocks).collect();
    let step = AttentionStep {
        cu_seqlens: &[0, 6, 7],
        kv_lens: &[6, 9],
        kv_ranges: &[],
        block_table: &block_table,
        tree_parents: &[],
    };
    let step = step.check(&plan)?;
    device.attention_update(stream, &mut plan, &step)?;

    // Once a layer: the attention itself.
    let q = numbers(7 * QUERY_HEADS * HEAD_DIM, 3);
    let q_tensor = Tensor::from_slice(stream, &q, &[7, QUERY_HEADS, HEAD_DIM])?;
    let out = Tensor::new(&device, DType::F32, &[7, QUERY_HEADS, HEAD_DIM])?;
    let args = AttentionArgs {
        plan: &plan,
        cache: &cache,
        layer: 0,
        q: &q_tensor,
        state_in: None,
        out: AttentionOut::Normalised(&out),
        sinks: None,
        log_sum_exp: None,
    };
    device.attention(stream, args.check()?)?;

    let (answer, expected) = (out.to_vec::<f32>(stream)?, plainly(&q, &k, &v));
    let differences = answer.iter().zip(&expected).map(|(a, b)| (f64::from(*a) - b).abs());
    // By total order a NaN is the largest.
    let difference = differences.max_by(f64::total_cmp).unwrap_or(f64::NAN);
    println!("{}: {} rows of {QUERY_HEADS} heads", device.info().name, answer.len() / QUERY_HEADS / HEAD_DIM);
    println!("first row, first head: {:.4?}", &answer[..HEAD_DIM]);
    println!("largest difference from plain loops in f64: {difference:.1e}");
    if difference < 1e-5 { Ok(()) } else { Err("the answer is wrong".into()) }
}

/// Where a position lies in the cache.
fn slot(blocks: &[i32], position: usize) -> i64 {
    i64::from(blocks[position / BLOCK_SIZE]) * BLOCK_SIZE as i64 + (position % BLOCK_SIZE) as i64
}

/// `count` numbers between -1 and 1.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 37 + seed * 101) % 201) as f32 / 100.0 - 1.0).collect()
}

/// `out = Σ exp(s_j) v_j / Σ exp(s_j)` with `s_j = q · k_j / √HEAD_DIM` over the positions that a row sees.
fn plainly(q: &[f32], k: &[f32], v: &[f32]) -> Vec<f64> {
    let at = |x: &[f32], row: usize, heads: usize, head: usize, d: usize| {
        f64::from(x[(row * heads + head) * HEAD_DIM + d])
    };
    let mut out = Vec::new();
    let (mut q_row, mut kv_row) = (0, 0);
    for (q_len, kv_len, _) in SEQUENCES {
        for row in 0..q_len {
            let visible = kv_row..kv_row + kv_len - q_len + row + 1;
            for head in 0..QUERY_HEADS {
                let kv_head = head / (QUERY_HEADS / KV_HEADS);
                let weight = |j: usize| {
                    let score = |d| at(q, q_row + row, QUERY_HEADS, head, d) * at(k, j, KV_HEADS, kv_head, d);
                    ((0..HEAD_DIM).map(score).sum::<f64>() / (HEAD_DIM as f64).sqrt()).exp()
                };
                let sum: f64 = visible.clone().map(weight).sum();
                out.extend((0..HEAD_DIM).map(|d| {
                    visible.clone().map(|j| weight(j) * at(v, j, KV_HEADS, kv_head, d)).sum::<f64>() / sum
                }));
            }
        }
        (q_row, kv_row) = (q_row + q_len, kv_row + kv_len);
    }
    out
}
