//! Multi-head latent attention in both forms: one rank's heads of DeepSeek-V3, decode and prefill.

use criterion::{Criterion, criterion_group, criterion_main};
use half::bf16;
use halite_bench::{Bench, Group, Measured, Work, cold_copies, for_each_device, prompt, values};
use halite_hal::{DType, Result, Stream, Tensor};
use halite_kernels::{attention::*, cache::*, linear::HostWeights, mla::*};

/// 128 heads on 8 ranks.
const HEADS: usize = 16;
const RANK: usize = 512;
const ROPE_DIM: usize = 64;
const NOPE_DIM: usize = 128;
const VALUE_HEAD_DIM: usize = 128;

/// A step.
struct Case {
    form: MlaForm,
    sequences: usize,
    /// Query tokens of each sequence.
    q_len: usize,
    kv_len: usize,
}

const CASES: [Case; 5] = [
    Case { form: MlaForm::Absorbed, sequences: 1, q_len: 1, kv_len: 512 },
    Case { form: MlaForm::Absorbed, sequences: 8, q_len: 1, kv_len: 1024 },
    Case { form: MlaForm::Absorbed, sequences: 1, q_len: 256, kv_len: 256 },
    Case { form: MlaForm::Expanded, sequences: 1, q_len: 1, kv_len: 512 },
    Case { form: MlaForm::Expanded, sequences: 1, q_len: 256, kv_len: 256 },
];

impl Case {
    /// With the prompt that is to be run.
    fn sized(&self) -> Self {
        let q_len = prompt(self.q_len);
        Case { q_len, kv_len: self.kv_len - self.q_len + q_len, ..*self }
    }

    /// Multiply-adds of a layer, causal where there is more than one query.
    fn products(&self) -> usize {
        let tokens = self.sequences * self.q_len;
        let pairs = self.sequences * self.q_len * (2 * self.kv_len - self.q_len + 1) / 2;
        let projections = (NOPE_DIM + VALUE_HEAD_DIM) * RANK;
        HEADS
            * match self.form {
                MlaForm::Absorbed => tokens * projections + pairs * (RANK + ROPE_DIM + RANK),
                _ => {
                    let expanded = self.sequences * self.kv_len * projections;
                    expanded + pairs * (NOPE_DIM + ROPE_DIM + VALUE_HEAD_DIM)
                }
            }
    }
}

struct Mla;

impl Bench for Mla {
    const OPERATOR: &'static str = "mla";

    fn run<B: Measured>(&self, group: &mut Group<'_>, device: &B) -> Result<()> {
        CASES.iter().try_for_each(|case| measure(group, device, case))
    }
}

/// One layer of a step, in the calls that its form has.
enum Layer<B: Measured> {
    Absorbed { plan: B::AttentionPlan, latent_q: Tensor<B>, sums: Tensor<B> },
    Expanded { plan: B::MlaPlan },
}

impl<B: Measured> Layer<B> {
    fn run(
        &self,
        device: &B,
        stream: &mut B::Stream,
        (cache, layer): (&B::KvCache, usize),
        weights: &B::MlaPacked,
        [q, out]: [&Tensor<B>; 2],
    ) -> Result<()> {
        let (sinks, log_sum_exp) = (None, None);
        match self {
            Layer::Absorbed { plan, latent_q, sums } => {
                device.absorb(stream, AbsorbArgs { weights, q, out: latent_q }.check()?)?;
                let args = AttentionArgs {
                    plan,
                    cache,
                    layer,
                    q: latent_q,
                    state_in: None,
                    out: AttentionOut::Normalised(sums),
                    sinks,
                    log_sum_exp,
                };
                device.attention(stream, args.check()?)?;
                device.up_project(stream, UpProjectArgs { weights, x: sums, out }.check()?)
            }
            Layer::Expanded { plan } => {
                let args = MlaArgs {
                    plan,
                    cache,
                    layer,
                    weights,
                    q,
                    state_in: None,
                    out: AttentionOut::Normalised(out),
                    sinks,
                    log_sum_exp,
                };
                device.mla(stream, args.check()?)
            }
        }
    }
}

