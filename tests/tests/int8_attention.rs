//! What INT8 keys and values, and attention in INT8, cost in accuracy: the table of docs/numerics.md.
//!
//! ```sh
//! cargo test -p halite-parity --test int8_attention -- --nocapture
//! ```

use halite_cpu::Cpu;
use halite_kernels::{
    DType, Device, Stream, Tensor,
    attention::{
        Attention, AttentionArgs, AttentionCapacity, AttentionCompute, AttentionOut, AttentionSpec,
        AttentionStep, Mask, ValueProducts,
    },
    cache::{CacheWriteArgs, KvCacheOps, KvFormat, KvSpec, SlotMapping},
};
use halite_parity::{
    Fault,
    oracle::attention::{Sequence, attend},
    random::Rng,
};

const KV_LEN: usize = 2048;
const Q_LEN: usize = 16;
const QUERY_HEADS: usize = 8;
const KV_HEADS: usize = 2;
const HEAD_DIM: usize = 128;
const BLOCK: usize = 16;

/// Queries, keys and values of one sequence.
struct Data {
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
}

/// About normal, of variance 1.
fn normal(rng: &mut Rng) -> f32 {
    (0..12).map(|_| rng.unit()).sum::<f32>() - 6.0
}

impl Data {
    /// Everything normal; queries times `sharpness`, four of a key's elements times `outliers`.
    fn new(sharpness: f32, outliers: f32) -> Self {
        let mut rng = Rng::new(4);
        let mut normals = |rows: usize| (0..rows * HEAD_DIM).map(|_| normal(&mut rng)).collect::<Vec<f32>>();
        let (mut q, mut k, v) =
            (normals(Q_LEN * QUERY_HEADS), normals(KV_LEN * KV_HEADS), normals(KV_LEN * KV_HEADS));
        q.iter_mut().for_each(|x| *x *= sharpness);
        for row in k.chunks_exact_mut(HEAD_DIM) {
            row.iter_mut().step_by(32).for_each(|x| *x *= outliers);
        }
        Data { q, k, v }
    }

    /// Output and log-sum-exp without any rounding.
    fn exactly(&self) -> (Vec<f64>, Vec<f64>) {
        let wide = |x: &[f32]| -> Vec<f64> { x.iter().copied().map(f64::from).collect() };
        let (out, log_sum_exp) = attend(&Sequence {
            q: &wide(&self.q),
            k: &wide(&self.k),
            v: &wide(&self.v),
            q_len: Q_LEN,
            first: (KV_LEN - Q_LEN) as i64,
            kv_len: KV_LEN,
            query_heads: QUERY_HEADS,
            kv_heads: KV_HEADS,
            head_dim: HEAD_DIM,
            value_head_dim: HEAD_DIM,
            scale: f64::from(1.0 / (HEAD_DIM as f32).sqrt()),
            soft_cap: None,
            mask: Mask::Causal,
            tree_parents: &[],
            alibi_slopes: None,
            sinks: None,
            int8: None,
        });
        let values = |bounds: Vec<halite_parity::tolerance::Bound>| bounds.iter().map(|b| b.value).collect();
        (values(out), values(log_sum_exp))
    }

