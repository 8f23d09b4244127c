//! Latent attention in each form: a sequence prefilled whole, in chunks, decoded, alone and in company.

use crate::{
    attention::{Fill, Filled, Tokens, fill},
    case::{Fault, Shown, Verdict},
    judge::same_bits,
    mla::{Call, Weights, tokens},
    poison::Layout,
    random::Rng,
};
use halite_kernels::{
    Backend, DType, Support,
    attention::Mask,
    cache::KvSpec,
    linear::WeightFormat,
    mla::{MlaForm, MlaSpec},
};
use std::ops::Range;

/// Positions of the sequence that is watched.
const LENGTH: usize = 70;

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("chunks of 1, 16, 33 and all", chunks),
        ("more rows than a task has", long),
        ("in several calls, each going on from the one before", apart),
        ("alone and in company", company),
    ]
}

fn specs<B: Backend>(device: &B) -> Vec<MlaSpec> {
    let mut specs = Vec::new();
    for form in [MlaForm::Absorbed, MlaForm::Expanded] {
        for (heads, [rank, rope_dim, nope_dim, value_head_dim], weights, split) in [
            (3, [40, 6, 10, 12], WeightFormat::F32, 32),
            (2, [33, 16, 33, 40], WeightFormat::Bf16, 256),
            (16, [8, 2, 3, 5], WeightFormat::F16, 16),
        ] {
            let kv = KvSpec::latent(1, rank, rope_dim).with_dtype([DType::Bf16, DType::F32][heads % 2]);
            let spec = MlaSpec::new(heads, kv, nope_dim, value_head_dim, form).with_weights(weights);
            let dtype = [DType::F16, DType::F32, DType::Bf16][heads % 3];
            specs.push(spec.with_attention(|attention| attention.with_kv_split(split).with_dtype(dtype)));
        }
        let spec = MlaSpec::new(2, KvSpec::latent(1, 24, 8), 12, 16, form);
        let mask = Mask::Sliding { window: 37 };
        specs.push(spec.with_attention(|a| a.with_kv_split(32).with_mask(mask).with_soft_cap(2.0)));
    }
    let runs = |spec: &MlaSpec| {
        !matches!(device.cache_supports(&spec.attention.kv), Support::No(_))
            && !matches!(device.mla_supports(spec), Support::No(_))
    };
    specs.into_iter().filter(runs).collect()
}

/// One sequence's part in a step: which of the filled sequences, and which of its positions are queries.
type Part = (usize, Range<usize>);

/// Sequences in a cache, every position of each with a query.
struct Sequences<B: Backend> {
    spec: MlaSpec,
    packed: B::MlaPacked,
    q: Vec<Vec<f32>>,
    filled: Filled<B>,
}

impl<B: Backend> Sequences<B> {
    fn new(device: &B, stream: &mut B::Stream, spec: &MlaSpec, lengths: &[usize]) -> Result<Self, Fault> {
        let mut rng = Rng::new(21);
        let packed = Weights::new(&mut rng, spec).pack(device, stream, spec)?;
        let (q, rows): (Vec<Vec<f32>>, Vec<Tokens>) =
            lengths.iter().map(|&len| tokens(&mut rng, spec, Fill::Away, len, len)).unzip();
        let filled = fill(device, stream, &spec.attention, 0, &rows, 4)?;
        Ok(Sequences { spec: spec.clone(), packed, q, filled })
    }

    /// One step; each part's output and log-sum-exp, as bytes.
    fn step(&self, device: &B, stream: &mut B::Stream, parts: &[Part]) -> Result<Vec<Vec<u8>>, Fault> {
        self.step_in_calls(device, stream, parts, &[])
    }

    /// The same, in calls that end at these positions, and a last one.
    fn step_in_calls(
        &self,
        device: &B,
        stream: &mut B::Stream,
        parts: &[Part],
        ends: &[u32],
    ) -> Result<Vec<Vec<u8>>, Fault> {
        let (mut cu_seqlens, mut kv_lens, mut table, mut q) = (vec![0], Vec::new(), Vec::new(), Vec::new());
        let width = self.spec.heads() * self.spec.query_dim();
        for (sequence, positions) in parts {
            cu_seqlens.push(cu_seqlens[cu_seqlens.len() - 1] + positions.len() as u32);
            kv_lens.push(positions.end as u32);
            table.extend_from_slice(&self.filled.table[sequence * self.filled.row..][..self.filled.row]);
            q.extend_from_slice(&self.q[*sequence][positions.start * width..positions.end * width]);
        }
        let call = Call {
            spec: &self.spec,
            packed: &self.packed,
            filled: &self.filled,
            layer: 0,
            cu_seqlens: &cu_seqlens,
            kv_lens: &kv_lens,
            table: &table,
            tree_parents: &[],
            q: &q,
            sinks: None,
            layout: Layout::Dense,
            log_sum_exp: true,
            ends,
        };
        let [out, lse] = call.run(device, stream)?;
        let (out, lse) = (out.read_bytes(stream)?, lse.read_bytes(stream)?);
        let element = self.spec.attention.dtype.size();
        let (out_row, lse_row) =
            (self.spec.heads() * self.spec.value_head_dim * element, self.spec.heads() * 4);
        let rows = cu_seqlens.windows(2).map(|pair| pair[0] as usize..pair[1] as usize);
        let row = |row: usize| [&out[row * out_row..][..out_row], &lse[row * lse_row..][..lse_row]].concat();
        Ok(rows.map(|rows| rows.flat_map(row).collect()).collect())
    }
}

