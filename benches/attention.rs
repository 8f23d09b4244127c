//! Attention over a paged cache: prefill of one prompt, decode of a batch; floats, an INT8 cache, and products of bytes.

use criterion::{Criterion, criterion_group, criterion_main};
use halite_bench::{Bench, Group, Measured, Work, for_each_device, prompt, values};
use halite_hal::{DType, Result, Stream, Tensor};
use halite_kernels::{attention::*, cache::*};

/// A model's heads, and a step.
struct Case {
    query_heads: usize,
    kv_heads: usize,
    head_dim: usize,
    sequences: usize,
    /// Query tokens of each sequence.
    q_len: usize,
    kv_len: usize,
}

const CASES: [Case; 6] = [
    Case { query_heads: 9, kv_heads: 3, head_dim: 64, sequences: 1, q_len: 512, kv_len: 512 },
    Case { query_heads: 32, kv_heads: 8, head_dim: 128, sequences: 1, q_len: 512, kv_len: 512 },
    Case { query_heads: 32, kv_heads: 8, head_dim: 128, sequences: 1, q_len: 2048, kv_len: 2048 },
    Case { query_heads: 32, kv_heads: 8, head_dim: 128, sequences: 1, q_len: 512, kv_len: 8192 },
    Case { query_heads: 9, kv_heads: 3, head_dim: 64, sequences: 1, q_len: 1, kv_len: 512 },
    Case { query_heads: 32, kv_heads: 8, head_dim: 128, sequences: 8, q_len: 1, kv_len: 2048 },
];

impl Case {
    /// With the tokens that are to be run.
    fn sized(&self) -> Self {
        let (q_len, before) = (prompt(self.q_len), self.kv_len - self.q_len);
        let before = if before > 0 { prompt(before) } else { 0 };
        Case { q_len, kv_len: before + q_len, ..*self }
    }
}

/// How a cache stores its elements, and what arithmetic goes over them.
struct Form {
    name: &'static str,
    format: KvFormat,
    compute: AttentionCompute,
}

const FORMS: [Form; 5] = [
    Form { name: "f32", format: KvFormat::Float(DType::F32), compute: AttentionCompute::Float },
    Form { name: "bf16", format: KvFormat::Float(DType::Bf16), compute: AttentionCompute::Float },
    Form { name: "int8", format: KvFormat::Int8PerTokenHead, compute: AttentionCompute::Float },
    Form {
        name: "int8-scores",
        format: KvFormat::Int8PerTokenHead,
        compute: AttentionCompute::Int8 { values: ValueProducts::Float },
    },
    Form {
        name: "int8-products",
        format: KvFormat::Int8PerTokenHead,
        compute: AttentionCompute::Int8 { values: ValueProducts::Int8 },
    },
];

struct Attentions;

impl Bench for Attentions {
    const OPERATOR: &'static str = "attention";

    fn run<B: Measured>(&self, group: &mut Group<'_>, device: &B) -> Result<()> {
        for case in &CASES {
            for form in &FORMS {
                measure(group, device, case, form)?;
            }
        }
        Ok(())
    }
}

fn measure<B: Measured>(group: &mut Group<'_>, device: &B, case: &Case, form: &Form) -> Result<()> {
    let case = &case.sized();
    let stream = &mut device.stream()?;
    let kv = KvSpec::new(1, case.kv_heads, case.head_dim).with_format(form.format);
    let row = case.kv_len.div_ceil(kv.block_size);
    let blocks = row * case.sequences;
    let cache = device.kv_cache(&kv, blocks)?;
    let bytes = kv.cache_bytes(blocks)?;

    // Every slot holds the same value rows, so that whatever the scores are, the answer is known.
    let slots: Vec<i64> = (0..cache.slots() as i64).collect();
    let mut table = device.slots_plan(&cache, slots.len())?;
    let mapping = SlotMapping { slots: &slots }.check(&table)?;
    device.slots_update(stream, &mut table, &mapping)?;
    let dims = [slots.len(), case.kv_heads, case.head_dim];
    let k = Tensor::from_slice(stream, &values(dims.iter().product()), &dims)?;
    let v = Tensor::from_slice(stream, &vec![0.5f32; dims.iter().product()], &dims)?;
    let write = CacheWriteArgs { slots: &table, cache: &cache, layer: 0, k: &k, v: &v };
    device.cache_write(stream, write.check()?)?;

    let spec = AttentionSpec::causal(case.query_heads, kv).with_compute(form.compute);
    let tokens = case.q_len * case.sequences;
    let capacity = AttentionCapacity {
        max_tokens: tokens,
        max_sequences: case.sequences,
        max_blocks_per_sequence: row,
        cache_blocks: blocks,
    };
    let mut plan = device.attention_plan(&spec, &capacity)?;
    let cu_seqlens: Vec<u32> = (0..=case.sequences).map(|s| (s * case.q_len) as u32).collect();
    let kv_lens = vec![case.kv_len as u32; case.sequences];
    let block_table: Vec<i32> = (0..blocks as i32).collect();
    let step = AttentionStep {
        cu_seqlens: &cu_seqlens,
        kv_lens: &kv_lens,
        kv_ranges: &[],
        block_table: &block_table,
        tree_parents: &[],
    };
    let step = step.check(&plan)?;
    device.attention_update(stream, &mut plan, &step)?;
    stream.reserve(device.attention_workspace(&plan))?;
    let dims = [tokens, case.query_heads, case.head_dim];
    let q = Tensor::from_slice(stream, &values(dims.iter().product()), &dims)?;
    let out = Tensor::new(device, DType::F32, &dims)?;
    let run = |stream: &mut B::Stream| -> Result<()> {
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
        device.attention(stream, args.check()?)
    };
    run(stream)?;
    let answer = out.to_vec::<f32>(stream)?;
    // Exact but for weights that are bytes.
    let tolerance = if form.name == "int8-products" { 5e-3 } else { 1e-5 };
    assert!(
        answer.iter().all(|value| (value - 0.5).abs() < tolerance),
        "a mean of equal values is that value"
    );

    let work = if case.q_len == 1 {
        Work::bytes(bytes)
    } else {
        // Scores and values of the positions that each token sees.
        let pairs = case.q_len * (case.kv_len - case.q_len) + case.q_len * (case.q_len + 1) / 2;
        Work::f32((2 * pairs * case.query_heads * case.head_dim) as u64)
    };
    let id = format!(
        "{}x{}of{}-heads{}on{}x{}/{}",
        case.sequences, case.q_len, case.kv_len, case.query_heads, case.kv_heads, case.head_dim, form.name
    );
    group.measure(&id, work, stream, run)
}

fn attention(criterion: &mut Criterion) {
    for_each_device(criterion, &Attentions);
}

criterion_group!(benches, attention);
criterion_main!(benches);
