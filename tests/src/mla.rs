//! Multi-head latent attention, judged in both forms against keys and values of every head.

mod cases;
mod errors;
mod packed;
mod products;

use crate::{
    attention::{Fill, Filled, States, Tokens, fill, view},
    case::{Fault, Group, Verdict, ensure},
    judge::{judge, same_bits, unsupported},
    oracle::mla::{Sequence, attend, unseen},
    poison::{Guarded, Layout, stored},
    random::Rng,
};
use half::{bf16, f16};
use halite_kernels::{
    Backend, DType, Stream, Support,
    attention::{AttentionArgs, AttentionCapacity, AttentionOut, AttentionPlan, AttentionStep, Mask, Sinks},
    cache::KvCacheInfo,
    linear::{HostWeights, WeightFormat},
    mla::{AbsorbArgs, MlaArgs, MlaForm, MlaSpec, MlaWeights, UpProjectArgs},
};
use std::ops::Range;

/// One layer of one step.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct Case {
    /// What is computed, and in which form.
    pub spec: MlaSpec,
    /// `(q_len, kv_len)` of each sequence.
    pub sequences: Vec<(usize, usize)>,
    /// The sequences' parents one after the other, with a tree.
    pub tree_parents: Vec<i32>,
    /// Which layer of the cache.
    pub layer: usize,
    /// What queries and latents hold.
    pub fill: Fill,
    /// How queries and results lie in memory.
    pub layout: Layout,
    /// Whether the log-sum-exp is asked for.
    pub log_sum_exp: bool,
    /// Of data and block order.
    pub seed: u64,
}

/// All groups of this family.
pub(crate) fn groups<B: Backend>() -> Vec<Group<B>> {
    vec![
        Group::listed("mla", "absorbed", cases::both(MlaForm::Absorbed), body),
        Group::listed("mla", "expanded", cases::both(MlaForm::Expanded), body),
        Group::listed("mla", "products", products::cases(), products::body),
        Group::bodies("mla", "packed", packed::bodies()),
        Group::listed("mla", "supports", cases::supports(), body),
        Group::seeded("mla", "random", 40, cases::random, body),
        Group::bodies("mla", "errors", errors::bodies()),
    ]
}

/// Both up-projections on the host, as their format stores them.
#[derive(Clone, Debug)]
pub(crate) struct Weights {
    pub(crate) w_uk: Vec<f32>,
    pub(crate) w_uv: Vec<f32>,
}

impl Weights {
    /// No element small enough to hide; keys and values about as large as latents.
    pub(crate) fn new(rng: &mut Rng, spec: &MlaSpec) -> Self {
        let rank = spec.kv_lora_rank();
        let size = (-(rank as f32).log2() / 2.0).round().exp2();
        let dtype = match spec.weights {
            WeightFormat::F16 => DType::F16,
            WeightFormat::Bf16 => DType::Bf16,
            _ => DType::F32,
        };
        let mut matrix = |rows: usize| {
            let values = rng.aways(spec.heads() * rows * rank);
            values.into_iter().map(|w| stored(dtype, w * size) as f32).collect()
        };
        Weights { w_uk: matrix(spec.nope_dim), w_uv: matrix(spec.value_head_dim) }
    }

    pub(crate) fn pack<B: Backend>(
        &self,
        device: &B,
        stream: &mut B::Stream,
        spec: &MlaSpec,
    ) -> Result<B::MlaPacked, Fault> {
        fn to<T>(values: &[f32], narrow: fn(f32) -> T) -> Vec<T> {
            values.iter().map(|&w| narrow(w)).collect()
        }
        let (uk, uv) = (&self.w_uk, &self.w_uv);
        Ok(match spec.weights {
            WeightFormat::F16 => {
                let (uk, uv) = (to(uk, f16::from_f32), to(uv, f16::from_f32));
                let weights = MlaWeights { w_uk: HostWeights::F16(&uk), w_uv: HostWeights::F16(&uv) };
                device.mla_pack(stream, weights.check(spec)?)?
            }
            WeightFormat::Bf16 => {
                let (uk, uv) = (to(uk, bf16::from_f32), to(uv, bf16::from_f32));
                let weights = MlaWeights { w_uk: HostWeights::Bf16(&uk), w_uv: HostWeights::Bf16(&uv) };
                device.mla_pack(stream, weights.check(spec)?)?
            }
            _ => {
                let weights = MlaWeights { w_uk: HostWeights::F32(uk), w_uv: HostWeights::F32(uv) };
                device.mla_pack(stream, weights.check(spec)?)?
            }
        })
    }
}

