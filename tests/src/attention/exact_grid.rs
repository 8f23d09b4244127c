//! Attention whose every sum is exact: of the keys that a row sees one or two have the score 0 and all others one so low
//! that their weight is 0. The answer is a small integer or half of one, so nothing is allowed: a value of a wrong block,
//! head or position shows however large it is.

use super::{Filled, Tokens, fill};
use crate::{
    case::Verdict,
    judge::{judge, unsupported},
    ledger::denied,
    poison::{Guarded, LAYOUTS, Layout},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType, Stream,
    attention::{AttentionArgs, AttentionCapacity, AttentionOut, AttentionSpec, AttentionStep, Mask},
    cache::{KvCacheInfo, KvSpec},
};

/// One step on the grid.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct GridCase {
    /// What is computed: causal or bidirectional, scores as they are.
    pub spec: AttentionSpec,
    /// `(q_len, kv_len, the second key with the score 0)` of each sequence; the first is the key at position 0.
    pub sequences: Vec<(usize, usize, usize)>,
    /// How queries and output lie in memory.
    pub layout: Layout,
    /// Of data and block order.
    pub seed: u64,
}

/// The score of a key that counts for nothing: exact in every storage type, and `exp` of it is 0 in F32.
const LOW: f32 = -4096.0;

pub(super) fn random(seed: u64) -> GridCase {
    let mut rng = Rng::new(seed ^ 0xA77E);
    let kv_heads = 1 + rng.below(3);
    let kv = KvSpec::new(1, kv_heads, 1 + rng.below(40))
        .with_value_head_dim(1 + rng.below(40))
        .with_block_size(rng.pick(&[1, 3, 8, 16, 32]))
        .with_dtype(rng.pick(&[DType::F32, DType::F16, DType::Bf16]));
    let spec = AttentionSpec::causal(kv_heads * (1 + rng.below(4)), kv)
        .with_scale(1.0)
        .with_mask(rng.pick(&[Mask::Causal, Mask::Bidirectional]))
        .with_kv_split(rng.pick(&[16, 48, 256]));
    let sequence = |rng: &mut Rng| {
        let q_len = rng.below(7);
        let kv_len = 1 + q_len + rng.below(90);
        (q_len, kv_len, rng.below(kv_len))
    };
    let sequences = (0..1 + rng.below(3)).map(|_| sequence(&mut rng)).collect();
    GridCase { spec, sequences, layout: rng.pick(&LAYOUTS), seed }
}

pub(super) fn body<B: Backend>(device: &B, case: &GridCase) -> Verdict {
    let GridCase { spec, sequences, layout, seed } = case;
    let kv = &spec.kv;
    let stream = &mut device.stream()?;
    if denied(device.cache_supports(kv)) {
        return unsupported("cache", device.kv_cache(kv, 1));
    }
    let mut rng = Rng::new(*seed);
    let mut integer = move || rng.below(129) as f32 - 64.0;
    let tokens: Vec<Tokens> = sequences
        .iter()
        .map(|&(q_len, kv_len, second)| {
            // Queries look at the first element of keys only.
            let q = (0..q_len * spec.query_heads * kv.head_dim).map(|i| f32::from(i % kv.head_dim == 0));
            let k = (0..kv_len * kv.kv_heads * kv.head_dim).map(|i| {
                let position = i / (kv.kv_heads * kv.head_dim);
                match (i % kv.head_dim, position == 0 || position == second) {
                    (0, true) => 0.0,
                    (0, false) => LOW,
                    _ => integer(),
                }
            });
            let (q, k) = (q.collect(), k.collect());
            let v = (0..kv_len * kv.kv_heads * kv.value_head_dim).map(|_| integer()).collect();
            Tokens { q, k, v }
        })
        .collect();
    let total: usize = sequences.iter().map(|sequence| sequence.0).sum();
    let Filled { cache, table, row } = fill(device, stream, spec, 0, &tokens, *seed)?;
    let capacity = AttentionCapacity {
        max_tokens: total,
        max_sequences: sequences.len(),
        max_blocks_per_sequence: row,
        cache_blocks: cache.blocks(),
    };
    if denied(device.attention_supports(spec)) {
        return unsupported("attention", device.attention_plan(spec, &capacity));
    }
    let mut plan = device.attention_plan(spec, &capacity)?;
    stream.reserve(device.attention_workspace(&plan))?;
    let mut cu_seqlens = vec![0u32];
    for (q_len, _, _) in sequences {
        cu_seqlens.push(cu_seqlens[cu_seqlens.len() - 1] + *q_len as u32);
    }
    let kv_lens: Vec<u32> = sequences.iter().map(|sequence| sequence.1 as u32).collect();
    let step = AttentionStep {
        cu_seqlens: &cu_seqlens,
        kv_lens: &kv_lens,
        kv_ranges: &[],
        block_table: &table,
        tree_parents: &[],
    };
    let step = step.check(&plan)?;
    device.attention_update(stream, &mut plan, &step)?;
    let q: Vec<f32> = tokens.iter().flat_map(|tokens| tokens.q.iter().copied()).collect();
    let dims = [total, spec.query_heads, kv.head_dim];
    let (q, _) = Guarded::<B>::input(stream, DType::F32, &q, &dims, *layout)?;
    let dims = [total, spec.query_heads, kv.value_head_dim];
    let out = Guarded::<B>::output(stream, DType::F32, &dims, *layout)?;
    let args = AttentionArgs {
        plan: &plan,
        cache: &cache,
        layer: 0,
        q: &q.view,
        sinks: None,
        state_in: None,
        out: AttentionOut::Normalised(&out.view),
        log_sum_exp: None,
    };
    device.attention(stream, args.check()?)?;

    let mut expected = Vec::with_capacity(total * spec.query_heads * kv.value_head_dim);
    for (tokens, &(q_len, kv_len, second)) in tokens.iter().zip(sequences) {
        for row in 0..q_len {
            let own = kv_len - q_len + row;
            let sees_second = second != 0 && (spec.mask == Mask::Bidirectional || second <= own);
            for head in 0..spec.query_heads {
                let value = |position: usize, i: usize| {
                    let at = position * kv.kv_heads + head / spec.group();
                    f64::from(tokens.v[at * kv.value_head_dim + i])
                };
                expected.extend((0..kv.value_head_dim).map(|i| {
                    let first = value(0, i);
                    Bound::exact(if sees_second { (first + value(second, i)) / 2.0 } else { first })
                }));
            }
        }
    }
    judge("out", &dims, &out.read(stream)?, &expected)
}