    /// Output and log-sum-exp of the CPU.
    fn on(
        &self,
        cpu: &Cpu,
        format: KvFormat,
        compute: AttentionCompute,
    ) -> Result<(Vec<f64>, Vec<f64>), Fault> {
        let stream = &mut cpu.stream()?;
        let blocks = KV_LEN / BLOCK;
        let kv = KvSpec::new(1, KV_HEADS, HEAD_DIM).with_block_size(BLOCK).with_format(format);
        let cache = cpu.kv_cache(&kv, blocks)?;
        let mut slots = cpu.slots_plan(&cache, KV_LEN)?;
        let all: Vec<i64> = (0..KV_LEN as i64).collect();
        let mapping = SlotMapping { slots: &all }.check(&slots)?;
        cpu.slots_update(stream, &mut slots, &mapping)?;
        let k = Tensor::from_slice(stream, &self.k, &[KV_LEN, KV_HEADS, HEAD_DIM])?;
        let v = Tensor::from_slice(stream, &self.v, &[KV_LEN, KV_HEADS, HEAD_DIM])?;
        let write = CacheWriteArgs { slots: &slots, cache: &cache, layer: 0, k: &k, v: &v };
        cpu.cache_write(stream, write.check()?)?;
        let spec = AttentionSpec::causal(QUERY_HEADS, kv).with_compute(compute);
        let capacity = AttentionCapacity {
            max_tokens: Q_LEN,
            max_sequences: 1,
            max_blocks_per_sequence: blocks,
            cache_blocks: blocks,
        };
        let mut plan = cpu.attention_plan(&spec, &capacity)?;
        stream.reserve(cpu.attention_workspace(&plan))?;
        let table: Vec<i32> = (0..blocks as i32).collect();
        let (cu_seqlens, kv_lens) = ([0, Q_LEN as u32], [KV_LEN as u32]);
        let step = AttentionStep {
            cu_seqlens: &cu_seqlens,
            kv_lens: &kv_lens,
            kv_ranges: &[],
            block_table: &table,
            tree_parents: &[],
        };
        let step = step.check(&plan)?;
        cpu.attention_update(stream, &mut plan, &step)?;
        let q = Tensor::from_slice(stream, &self.q, &[Q_LEN, QUERY_HEADS, HEAD_DIM])?;
        let out = Tensor::new(cpu, DType::F32, &[Q_LEN, QUERY_HEADS, HEAD_DIM])?;
        let lse = Tensor::new(cpu, DType::F32, &[Q_LEN, QUERY_HEADS])?;
        let args = AttentionArgs {
            plan: &plan,
            cache: &cache,
            layer: 0,
            q: &q,
            state_in: None,
            out: AttentionOut::Normalised(&out),
            sinks: None,
            log_sum_exp: Some(&lse),
        };
        cpu.attention(stream, args.check()?)?;
        let wide = |x: Vec<f32>| x.into_iter().map(f64::from).collect();
        Ok((wide(out.to_vec::<f32>(stream)?), wide(lse.to_vec::<f32>(stream)?)))
    }
}

/// The difference's root mean square, as a part of the expected one.
fn relative(got: &[f64], expected: &[f64]) -> f64 {
    let squares = |x: &mut dyn Iterator<Item = f64>| x.map(|x| x * x).sum::<f64>();
    let difference = squares(&mut got.iter().zip(expected).map(|(a, b)| a - b));
    (difference / squares(&mut expected.iter().copied())).sqrt()
}

#[test]
fn errors_are_those_of_the_table() -> Result<(), Fault> {
    let cpu = Cpu::new(halite_cpu::Options::default().threads(2))?;
    let int8 = |values| AttentionCompute::Int8 { values };
    for (what, data) in [
        ("normal", Data::new(1.0, 1.0)),
        ("sharp: queries times 4", Data::new(4.0, 1.0)),
        ("outliers: 4 of 128 elements of a key times 8", Data::new(1.0, 8.0)),
    ] {
        let (exact, exact_lse) = data.exactly();
        let (float, _) = data.on(&cpu, KvFormat::Int8PerTokenHead, AttentionCompute::Float)?;
        println!("{what}");
        let mut errors = Vec::new();
        for (name, format, compute) in [
            ("BF16, F32", KvFormat::Float(DType::Bf16), AttentionCompute::Float),
            ("INT8, F32", KvFormat::Int8PerTokenHead, AttentionCompute::Float),
            ("INT8, scores INT8", KvFormat::Int8PerTokenHead, int8(ValueProducts::Float)),
            ("INT8, scores and values INT8", KvFormat::Int8PerTokenHead, int8(ValueProducts::Int8)),
        ] {
            let (out, lse) = data.on(&cpu, format, compute)?;
            let farthest = lse.iter().zip(&exact_lse).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            let (from_exact, from_float) = (relative(&out, &exact), relative(&out, &float));
            println!(
                "  {name:<30} exact {from_exact:.4}  INT8 in F32 {from_float:.4}  log-sum-exp {farthest:.4}"
            );
            errors.push(from_exact);
        }
        // Each step away from floats costs something, and none of them breaks anything.
        let [bf16, int8_kv, .., all] = errors[..] else { unreachable!("four arithmetics") };
        if !(bf16 < all && int8_kv < all && all < 0.1) {
            return Err(Fault(format!("{what}: {errors:?}")));
        }
    }
    Ok(())
}