/// Queries `[q_len, heads, nope_dim + rope_dim]` and rows of the cache of one sequence; attention's own queries are none.
pub(crate) fn tokens(
    rng: &mut Rng,
    spec: &MlaSpec,
    fill: Fill,
    q_len: usize,
    kv_len: usize,
) -> (Vec<f32>, Tokens) {
    let row = spec.attention.kv.head_dim;
    let mut q = rng.aways(q_len * spec.heads() * spec.query_dim());
    let mut k = rng.aways(kv_len * row);
    match fill {
        Fill::Steep => q.iter_mut().for_each(|x| *x *= 1000.0),
        Fill::UnseenNan => k[..unseen(spec.attention.mask, q_len, kv_len) * row].fill(f32::NAN),
        _ => {}
    }
    (q, Tokens { q: Vec::new(), k, v: Vec::new() })
}

/// One call over a cache that is filled.
pub(crate) struct Call<'a, B: Backend> {
    pub(crate) spec: &'a MlaSpec,
    pub(crate) packed: &'a B::MlaPacked,
    pub(crate) filled: &'a Filled<B>,
    pub(crate) layer: usize,
    pub(crate) cu_seqlens: &'a [u32],
    pub(crate) kv_lens: &'a [u32],
    pub(crate) table: &'a [i32],
    pub(crate) tree_parents: &'a [i32],
    pub(crate) q: &'a [f32],
    pub(crate) sinks: Option<&'a [f32]>,
    pub(crate) layout: Layout,
    pub(crate) log_sum_exp: bool,
    /// Where calls end before the last one, each going on from the one before: ascending multiples of the split.
    pub(crate) ends: &'a [u32],
}