fn measure<B: Measured>(group: &mut Group<'_>, device: &B, case: &Case) -> Result<()> {
    let case = &case.sized();
    let stream = &mut device.stream()?;
    let narrow = |values: Vec<f32>| values.into_iter().map(bf16::from_f32).collect::<Vec<_>>();
    let w_uk = narrow(values(HEADS * NOPE_DIM * RANK));
    let w_uv = narrow(values(HEADS * VALUE_HEAD_DIM * RANK));
    let row = case.kv_len.div_ceil(KvSpec::latent(1, RANK, ROPE_DIM).block_size);
    let blocks = row * case.sequences;
    let bytes =
        2 * (w_uk.len() + w_uv.len()) + KvSpec::latent(1, RANK, ROPE_DIM).cache_bytes(blocks)? as usize;
    let layers = if case.q_len == 1 { cold_copies(bytes) } else { 1 };
    let kv = KvSpec::latent(layers, RANK, ROPE_DIM);
    let spec = MlaSpec::new(HEADS, kv.clone(), NOPE_DIM, VALUE_HEAD_DIM, case.form);
    let host = MlaWeights { w_uk: HostWeights::Bf16(&w_uk), w_uv: HostWeights::Bf16(&w_uv) };
    let weights =
        (0..layers).map(|_| device.mla_pack(stream, host.check(&spec)?)).collect::<Result<Vec<_>>>()?;

    // Every slot holds the same latent, so that whatever the scores are, the answer is known.
    let cache = device.kv_cache(&kv, blocks)?;
    let slots: Vec<i64> = (0..cache.slots() as i64).collect();
    let mut table = device.slots_plan(&cache, slots.len())?;
    let mapping = SlotMapping { slots: &slots }.check(&table)?;
    device.slots_update(stream, &mut table, &mapping)?;
    let latents = vec![0.5f32; slots.len() * RANK];
    let latent = Tensor::from_slice(stream, &latents, &[slots.len(), 1, RANK])?;
    let keys = values(slots.len() * ROPE_DIM);
    let rope_key = Tensor::from_slice(stream, &keys, &[slots.len(), 1, ROPE_DIM])?;
    for layer in 0..layers {
        let args =
            LatentWriteArgs { slots: &table, cache: &cache, layer, latent: &latent, rope_key: &rope_key };
        device.cache_write_latent(stream, args.check()?)?;
    }

    let tokens = case.q_len * case.sequences;
    let capacity = AttentionCapacity {
        max_tokens: tokens,
        max_sequences: case.sequences,
        max_blocks_per_sequence: row,
        cache_blocks: blocks,
    };
    let cu_seqlens: Vec<u32> = (0..=case.sequences).map(|s| (s * case.q_len) as u32).collect();
    let step = AttentionStep {
        cu_seqlens: &cu_seqlens,
        kv_lens: &vec![case.kv_len as u32; case.sequences],
        kv_ranges: &[],
        block_table: &(0..blocks as i32).collect::<Vec<_>>(),
        tree_parents: &[],
    };
    let dims = |dim| [tokens, HEADS, dim];
    let layer = if case.form == MlaForm::Absorbed {
        let mut plan = device.attention_plan(&spec.attention, &capacity)?;
        let step = step.check(&plan)?;
        device.attention_update(stream, &mut plan, &step)?;
        stream.reserve(device.attention_workspace(&plan))?;
        let latent_q = Tensor::new(device, DType::F32, &dims(kv.head_dim))?;
        let sums = Tensor::new(device, DType::F32, &dims(RANK))?;
        Layer::Absorbed { plan, latent_q, sums }
    } else {
        let mut plan = device.mla_plan(&spec, &capacity)?;
        let step = step.check(&plan)?;
        device.mla_update(stream, &mut plan, &step)?;
        stream.reserve(device.mla_workspace(&plan))?;
        Layer::Expanded { plan }
    };
    let q_data = values(tokens * HEADS * spec.query_dim());
    let q = Tensor::from_slice(stream, &q_data, &dims(spec.query_dim()))?;
    let out = Tensor::new(device, DType::F32, &dims(VALUE_HEAD_DIM))?;
    let run = |stream: &mut B::Stream, number: usize| {
        layer.run(device, stream, (&cache, number), &weights[number], [&q, &out])
    };

    run(stream, 0)?;
    let answer = out.to_vec::<f32>(stream)?;
    let expected: Vec<f64> =
        w_uv.chunks(RANK).map(|row| row.iter().map(|w| 0.5 * f64::from(*w)).sum()).collect();
    for (answer, expected) in answer.iter().zip(expected.iter().cycle()) {
        assert!((f64::from(*answer) - expected).abs() < 1e-3, "{answer} instead of W_UV c = {expected}");
    }

    let id = format!(
        "{:?}/{}x{}of{}-heads{HEADS}-latent{RANK}+{ROPE_DIM}",
        case.form, case.sequences, case.q_len, case.kv_len
    );
    let mut turn = 0;
    group.measure(&id, Work::f32(case.products() as u64), stream, |stream| {
        turn = (turn + 1) % layers;
        run(stream, turn)
    })
}

fn mla(criterion: &mut Criterion) {
    for_each_device(criterion, &Mla);
}

criterion_group!(benches, mla);
criterion_main!(benches);
