//! Rows alone against rows in a batch.

use crate::{
    case::{Fault, Shown, Verdict},
    embedding::pooling::{POOLINGS, cu_seqlens},
    judge::same_bits,
    poison::{Guarded, Layout},
    random::Rng,
};
use halite_hal::Pending;
use halite_kernels::{
    Backend, DType, Stream, Tensor,
    activation::{ActivationArgs, ActivationOut, Function},
    embedding::{L2NormalizeArgs, L2NormalizeSpec, PoolArgs, PoolingSpec, PoolingStep},
    logits::{LogitsArgs, LogitsCapacity, LogitsRow, LogitsSpec, LogitsStep, Penalties},
    norm::{NormArgs, NormOut, NormResidual, NormSpec},
    rope::{Direction, Positions, RopeArgs, RopeScaling, RopeSpec, RopeStyle, Yarn},
    sampling::{
        DraftProbabilities, LogProbArgs, ProbabilityArgs, SamplingArgs, SamplingParams, SamplingSpec,
        SamplingStep, TopLogProbs, VerifyArgs, VerifyCapacity, VerifyStep,
    },
    top_k::{TopKArgs, TopKSpec},
};
use std::ops::Range;

/// Batches, as ranges of the rows of the largest.
const BATCHES: [Range<usize>; 12] =
    [0..2, 1..4, 0..4, 3..8, 0..6, 5..12, 0..11, 1..13, 2..15, 0..16, 7..24, 0..37];
/// Rows of the largest batch.
pub(super) const ROWS: usize = 37;

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("norms", norm),
        ("activations", activation),
        ("rotations", rope),
        ("pooling and L2 normalising", pooled),
        ("penalties, biases and masks", adjusted_logits),
        ("sampling and log-probabilities", sampling),
        ("drafted tokens", verify),
        ("top-k", top_k),
    ]
}

/// Whether `run`, over rows of the largest batch, gives each row the same bytes alone and in every batch.
pub(super) fn same_rows(
    what: &str,
    row_bytes: usize,
    mut run: impl FnMut(Range<usize>) -> Result<Vec<u8>, Fault>,
) -> Verdict {
    let mut alone = Vec::new();
    for row in 0..ROWS {
        alone.extend(run(row..row + 1)?);
    }
    for batch in BATCHES {
        let expected = &alone[batch.start * row_bytes..batch.end * row_bytes];
        same_bits(&format!("{what}: rows {batch:?} together and alone"), &run(batch.clone())?, expected)?;
    }
    Ok(())
}

pub(super) fn input<B: Backend>(stream: &mut B::Stream, columns: usize) -> Result<Tensor<B>, Fault> {
    Ok(Tensor::from_slice(stream, &Rng::new(9).spreads(ROWS * columns), &[ROWS, columns])?)
}

fn norm<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    for columns in [17, 100, 576] {
        let x = input::<B>(stream, columns)?;
        let weight = Tensor::from_slice(stream, &Rng::new(1).aways(columns), &[columns])?;
        for (spec, after) in [
            (NormSpec::rms(1e-5), false),
            (NormSpec::layer(1e-5), false),
            (NormSpec::rms(1e-5).with_weight_offset(1.0), true),
        ] {
            same_rows(&format!("{spec:?} of {columns}, residual after: {after}"), columns * 4, |rows| {
                let dims = [rows.len(), columns];
                let out = Guarded::<B>::output(stream, DType::F32, &dims, Layout::Dense)?;
                let x = x.narrow(0, rows)?;
                let out_arg = NormOut::Float(&out.view);
                let args = NormArgs {
                    spec: &spec,
                    x: &x,
                    residual: after.then_some(NormResidual::After { residual: &x }),
                    weight: Some(&weight),
                    bias: None,
                    out: out_arg,
                };
                device.norm(stream, args.check()?)?;
                out.read_bytes(stream)
            })?;
        }
    }
    Ok(())
}

