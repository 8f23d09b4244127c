//! `Attention`: causal, and without a mask, where every query row sees every key.

use super::fixture::{Array, Fixture};
use crate::{
    Fault, Verdict,
    judge::judge,
    oracle::attention::{Sequence, attend},
    tolerance::Bound,
};
use halite_hal::{Stream, Tensor};
use halite_kernels::{
    Backend, DType,
    attention::{AttentionArgs, AttentionCapacity, AttentionOut, AttentionSpec, AttentionStep, Mask},
    cache::{CacheWriteArgs, KvSpec, SlotMapping},
};

const BLOCK: usize = 4;

/// One batch entry with tokens outermost: `[tokens, heads, dim]`.
struct Heads {
    values: Vec<f64>,
    tokens: usize,
    heads: usize,
    dim: usize,
}

impl Heads {
    /// These tokens, then others.
    fn then(mut self, other: Heads) -> Heads {
        self.values.extend(other.values);
        self.tokens += other.tokens;
        self
    }

    /// The first tokens only: what follows is padding.
    fn first(mut self, tokens: Option<usize>) -> Heads {
        self.tokens = tokens.unwrap_or(self.tokens).min(self.tokens);
        self.values.truncate(self.tokens * self.heads * self.dim);
        self
    }
}

/// Entry `batch` of `[batch, tokens, heads · dim]` or `[batch, heads, tokens, dim]`.
fn heads(array: &Array, batch: usize, heads: Option<f64>) -> Heads {
    if let ([_, tokens, width], Some(heads)) = (&array.dims[..], heads) {
        let (tokens, heads) = (*tokens, heads as usize);
        let values = array.values[batch * tokens * width..][..tokens * width].to_vec();
        return Heads { values, tokens, heads, dim: width / heads };
    }
    let [heads, tokens, dim] = [array.dims[1], array.dims[2], array.dims[3]];
    let entry = &array.values[batch * heads * tokens * dim..];
    let mut values = Vec::new();
    for token in 0..tokens {
        for head in 0..heads {
            values.extend_from_slice(&entry[(head * tokens + token) * dim..][..dim]);
        }
    }
    Heads { values, tokens, heads, dim }
}

/// One batch entry of a fixture.
struct Entry {
    q: Heads,
    k: Heads,
    v: Heads,
    y: Heads,
    scale: f32,
    soft_cap: Option<f32>,
    is_causal: bool,
}

impl Entry {
    fn all(fixture: &Fixture) -> Result<Vec<Entry>, Fault> {
        let (q_heads, kv_heads) = (fixture.attribute("q_num_heads"), fixture.attribute("kv_num_heads"));
        let [q, k, v] = [fixture.array("input.0")?, fixture.array("input.1")?, fixture.array("input.2")?];
        let y = fixture.array("output.0")?;
        let optional =
            |tensor: &str| if fixture.has(tensor) { fixture.array(tensor).map(Some) } else { Ok(None) };
        let [past_k, past_v, lengths] = [optional("input.4")?, optional("input.5")?, optional("input.6")?];
        let entry = |batch| {
            let after = |past: &Option<Array>, new: Heads| match past {
                Some(past) => heads(past, batch, None).then(new),
                None => new,
            };
            let valid = lengths.as_ref().map(|lengths| lengths.values[batch] as usize);
            let k = after(&past_k, heads(&k, batch, kv_heads)).first(valid);
            let scale = fixture.attribute("scale").unwrap_or(1.0 / (k.dim as f64).sqrt()) as f32;
            let is_causal = fixture.attribute("is_causal") == Some(1.0);
            let soft_cap = fixture.attribute("softcap").map(|cap| cap as f32);
            let (q, v) = (heads(&q, batch, q_heads), after(&past_v, heads(&v, batch, kv_heads)).first(valid));
            Entry { q, k, v, y: heads(&y, batch, q_heads), scale, soft_cap, is_causal }
        };
        Ok((0..q.dims[0]).map(entry).collect())
    }

    /// `(q_len, kv_len)` of each sequence. ONNX aligns its causal mask to the first key, so only as many keys as
    /// there are queries are ever seen.
    fn sequences(&self) -> Vec<(usize, usize)> {
        if self.is_causal && self.k.tokens < self.q.tokens {
            (0..self.q.tokens).map(|row| (1, self.k.tokens.min(row + 1))).collect()
        } else if self.is_causal {
            vec![(self.q.tokens, self.q.tokens)]
        } else {
            vec![(self.q.tokens, self.k.tokens)]
        }
    }

