//! Multi-head latent attention by its plain formula: keys and values of every head for every position
//! (arXiv:2405.04434, equations 9 to 17); formulas from `halite_kernels::mla`.

use super::attention::{self, Made, State, attend_made, state_made};
use crate::tolerance::{Bound, summing};
use halite_kernels::{
    attention::Mask,
    mla::{MlaForm, MlaSpec},
};
use std::ops::Range;

/// One sequence: its query rows are the last `q_len` of its positions.
#[derive(Clone, Debug)]
pub struct Sequence<'a> {
    /// Sizes, form, and what attention does.
    pub spec: &'a MlaSpec,
    /// `[heads, nope_dim, kv_lora_rank]`, as stored.
    pub w_uk: &'a [f64],
    /// `[heads, value_head_dim, kv_lora_rank]`, as stored.
    pub w_uv: &'a [f64],
    /// `[q_len, heads, nope_dim + rope_dim]`.
    pub q: &'a [f64],
    /// `[kv_len, kv_lora_rank + rope_dim]`: latents and rotated keys, as the cache stores them.
    pub rows: &'a [f64],
    /// Query rows.
    pub q_len: usize,
    /// Cached positions.
    pub kv_len: usize,
    /// `[q_len]` with a tree.
    pub tree_parents: &'a [i32],
    /// `[heads]`, with sinks.
    pub sinks: Option<&'a [f64]>,
}

/// `W x` of a head, `W` being `[.., kv_lora_rank]`.
fn product(weights: &[f64], rank: usize, x: &[f64]) -> Vec<Bound> {
    let row = |w: &[f64]| Bound::sum(w.iter().zip(x).map(|(w, x)| w * x));
    weights.chunks_exact(rank).map(row).collect()
}

/// The query of the absorbed form, `[W_UKᵀ q_n, q_r]`, of one head.
fn absorbed(spec: &MlaSpec, w_uk: &[f64], q: &[f64]) -> Vec<Bound> {
    let (rank, (q_n, q_r)) = (spec.kv_lora_rank(), q.split_at(spec.nope_dim));
    let latent = (0..rank).map(|c| Bound::sum(q_n.iter().enumerate().map(|(d, q)| q * w_uk[d * rank + c])));
    latent.chain(q_r.iter().map(|&q| Bound::exact(q))).collect()
}

/// The part of `weights` that is a head's.
fn of_head(weights: &[f64], heads: usize, head: usize) -> &[f64] {
    let size = weights.len() / heads;
    &weights[head * size..][..size]
}

/// Queries `[tokens, heads, nope_dim + rope_dim]` for the absorbed form.
pub fn absorb(spec: &MlaSpec, w_uk: &[f64], q: &[f64]) -> Vec<Bound> {
    let heads = spec.heads();
    let rows = q.chunks_exact(spec.query_dim()).enumerate();
    rows.flat_map(|(row, q)| absorbed(spec, of_head(w_uk, heads, row % heads), q)).collect()
}

/// What attention gave in the absorbed form, `[tokens, heads, kv_lora_rank]`, times `W_UV`.
pub fn up_project(spec: &MlaSpec, w_uv: &[f64], x: &[f64]) -> Vec<Bound> {
    let (heads, rank) = (spec.heads(), spec.kv_lora_rank());
    let rows = x.chunks_exact(rank).enumerate();
    rows.flat_map(|(row, x)| product(of_head(w_uv, heads, row % heads), rank, x)).collect()
}

/// `(out [q_len, heads, value_head_dim], log_sum_exp [q_len, heads])`. The values do not depend on the form; how far a
/// right result may be from them does.
pub fn attend(sequence: &Sequence<'_>) -> (Vec<Bound>, Vec<Bound>) {
    let (out, lse) = expanded(sequence);
    if sequence.spec.form == MlaForm::Expanded {
        return (out, lse);
    }
    let (bounds, lse_bounds) = through_latents(sequence);
    let within = |(exact, bound): (Bound, Bound)| Bound { value: exact.value, error: bound.error };
    (out.into_iter().zip(bounds).map(within).collect(), lse.into_iter().zip(lse_bounds).map(within).collect())
}