fn chunks<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    for spec in specs(device) {
        let sequences = Sequences::new(device, stream, &spec, &[LENGTH])?;
        let whole = sequences.step(device, stream, &[(0, 0..LENGTH)])?.concat();
        for chunk in [1, 16, 33] {
            let mut pieces = Vec::new();
            for start in (0..LENGTH).step_by(chunk) {
                let part = (0, start..(start + chunk).min(LENGTH));
                pieces.extend(sequences.step(device, stream, &[part])?.concat());
            }
            same_bits(&format!("{spec:?} in chunks of {chunk}"), &pieces, &whole)?;
        }
    }
    Ok(())
}

/// Each call reads a range of the positions.
fn apart<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    for spec in specs(device) {
        let sequences = Sequences::new(device, stream, &spec, &[LENGTH, 40, 17])?;
        let parts = [(0, 0..LENGTH), (1, 39..40), (2, 5..17)];
        let whole = sequences.step(device, stream, &parts)?.concat();
        let split = spec.attention.kv_split as u32;
        for ends in [&[split][..], &[0, split, 2 * split]] {
            let apart = sequences.step_in_calls(device, stream, &parts, ends)?.concat();
            same_bits(&format!("{spec:?} in calls that end at {ends:?}"), &apart, &whole)?;
        }
    }
    Ok(())
}

/// A prompt that no backend takes in one piece.
fn long<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let length = 700;
    for form in [MlaForm::Absorbed, MlaForm::Expanded] {
        let spec = MlaSpec::new(1, KvSpec::latent(1, 4, 2), 3, 5, form);
        if let Support::No(_) = device.mla_supports(&spec) {
            continue;
        }
        let sequences = Sequences::new(device, stream, &spec, &[length])?;
        let whole = sequences.step(device, stream, &[(0, 0..length)])?.concat();
        let mut pieces = Vec::new();
        for part in [0..65, 65..650, 650..length] {
            pieces.extend(sequences.step(device, stream, &[(0, part)])?.concat());
        }
        same_bits(&format!("{spec:?}, {length} rows"), &pieces, &whole)?;
    }
    Ok(())
}

fn company<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    for spec in specs(device) {
        let lengths = [LENGTH, 5, 17, 32, 65, 1];
        let sequences = Sequences::new(device, stream, &spec, &lengths)?;
        // Prefill, chunks and decodes, each in another order.
        let steps: [Vec<Part>; 3] = [
            (0..6).map(|s| (s, lengths[s] - 1..lengths[s])).collect(),
            (0..6).rev().map(|s| (s, lengths[s] / 2..lengths[s])).collect(),
            vec![(4, 0..65), (0, 69..70), (3, 20..32), (5, 0..1), (1, 4..5), (2, 3..17)],
        ];
        for parts in steps {
            let together = sequences.step(device, stream, &parts)?;
            for (part, together) in parts.iter().zip(&together) {
                let alone = sequences.step(device, stream, std::slice::from_ref(part))?.concat();
                same_bits(&format!("{spec:?}, {part:?} of {parts:?}"), together, &alone)?;
            }
        }
    }
    Ok(())
}

/// Results of a mixed step, for comparisons between devices.
pub(super) fn prints<B: Backend>(device: &B) -> Result<Vec<(String, Vec<u8>)>, Fault> {
    let stream = &mut device.stream()?;
    let mut prints = Vec::new();
    for spec in specs(device) {
        let sequences = Sequences::new(device, stream, &spec, &[LENGTH, 40, 17])?;
        let parts = [(0, 0..LENGTH), (1, 39..40), (2, 5..17)];
        prints.push((format!("{spec:?}"), sequences.step(device, stream, &parts)?.concat()));
        let one = sequences.step(device, stream, &[(0, LENGTH - 1..LENGTH)])?;
        prints.push((format!("{spec:?}, one row"), one.concat()));
    }
    Ok(prints)
}