    fn mask(&self) -> Mask {
        if self.is_causal { Mask::Causal } else { Mask::Bidirectional }
    }

    fn expected(&self) -> Vec<Bound> {
        let (width, mut out, mut start) = (self.q.heads * self.q.dim, Vec::new(), 0);
        for (q_len, kv_len) in self.sequences() {
            let (y, _) = attend(&Sequence {
                q: &self.q.values[start * width..][..q_len * width],
                k: &self.k.values[..kv_len * self.k.heads * self.k.dim],
                v: &self.v.values[..kv_len * self.v.heads * self.v.dim],
                q_len,
                kv_len,
                first: kv_len as i64 - q_len as i64,
                query_heads: self.q.heads,
                kv_heads: self.k.heads,
                head_dim: self.k.dim,
                value_head_dim: self.v.dim,
                scale: f64::from(self.scale),
                soft_cap: self.soft_cap.map(f64::from),
                mask: self.mask(),
                tree_parents: &[],
                alibi_slopes: None,
                sinks: None,
                int8: None,
            });
            out.extend(y.into_iter().map(|y| y.rounded(DType::F32)));
            start += q_len;
        }
        out
    }
}

pub(super) fn oracle(fixture: &Fixture) -> Verdict {
    for entry in Entry::all(fixture)? {
        let dims = [entry.y.tokens, entry.y.heads, entry.y.dim];
        judge(&fixture.name, &dims, &entry.y.values, &entry.expected())?;
    }
    Ok(())
}

pub(super) fn device<B: Backend>(device: &B, fixture: &Fixture) -> Verdict {
    let stream = &mut device.stream()?;
    for entry in Entry::all(fixture)? {
        let kv = KvSpec::new(1, entry.k.heads, entry.k.dim)
            .with_value_head_dim(entry.v.dim)
            .with_block_size(BLOCK)
            .with_dtype(DType::F32);
        let mut spec =
            AttentionSpec::causal(entry.q.heads, kv.clone()).with_scale(entry.scale).with_mask(entry.mask());
        spec.soft_cap = entry.soft_cap;
        let (tokens, blocks) = (entry.k.tokens, entry.k.tokens.div_ceil(BLOCK));
        let cache = device.kv_cache(&kv, blocks)?;
        let mut slots = device.slots_plan(&cache, tokens)?;
        let mapping: Vec<i64> = (0..tokens as i64).collect();
        let mapping = SlotMapping { slots: &mapping }.check(&slots)?;
        device.slots_update(stream, &mut slots, &mapping)?;
        let mut tensor = |heads: &Heads| {
            let values: Vec<f32> = heads.values.iter().map(|&x| x as f32).collect();
            Tensor::<B>::from_slice(stream, &values, &[heads.tokens, heads.heads, heads.dim])
        };
        let (q, k, v) = (tensor(&entry.q)?, tensor(&entry.k)?, tensor(&entry.v)?);
        let write = CacheWriteArgs { slots: &slots, cache: &cache, layer: 0, k: &k, v: &v };
        device.cache_write(stream, write.check()?)?;

        let sequences = entry.sequences();
        let capacity = AttentionCapacity {
            max_tokens: entry.q.tokens,
            max_sequences: sequences.len(),
            max_blocks_per_sequence: blocks,
            cache_blocks: blocks,
        };
        let mut plan = device.attention_plan(&spec, &capacity)?;
        stream.reserve(device.attention_workspace(&plan))?;
        let mut cu_seqlens = vec![0u32];
        for (q_len, _) in &sequences {
            cu_seqlens.push(cu_seqlens[cu_seqlens.len() - 1] + *q_len as u32);
        }
        let kv_lens: Vec<u32> = sequences.iter().map(|sequence| sequence.1 as u32).collect();
        let block_table: Vec<i32> = (0..blocks as i32).collect::<Vec<_>>().repeat(sequences.len());
        let step = AttentionStep {
            cu_seqlens: &cu_seqlens,
            kv_lens: &kv_lens,
            kv_ranges: &[],
            block_table: &block_table,
            tree_parents: &[],
        };
        let step = step.check(&plan)?;
        device.attention_update(stream, &mut plan, &step)?;
        let dims = [entry.y.tokens, entry.y.heads, entry.y.dim];
        let out = Tensor::<B>::new(device, DType::F32, &dims)?;
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
        let got: Vec<f64> = out.to_vec::<f32>(stream)?.into_iter().map(f64::from).collect();
        judge(&fixture.name, &dims, &got, &super::around(&entry.y.values, &entry.expected()))?;
    }
    Ok(())
}