/// What both forms hand to attention besides queries, keys and values.
fn over<'a>(sequence: &Sequence<'a>, q: &'a [f64], k: &'a [f64], v: &'a [f64]) -> attention::Sequence<'a> {
    let &Sequence { spec, q_len, kv_len, tree_parents, sinks, .. } = sequence;
    let heads = spec.heads();
    attention::Sequence {
        q,
        k,
        v,
        q_len,
        first: kv_len as i64 - q_len as i64,
        kv_len,
        query_heads: heads,
        kv_heads: heads,
        head_dim: spec.query_dim(),
        value_head_dim: spec.value_head_dim,
        scale: f64::from(spec.attention.scale),
        soft_cap: spec.attention.soft_cap.map(f64::from),
        mask: spec.attention.mask,
        tree_parents,
        alibi_slopes: spec.attention.alibi_slopes.as_deref(),
        sinks,
        int8: None,
    }
}

/// Keys and values of every head, `[kv_len, heads, ..]`, as they were made.
struct Heads<'a> {
    sequence: &'a Sequence<'a>,
    keys: Vec<Bound>,
    values: Vec<Bound>,
}

impl Made for Heads<'_> {
    fn product(&self, row: usize, head: usize, position: usize) -> f64 {
        let (heads, dim) = (self.sequence.spec.heads(), self.sequence.spec.query_dim());
        let q = &self.sequence.q[(row * heads + head) * dim..][..dim];
        let k = &self.keys[(position * heads + head) * dim..][..dim];
        let off: f64 = q.iter().zip(k).map(|(q, k)| q.abs() * k.error).sum();
        off * (1.0 + summing(dim))
    }

    fn value(&self, head: usize, position: usize, column: usize) -> f64 {
        let spec = self.sequence.spec;
        self.values[(position * spec.heads() + head) * spec.value_head_dim + column].error
    }
}

fn expanded(sequence: &Sequence<'_>) -> (Vec<Bound>, Vec<Bound>) {
    over_heads(sequence, attend_made)
}

/// In the expanded form, what every row knows of the positions that it sees of each range, and of no others.
pub fn states(sequence: &Sequence<'_>, ranges: &[Range<usize>]) -> Vec<State> {
    over_heads(sequence, |sequence, made| {
        ranges.iter().map(|read| state_made(sequence, made, read.clone())).collect()
    })
}

/// Attention over keys and values of every head.
fn over_heads<R>(
    sequence: &Sequence<'_>,
    attention: impl FnOnce(&attention::Sequence<'_>, &dyn Made) -> R,
) -> R {
    let &Sequence { spec, w_uk, w_uv, .. } = sequence;
    let (heads, rank) = (spec.heads(), spec.kv_lora_rank());
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    for row in sequence.rows.chunks_exact(rank + spec.rope_dim()) {
        let (latent, rope_key) = row.split_at(rank);
        for head in 0..heads {
            keys.extend(product(of_head(w_uk, heads, head), rank, latent));
            keys.extend(rope_key.iter().map(|&x| Bound::exact(x)));
            values.extend(product(of_head(w_uv, heads, head), rank, latent));
        }
    }
    let exact = |bounds: &[Bound]| -> Vec<f64> { bounds.iter().map(|bound| bound.value).collect() };
    let (k, v) = (exact(&keys), exact(&values));
    attention(&over(sequence, sequence.q, &k, &v), &Heads { sequence, keys, values })
}

/// Queries of the absorbed form, as they were made, against rows that are exact.
struct Absorbed<'a> {
    sequence: &'a Sequence<'a>,
    queries: Vec<Bound>,
}