fn activation<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let columns = 45;
    let (narrow, wide) = (input::<B>(stream, columns)?, input::<B>(stream, 2 * columns)?);
    for spec in crate::activation::specs() {
        let x = if matches!(spec.function, Function::Plain(_)) { &narrow } else { &wide };
        same_rows(&format!("{spec:?}"), columns * 4, |rows| {
            let out = Guarded::<B>::output(stream, DType::F32, &[rows.len(), columns], Layout::Dense)?;
            let (x, target) = (x.narrow(0, rows)?, ActivationOut::Float(&out.view));
            device.activation(stream, ActivationArgs { spec: &spec, x: &x, out: target }.check()?)?;
            out.read_bytes(stream)
        })?;
    }
    Ok(())
}

fn adjusted_logits<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let vocabulary = 301;
    let x: Vec<f32> = Rng::new(9).spreads(ROWS * vocabulary);
    let tokens: Vec<u32> = (0..400).map(|place| place * 37 % 301).collect();
    let mask: Vec<u32> = (0..20).map(|word: u32| word.wrapping_mul(0x9E37_79B9) | 1).collect();
    let asked = |row: usize| {
        let penalties = Penalties::NONE.with_repetition(1.0 + row as f32 / 10.0).with_frequency(0.3);
        let asked =
            LogitsRow::unchanged().with_penalties(penalties, &tokens[row..3 * row], &tokens[..row * 2]);
        let asked = asked.with_bias(&[(3, 0.1), (300, -0.7)][..row % 3]);
        if row % 2 == 1 { asked.with_allowed(&mask[row / 4..][..10]) } else { asked }
    };
    let asked: Vec<LogitsRow<'_>> = (0..ROWS).map(asked).collect();
    let capacity = LogitsCapacity::rows(ROWS).with_history(8 * ROWS * ROWS).with_biases(2 * ROWS);
    let mut plan = device.logits_plan(&LogitsSpec::new(vocabulary), &capacity)?;
    same_rows("adjusted logits", vocabulary * 4, |rows| {
        let step = LogitsStep { rows: &asked[rows.clone()] }.check(&plan)?;
        device.logits_update(stream, &mut plan, &step)?;
        let (dims, x) = ([rows.len(), vocabulary], &x[rows.start * vocabulary..rows.end * vocabulary]);
        let (logits, _) = Guarded::<B>::input(stream, DType::F32, x, &dims, Layout::Dense)?;
        device.adjust_logits(stream, LogitsArgs { plan: &plan, logits: &logits.view }.check()?)?;
        logits.read_bytes(stream)
    })
}

fn rope<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let (heads, head_dim) = (3, 70);
    let values = Rng::new(9).spreads(ROWS * heads * head_dim);
    let positions: Vec<u32> = (0..ROWS as u32).map(|row| row * 313).collect();
    for style in [RopeStyle::HalfSplit, RopeStyle::Interleaved] {
        let yarn = RopeScaling::Yarn(Yarn::new(8.0, 4096));
        let spec = RopeSpec::new(head_dim, style, 20_000).with_rotary_dim(54).with_scaling(yarn);
        let mut plan = device.rope_plan(&spec, ROWS)?;
        same_rows(&format!("{spec:?}"), heads * head_dim * 4, |rows| {
            let step = Positions { positions: &positions[rows.clone()] }.check(&plan)?;
            device.rope_update(stream, &mut plan, &step)?;
            let values = &values[rows.start * heads * head_dim..rows.end * heads * head_dim];
            let x = Tensor::<B>::from_slice(stream, values, &[rows.len(), heads, head_dim])?;
            device.rope(stream, RopeArgs { plan: &plan, direction: Direction::Forward, x: &x }.check()?)?;
            Ok(stream.download(&x)?.wait()?)
        })?;
    }
    Ok(())
}