impl<B: Backend> Call<'_, B> {
    /// Of each call, the positions that it reads of each sequence, and room for its state, where it is not the last.
    #[expect(clippy::type_complexity, reason = "a list of what is said above")]
    fn calls(
        &self,
        stream: &mut B::Stream,
        dims: [usize; 3],
    ) -> Result<Vec<(Vec<Range<u32>>, Option<States<B>>)>, Fault> {
        let (mut calls, mut start) = (Vec::new(), 0);
        for end in self.ends.iter().copied().chain([u32::MAX]) {
            let range = |&len: &u32| if start > len { 0..0 } else { start..end.min(len) };
            let mut state = |dims: &[usize]| Guarded::<B>::output(stream, DType::F32, dims, self.layout);
            let state = match end {
                u32::MAX => None,
                _ => Some([state(&dims[..2])?, state(&dims[..2])?, state(&dims)?]),
            };
            calls.push((self.kv_lens.iter().map(range).collect(), state));
            start = end;
        }
        Ok(calls)
    }

    /// Results and log-sum-exps, by the spec's form.
    pub(crate) fn run(&self, device: &B, stream: &mut B::Stream) -> Result<[Guarded<B>; 2], Fault> {
        let (spec, dtype) = (self.spec, self.spec.attention.dtype);
        let total = self.cu_seqlens.last().map_or(0, |&end| end as usize);
        let dims = |dim| [total, spec.heads(), dim];
        let (q, _) = Guarded::<B>::input(stream, dtype, self.q, &dims(spec.query_dim()), self.layout)?;
        let out = Guarded::<B>::output(stream, dtype, &dims(spec.value_head_dim), self.layout)?;
        let lse_layout = Layout::Rows { before: 1, after: 2 };
        let lse = Guarded::<B>::output(stream, DType::F32, &dims(0)[..2], lse_layout)?;
        let none = vec![0.0; spec.heads()];
        let sinks = self.sinks.unwrap_or(&none);
        let (sinks, _) = Guarded::<B>::input(stream, DType::F32, sinks, &[spec.heads()], Layout::Dense)?;
        let (sinks, log_sum_exp) = (self.sinks.map(|_| &sinks.view), self.log_sum_exp.then_some(&lse.view));
        let (cache, layer) = (&self.filled.cache, self.layer);
        let capacity = AttentionCapacity {
            max_tokens: total + 3,
            max_sequences: self.kv_lens.len() + 1,
            max_blocks_per_sequence: self.filled.row,
            cache_blocks: cache.blocks(),
        };
        let step = AttentionStep {
            cu_seqlens: self.cu_seqlens,
            kv_lens: self.kv_lens,
            kv_ranges: &[],
            block_table: self.table,
            tree_parents: self.tree_parents,
        };
        if spec.form == MlaForm::Expanded {
            let mut plan = device.mla_plan(spec, &capacity)?;
            stream.reserve(device.mla_workspace(&plan))?;
            // Another step before it: what it leaves in the tables must not be used.
            let ends = [0, total as u32 + 3];
            let blocks = vec![0; self.filled.row];
            let earlier = AttentionStep {
                cu_seqlens: &ends,
                kv_lens: &[0],
                kv_ranges: &[],
                block_table: &blocks,
                tree_parents: &[],
            };
            if spec.attention.mask != Mask::Tree {
                let earlier = earlier.check(&plan)?;
                device.mla_update(stream, &mut plan, &earlier)?;
            }
            let (weights, q) = (self.packed, &q.view);
            let mut state_in = None;
            for (kv_ranges, state) in &self.calls(stream, dims(spec.value_head_dim))? {
                let step = AttentionStep { kv_ranges, ..step }.check(&plan)?;
                device.mla_update(stream, &mut plan, &step)?;
                ensure(plan.tokens() == total, || format!("the plan counts {} tokens", plan.tokens()))?;
                let (plan, handed_on) = (&plan, state.as_ref().map(view));
                let last = handed_on.is_none();
                let out = handed_on.map_or(AttentionOut::Normalised(&out.view), AttentionOut::State);
                let (sinks, log_sum_exp) = (sinks.filter(|_| last), log_sum_exp.filter(|_| last));
                let args = MlaArgs { plan, cache, layer, weights, q, state_in, out, sinks, log_sum_exp };
                device.mla(stream, args.check()?)?;
                state_in = handed_on;
            }
        } else {
            let mut plan = device.attention_plan(&spec.attention, &capacity)?;
            stream.reserve(device.attention_workspace(&plan))?;
            let kv = &spec.attention.kv;
            let latent_q = Guarded::<B>::output(stream, dtype, &dims(kv.head_dim), self.layout)?;
            let sums = Guarded::<B>::output(stream, dtype, &dims(kv.value_head_dim), self.layout)?;
            let absorb = AbsorbArgs { weights: self.packed, q: &q.view, out: &latent_q.view };
            device.absorb(stream, absorb.check()?)?;
            latent_q.read(stream)?;
            let (q, mut state_in) = (&latent_q.view, None);
            for (kv_ranges, state) in &self.calls(stream, dims(kv.value_head_dim))? {
                let step = AttentionStep { kv_ranges, ..step }.check(&plan)?;
                device.attention_update(stream, &mut plan, &step)?;
                let (plan, handed_on) = (&plan, state.as_ref().map(view));
                let last = handed_on.is_none();
                let out = handed_on.map_or(AttentionOut::Normalised(&sums.view), AttentionOut::State);
                let (sinks, log_sum_exp) = (sinks.filter(|_| last), log_sum_exp.filter(|_| last));
                let args = AttentionArgs { plan, cache, layer, q, state_in, out, sinks, log_sum_exp };
                device.attention(stream, args.check()?)?;
                state_in = handed_on;
            }
            let up = UpProjectArgs { weights: self.packed, x: &sums.view, out: &out.view };
            device.up_project(stream, up.check()?)?;
        }
        Ok([out, lse])
    }
}

