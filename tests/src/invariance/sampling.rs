//! Drawn tokens, log-probabilities and verified drafts, alone and in a batch.

use super::rows::{ROWS, input, same_rows};
use crate::{
    case::Verdict,
    poison::{Guarded, Layout},
    random::Rng,
};
use halite_kernels::{
    Backend, DType, Tensor,
    sampling::{
        DraftProbabilities, LogProbArgs, ProbabilityArgs, SamplingArgs, SamplingParams, SamplingSpec,
        SamplingStep, TopLogProbs, VerifyArgs, VerifyCapacity, VerifyStep,
    },
};

pub(super) fn rows<B: Backend>(device: &B) -> Verdict {
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
    same_rows("log_probs", 4 + 2 * 36 + vocabulary * 4, |rows| {
        let out = Guarded::<B>::output(stream, DType::F32, &[rows.len()], Layout::Dense)?;
        let (logits, targets) = (logits.narrow(0, rows.clone())?, targets.narrow(0, rows)?);
        let ids = Guarded::<B>::output(stream, DType::I32, &[out.view.dims()[0], 9], Layout::Dense)?;
        let top = Guarded::<B>::output(stream, DType::F32, ids.view.dims(), Layout::Dense)?;
        let highest = Some(TopLogProbs::new(&ids.view, &top.view));
        let dims = [out.view.dims()[0], vocabulary];
        let all = Guarded::<B>::output(stream, DType::F32, &dims, Layout::Dense)?;
        let (out_view, all_view) = (&out.view, Some(&all.view));
        let args =
            LogProbArgs { logits: &logits, targets: &targets, out: out_view, top: highest, all: all_view };
        device.log_probs(stream, args.check()?)?;
        let (out, ids, top) = (out.read_bytes(stream)?, ids.read_bytes(stream)?, top.read_bytes(stream)?);
        let all = all.read_bytes(stream)?;
        let rows = out.chunks_exact(4).zip(ids.chunks_exact(36));
        let rows = rows.zip(top.chunks_exact(36).zip(all.chunks_exact(vocabulary * 4)));
        Ok(rows.flat_map(|((out, ids), (top, all))| [out, ids, top, all].concat()).collect())
    })
}

/// Requests with three drafts each, of which some stand.
pub(super) fn drafts<B: Backend>(device: &B) -> Verdict {
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