/// Row `i` of a batch is a sequence of `i % 5` tokens, pooled, then normalised.
fn pooled<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let hidden = 45;
    let starts = cu_seqlens(&(0..ROWS).map(|row| row % 5).collect::<Vec<_>>());
    let values = Rng::new(9).spreads(starts[ROWS] as usize * hidden);
    for pooling in POOLINGS {
        let mut plan = device.pooling_plan(&PoolingSpec::new(pooling), ROWS, starts[ROWS] as usize)?;
        same_rows(&format!("{pooling:?}"), hidden * 4, |rows| {
            let first = starts[rows.start];
            let own: Vec<u32> = starts[rows.start..=rows.end].iter().map(|end| end - first).collect();
            let step = PoolingStep { cu_seqlens: &own }.check(&plan)?;
            device.pooling_update(stream, &mut plan, &step)?;
            let values = &values[first as usize * hidden..starts[rows.end] as usize * hidden];
            let x = Tensor::<B>::from_slice(stream, values, &[values.len() / hidden, hidden])?;
            let row = Tensor::<B>::new(device, DType::F32, &[rows.len(), hidden])?;
            device.pool(stream, PoolArgs { plan: &plan, x: &x, out: &row }.check()?)?;
            let out = Guarded::<B>::output(stream, DType::F32, &[rows.len(), hidden], Layout::Dense)?;
            let spec = L2NormalizeSpec::new(1e-12);
            let args = L2NormalizeArgs { spec: &spec, x: &row, out: &out.view };
            device.l2_normalize(stream, args.check()?)?;
            out.read_bytes(stream)
        })?;
    }
    Ok(())
}

fn sampling<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let vocabulary = 301;
    let logits = input::<B>(stream, vocabulary)?;
    let mut plan = device.sampling_plan(&SamplingSpec::new(vocabulary), ROWS)?;
    let params: Vec<SamplingParams> = (0..ROWS as u64)
        .map(|row| {
            SamplingParams::seeded(0.5 + row as f32 / 10.0, row).with_top_k(50).with_top_p(0.95).at(row)
        })
        .collect();
    same_rows("sample", 4, |rows| {
        let step = SamplingStep { params: &params[rows.clone()] }.check(&plan)?;
        device.sampling_update(stream, &mut plan, &step)?;
        let ids = Guarded::<B>::output(stream, DType::I32, &[rows.len()], Layout::Dense)?;
        let logits = logits.narrow(0, rows)?;
        let args = SamplingArgs { plan: &plan, logits: &logits, ids: &ids.view };
        device.sample(stream, args.check()?)?;
        ids.read_bytes(stream)
    })?;
    same_rows("probabilities", vocabulary * 4, |rows| {
        let step = SamplingStep { params: &params[rows.clone()] }.check(&plan)?;
        device.sampling_update(stream, &mut plan, &step)?;
        let out = Guarded::<B>::output(stream, DType::F32, &[rows.len(), vocabulary], Layout::Dense)?;
        let logits = logits.narrow(0, rows)?;
        let args = ProbabilityArgs { plan: &plan, logits: &logits, out: &out.view };
        device.probabilities(stream, args.check()?)?;
        out.read_bytes(stream)
    })?;
    let targets: Vec<i32> = (0..ROWS as i32).collect();
    let targets = Tensor::from_slice(stream, &targets, &[ROWS])?;
    same_rows("log_probs", 4 + 2 * 36, |rows| {
        let out = Guarded::<B>::output(stream, DType::F32, &[rows.len()], Layout::Dense)?;
        let (logits, targets) = (logits.narrow(0, rows.clone())?, targets.narrow(0, rows)?);
        let ids = Guarded::<B>::output(stream, DType::I32, &[out.view.dims()[0], 9], Layout::Dense)?;
        let top = Guarded::<B>::output(stream, DType::F32, ids.view.dims(), Layout::Dense)?;
        let highest = Some(TopLogProbs::new(&ids.view, &top.view));
        let args = LogProbArgs { logits: &logits, targets: &targets, out: &out.view, top: highest };
        device.log_probs(stream, args.check()?)?;
        let (out, ids, top) = (out.read_bytes(stream)?, ids.read_bytes(stream)?, top.read_bytes(stream)?);
        let rows = out.chunks_exact(4).zip(ids.chunks_exact(36)).zip(top.chunks_exact(36));
        Ok(rows.flat_map(|((out, ids), top)| [out, ids, top].concat()).collect())
    })
}