/// What `supports` denies is not packed.
fn refused_pack<B: Backend>(device: &B, stream: &mut B::Stream, spec: &MlaSpec) -> Verdict {
    let spec = spec.clone().with_weights(WeightFormat::F32);
    let weights = Weights::new(&mut Rng::new(1), &spec);
    let (w_uk, w_uv) = (HostWeights::F32(&weights.w_uk), HostWeights::F32(&weights.w_uv));
    let packed = device.mla_pack(stream, MlaWeights { w_uk, w_uv }.check(&spec)?);
    // Another storage of the weights may be what was denied.
    if let Support::No(_) = device.mla_supports(&spec) { unsupported("mla", packed) } else { Ok(()) }
}

fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { spec, sequences, layer, .. } = case;
    let kv = &spec.attention.kv;
    let stream = &mut device.stream()?;
    if let Support::No(_) = device.cache_supports(kv) {
        return unsupported("cache", device.kv_cache(kv, 1));
    }
    let mut rng = Rng::new(case.seed);
    if let Support::No(_) = device.mla_supports(spec) {
        return refused_pack(device, stream, spec);
    }
    let weights = Weights::new(&mut rng, spec);
    let (q, all): (Vec<Vec<f32>>, Vec<Tokens>) =
        sequences.iter().map(|&(q_len, kv_len)| tokens(&mut rng, spec, case.fill, q_len, kv_len)).unzip();
    let filled = fill(device, stream, &spec.attention, *layer, &all, case.seed)?;
    let before = crate::cache::contents(device, stream, &filled.cache)?;
    let packed = weights.pack(device, stream, spec)?;
    ensure(spec.same_weights(packed.as_ref()), || "the weights forgot their spec".into())?;
    let mut cu_seqlens = vec![0];
    for (q_len, _) in sequences {
        cu_seqlens.push(cu_seqlens[cu_seqlens.len() - 1] + *q_len as u32);
    }
    let kv_lens: Vec<u32> = sequences.iter().map(|sequence| sequence.1 as u32).collect();
    let sinks = (spec.attention.sinks == Sinks::PerHead).then(|| rng.aways(spec.heads()));
    let call = Call {
        spec,
        packed: &packed,
        filled: &filled,
        layer: *layer,
        cu_seqlens: &cu_seqlens,
        kv_lens: &kv_lens,
        table: &filled.table,
        tree_parents: &case.tree_parents,
        q: &q.concat(),
        sinks: sinks.as_deref(),
        layout: case.layout,
        log_sum_exp: case.log_sum_exp,
        ends: &[],
    };
    let [out, lse] = call.run(device, stream)?;

    let as_stored = |dtype: DType, values: &[f32]| -> Vec<f64> {
        values.iter().map(|&value| stored(dtype, value)).collect()
    };
    let dtype = spec.attention.dtype;
    let (w_uk, w_uv) = (as_stored(DType::F32, &weights.w_uk), as_stored(DType::F32, &weights.w_uv));
    let sinks = sinks.map(|sinks| as_stored(DType::F32, &sinks));
    let (mut expected, mut expected_lse) = (Vec::new(), Vec::new());
    let mut first = 0;
    for ((q, rows), &(q_len, kv_len)) in q.iter().zip(&all).zip(sequences) {
        let tree_parents = case.tree_parents.get(first..first + q_len).unwrap_or_default();
        first += q_len;
        let (out, lse) = attend(&Sequence {
            spec,
            w_uk: &w_uk,
            w_uv: &w_uv,
            q: &as_stored(dtype, q),
            rows: &as_stored(kv.format.element(), &rows.k),
            q_len,
            kv_len,
            tree_parents,
            sinks: sinks.as_deref(),
        });
        // A row that sees nothing is exactly 0.
        expected.extend(out.into_iter().map(|y| if y.value == 0.0 { y } else { y.rounded(dtype) }));
        expected_lse.extend(lse);
    }
    let dims = [cu_seqlens[cu_seqlens.len() - 1] as usize, spec.heads(), spec.value_head_dim];
    judge("out", &dims, &out.read(stream)?, &expected)?;
    if case.log_sum_exp {
        judge("log_sum_exp", &dims[..2], &lse.read(stream)?, &expected_lse)?;
    } else {
        lse.untouched(stream)?;
    }
    let after = crate::cache::contents(device, stream, &filled.cache)?;
    same_bits("the cache, which is only read", &after, &before)
}