impl Made for Absorbed<'_> {
    fn product(&self, row: usize, head: usize, position: usize) -> f64 {
        let spec = self.sequence.spec;
        let dim = spec.kv_lora_rank() + spec.rope_dim();
        let q = &self.queries[(row * spec.heads() + head) * dim..][..dim];
        let k = &self.sequence.rows[position * dim..][..dim];
        let off: f64 = q.iter().zip(k).map(|(q, k)| q.error * k.abs()).sum();
        off * (1.0 + summing(dim))
    }

    fn value(&self, _head: usize, _position: usize, _column: usize) -> f64 {
        0.0
    }
}

/// The absorbed form step by step, for how far each may be off.
fn through_latents(sequence: &Sequence<'_>) -> (Vec<Bound>, Vec<Bound>) {
    let &Sequence { spec, w_uk, w_uv, .. } = sequence;
    let (heads, rank) = (spec.heads(), spec.kv_lora_rank());
    let dim = rank + spec.rope_dim();
    // Queries and sums pass through tensors; what is exact stays so.
    let passed = |y: Bound| if y.error == 0.0 { y } else { y.rounded(spec.attention.dtype) };
    let queries: Vec<Bound> = absorb(spec, w_uk, sequence.q).into_iter().map(passed).collect();
    let q: Vec<f64> = queries.iter().map(|bound| bound.value).collect();
    let latents: Vec<f64> = sequence.rows.chunks_exact(dim).flat_map(|row| row[..rank].to_vec()).collect();
    let over = attention::Sequence {
        kv_heads: 1,
        head_dim: dim,
        value_head_dim: rank,
        ..over(sequence, &q, sequence.rows, &latents)
    };
    let (sums, lse) = attend_made(&over, &Absorbed { sequence, queries });
    let sums: Vec<Bound> = sums.into_iter().map(passed).collect();
    let mut out = Vec::new();
    for (row, sums) in sums.chunks_exact(rank).enumerate() {
        for w in of_head(w_uv, heads, row % heads).chunks_exact(rank) {
            let exact = Bound::sum(w.iter().zip(sums).map(|(w, sum)| w * sum.value));
            let off: f64 = w.iter().zip(sums).map(|(w, sum)| w.abs() * sum.error).sum();
            out.push(exact.loosened(off * (1.0 + summing(rank))));
        }
    }
    (out, lse)
}

/// Positions at the beginning that no row sees.
pub(crate) fn unseen(mask: Mask, q_len: usize, kv_len: usize) -> usize {
    match mask {
        // The first row's own position, less the others of its window.
        Mask::Sliding { window } => (kv_len + 1).saturating_sub(q_len).saturating_sub(window),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;
    use halite_kernels::cache::KvSpec;

    #[test]
    fn both_forms_are_the_same_formula() {
        let spec = MlaSpec::new(3, KvSpec::latent(1, 20, 6), 10, 12, MlaForm::Absorbed);
        let mut rng = Rng::new(5);
        let mut values = |count: usize| -> Vec<f64> { rng.aways(count).into_iter().map(f64::from).collect() };
        let (w_uk, w_uv) = (values(3 * 10 * 20), values(3 * 12 * 20));
        let (q, rows) = (values(4 * 3 * 16), values(9 * 26));
        let sequence = Sequence {
            spec: &spec,
            w_uk: &w_uk,
            w_uv: &w_uv,
            q: &q,
            rows: &rows,
            q_len: 4,
            kv_len: 9,
            tree_parents: &[],
            sinks: None,
        };
        let ((out, lse), (again, lse_again)) = (expanded(&sequence), through_latents(&sequence));
        for (left, right) in out.iter().zip(&again).chain(lse.iter().zip(&lse_again)) {
            assert!((left.value - right.value).abs() < 1e-12, "{left:?} {right:?}");
            assert!(left.error > 0.0 && left.error < 1e-3 && right.error > 0.0 && right.error < 1e-3);
        }
    }
}