fn top_k<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let x = input::<B>(stream, 301)?;
    for spec in [TopKSpec::largest(20), TopKSpec::smallest(300)] {
        for want_ids in [false, true] {
            same_rows(&format!("{spec:?}"), spec.k * 4, |rows| {
                let dims = [rows.len(), spec.k];
                let values = Guarded::<B>::output(stream, DType::F32, &dims, Layout::Dense)?;
                let ids = Guarded::<B>::output(stream, DType::I32, &dims, Layout::Dense)?;
                let x = x.narrow(0, rows)?;
                let args = TopKArgs { spec: &spec, x: &x, values: &values.view, ids: &ids.view };
                device.top_k(stream, args.check()?)?;
                if want_ids { ids.read_bytes(stream) } else { values.read_bytes(stream) }
            })?;
        }
    }
    Ok(())
}

/// Requests with three drafts each, of which some stand.
fn verify<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let (vocabulary, drafted) = (65, 3);
    let logits: Vec<f32> = Rng::new(9).spreads(ROWS * (drafted + 1) * vocabulary);
    let logits = Tensor::<B>::from_slice(stream, &logits, &[ROWS * (drafted + 1), vocabulary])?;
    let mut rng = Rng::new(10);
    let drafts: Vec<i32> = (0..ROWS * drafted).map(|_| rng.below(vocabulary) as i32).collect();
    let drafts = Tensor::<B>::from_slice(stream, &drafts, &[ROWS * drafted])?;
    let q = vec![1.0 / vocabulary as f32; ROWS * drafted * vocabulary];
    let q = Tensor::<B>::from_slice(stream, &q, &[ROWS * drafted, vocabulary])?;
    let params: Vec<SamplingParams> =
        (0..ROWS as u64).map(|row| SamplingParams::seeded(4.0, row).with_top_p(0.9).at(row)).collect();
    let capacity = VerifyCapacity::new(ROWS, ROWS * drafted);
    let mut plan = device.verify_plan(&SamplingSpec::new(vocabulary), &capacity)?;
    for drawn in [false, true] {
        same_rows("verify", 8, |rows| {
            let cu_drafts: Vec<u32> = (0..=rows.len()).map(|request| (request * drafted) as u32).collect();
            let step = VerifyStep { params: &params[rows.clone()], cu_drafts: &cu_drafts }.check(&plan)?;
            device.verify_update(stream, &mut plan, &step)?;
            let accepted = Guarded::<B>::output(stream, DType::I32, &[rows.len()], Layout::Dense)?;
            let next = Guarded::<B>::output(stream, DType::I32, &[rows.len()], Layout::Dense)?;
            let each = rows.start * drafted..rows.end * drafted;
            let (drafts, q) = (drafts.narrow(0, each.clone())?, q.narrow(0, each)?);
            let logits = logits.narrow(0, rows.start * (drafted + 1)..rows.end * (drafted + 1))?;
            let args = VerifyArgs {
                plan: &plan,
                logits: &logits,
                drafts: &drafts,
                probabilities: if drawn { DraftProbabilities::Drawn(&q) } else { DraftProbabilities::Chosen },
                accepted: &accepted.view,
                next: &next.view,
            };
            device.verify(stream, args.check()?)?;
            let (accepted, next) = (accepted.read_bytes(stream)?, next.read_bytes(stream)?);
            let pairs = accepted.chunks_exact(4).zip(next.chunks_exact(4));
            Ok(pairs.flat_map(|(accepted, next)| [accepted, next].concat()).collect())
        })?;
    }
    Ok(())
}
