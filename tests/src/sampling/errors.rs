//! Bad arguments of sampling.

use crate::{
    case::{Shown, Verdict},
    judge::refused,
    poison::{Guarded, Layout},
};
use halite_kernels::{
    Backend, DType,
    sampling::{
        DraftProbabilities, LogProbArgs, ProbabilityArgs, SamplingArgs, SamplingParams, SamplingSpec,
        SamplingStep, TopLogProbs, VerifyArgs, VerifyCapacity, VerifyStep,
    },
};

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("vocabularies and parameters out of range", ranges),
        ("tensors that do not fit", tensors),
        ("log-probabilities: tensors that do not fit", log_probs),
        ("probabilities: tensors that do not fit", probabilities),
        ("verification: steps and tensors that do not fit", verification),
    ]
}

fn ranges<B: Backend>(device: &B) -> Verdict {
    for vocabulary in [0, 1 << 31, usize::MAX] {
        let spec = SamplingSpec::new(vocabulary);
        refused("sampling", "vocabulary", spec.check())?;
        refused("sampling", "vocabulary", device.sampling_plan(&spec, 1))?;
    }
    let plan = device.sampling_plan(&SamplingSpec::new(5), 2)?;
    let seeded = |temperature| SamplingParams::seeded(temperature, 1);
    for (argument, params) in [
        ("temperature", seeded(-0.1)),
        ("temperature", seeded(f32::NAN)),
        ("temperature", seeded(f32::INFINITY)),
        ("top_p", seeded(1.0).with_top_p(0.0)),
        ("top_p", seeded(1.0).with_top_p(1.1)),
        ("top_p", seeded(1.0).with_top_p(f32::NAN)),
        ("min_p", seeded(1.0).with_min_p(-0.1)),
        ("min_p", seeded(1.0).with_min_p(1.1)),
        ("min_p", seeded(1.0).with_min_p(f32::NAN)),
    ] {
        let params = [SamplingParams::greedy(), params];
        refused("sampling", argument, SamplingStep { params: &params }.check(&plan))?;
    }
    let three = vec![SamplingParams::greedy(); 3];
    refused("sampling", "rows", SamplingStep { params: &three }.check(&plan))?;
    let step = SamplingStep { params: &three[..1] }.check(&plan)?;
    let mut other = device.sampling_plan(&SamplingSpec::new(5), 3)?;
    refused("sampling", "step", device.sampling_update(&mut device.stream()?, &mut other, &step))
}

fn tensors<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let mut plan = device.sampling_plan(&SamplingSpec::new(5), 4)?;
    let step = vec![SamplingParams::greedy(); 2];
    let step = SamplingStep { params: &step }.check(&plan)?;
    device.sampling_update(stream, &mut plan, &step)?;
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let (logits, wide, half) =
        (tensor(DType::F32, &[2, 5])?, tensor(DType::F32, &[2, 6])?, tensor(DType::F16, &[2, 5])?);
    let (long, ids, many) =
        (tensor(DType::F32, &[3, 5])?, tensor(DType::I32, &[2])?, tensor(DType::I32, &[3])?);
    let flat = tensor(DType::F32, &[2])?;
    let args = |logits, ids| SamplingArgs::<B> { plan: &plan, logits, ids };
    for (argument, args) in [
        ("logits", args(&wide.view, &ids.view)),
        ("logits", args(&half.view, &ids.view)),
        ("logits", args(&long.view, &ids.view)),
        ("logits", args(&flat.view, &ids.view)),
        ("ids", args(&logits.view, &many.view)),
        ("ids", args(&logits.view, &flat.view)),
    ] {
        refused("sampling", argument, args.check())?;
    }
    ids.untouched(stream)
}

fn log_probs<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let (logits, half) = (tensor(DType::F32, &[2, 5])?, tensor(DType::F16, &[2, 5])?);
    let (targets, many) = (tensor(DType::I32, &[2])?, tensor(DType::I32, &[3])?);
    let (out, long) = (tensor(DType::F32, &[2])?, tensor(DType::F32, &[3])?);
    let inside = logits.view.narrow(0, 0..1)?.narrow(1, 0..2)?.reshape(&[2])?;
    for (argument, logits, targets, out) in [
        ("logits", &half.view, &targets.view, &out.view),
        ("logits", &out.view, &targets.view, &out.view),
        ("targets", &logits.view, &many.view, &out.view),
        ("targets", &logits.view, &out.view, &out.view),
        ("out", &logits.view, &targets.view, &long.view),
        ("out", &logits.view, &targets.view, &targets.view),
        ("out", &logits.view, &targets.view, &inside),
    ] {
        refused("sampling", argument, LogProbArgs { logits, targets, out, top: None, all: None }.check())?;
    }
    let (ids, top) = (tensor(DType::I32, &[2, 3])?, tensor(DType::F32, &[2, 3])?);
    let (wide, wide_ids) = (tensor(DType::F32, &[2, 6])?, tensor(DType::I32, &[2, 6])?);
    let inside = logits.view.narrow(1, 0..3)?;
    for (argument, ids, log_probs) in [
        ("top.ids", &wide_ids.view, &wide.view),
        ("top.ids", &top.view, &top.view),
        ("top.ids", &targets.view, &top.view),
        ("top.ids", &wide_ids.view.narrow(0, 0..1)?, &top.view),
        ("top.log_probs", &ids.view, &wide.view),
        ("top.log_probs", &ids.view, &ids.view),
        ("top.log_probs", &ids.view, &inside),
    ] {
        let (logits, targets, out) = (&logits.view, &targets.view, &out.view);
        let top = Some(TopLogProbs::new(ids, log_probs));
        refused("sampling", argument, LogProbArgs { logits, targets, out, top, all: None }.check())?;
    }
    let (narrow, wide_top) = (tensor(DType::F32, &[2, 4])?, tensor(DType::F32, &[2, 5])?);
    let over_top = wide_top.view.narrow(1, 0..3)?;
    for all in [&narrow.view, &half.view, &logits.view, &wide_top.view] {
        let (logits, targets, out) = (&logits.view, &targets.view, &out.view);
        let top = Some(TopLogProbs::new(&ids.view, &over_top));
        let args = LogProbArgs { logits, targets, out, top, all: Some(all) };
        refused("sampling", "all", args.check())?;
    }
    out.untouched(stream)
}

fn probabilities<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let mut plan = device.sampling_plan(&SamplingSpec::new(5), 4)?;
    let step = vec![SamplingParams::greedy(); 2];
    let step = SamplingStep { params: &step }.check(&plan)?;
    device.sampling_update(stream, &mut plan, &step)?;
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let (logits, out, half) =
        (tensor(DType::F32, &[2, 5])?, tensor(DType::F32, &[2, 5])?, tensor(DType::F16, &[2, 5])?);
    let wide = tensor(DType::F32, &[2, 6])?;
    let args = |logits, out| ProbabilityArgs::<B> { plan: &plan, logits, out };
    for (argument, args) in [
        ("logits", args(&half.view, &out.view)),
        ("logits", args(&wide.view, &out.view)),
        ("out", args(&logits.view, &half.view)),
        ("out", args(&logits.view, &wide.view)),
        ("out", args(&logits.view, &logits.view)),
    ] {
        refused("sampling", argument, args.check())?;
    }
    out.untouched(stream)
}

fn verification<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let spec = SamplingSpec::new(5);
    refused("sampling", "vocabulary", device.verify_plan(&SamplingSpec::new(0), &VerifyCapacity::new(1, 1)))?;
    let mut plan = device.verify_plan(&spec, &VerifyCapacity::new(2, 4))?;
    let params = vec![SamplingParams::greedy(); 3];
    for (argument, requests, cu_drafts) in [
        ("requests", 3, &[0, 1, 2, 3][..]),
        ("drafts", 2, &[0, 1, 5]),
        ("cu_drafts", 2, &[0, 1]),
        ("cu_drafts", 2, &[0, 1, 2, 3]),
        ("cu_drafts", 2, &[1, 1, 2]),
        ("cu_drafts", 2, &[0, 3, 2]),
        ("cu_drafts", 0, &[]),
    ] {
        let step = VerifyStep { params: &params[..requests], cu_drafts };
        refused("sampling", argument, step.check(&plan))?;
    }
    let wrong = [SamplingParams::greedy().with_min_p(2.0)];
    refused("sampling", "min_p", VerifyStep { params: &wrong, cu_drafts: &[0, 1] }.check(&plan))?;
    let step = VerifyStep { params: &params[..2], cu_drafts: &[0, 1, 3] }.check(&plan)?;
    let mut other = device.verify_plan(&spec, &VerifyCapacity::new(2, 5))?;
    refused("sampling", "step", device.verify_update(stream, &mut other, &step))?;
    device.verify_update(stream, &mut plan, &step)?;

    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let (logits, short) = (tensor(DType::F32, &[5, 5])?, tensor(DType::F32, &[3, 5])?);
    let (drafts, two) = (tensor(DType::I32, &[3])?, tensor(DType::I32, &[2])?);
    let (q, accepted, next) =
        (tensor(DType::F32, &[3, 5])?, tensor(DType::I32, &[2])?, tensor(DType::I32, &[2])?);
    let float = tensor(DType::F32, &[2])?;
    let args = || VerifyArgs::<B> {
        plan: &plan,
        logits: &logits.view,
        drafts: &drafts.view,
        probabilities: DraftProbabilities::Drawn(&q.view),
        accepted: &accepted.view,
        next: &next.view,
    };
    for (argument, args) in [
        ("logits", VerifyArgs { logits: &short.view, ..args() }),
        ("drafts", VerifyArgs { drafts: &two.view, ..args() }),
        ("probabilities", VerifyArgs { probabilities: DraftProbabilities::Drawn(&logits.view), ..args() }),
        ("accepted", VerifyArgs { accepted: &drafts.view, ..args() }),
        ("accepted", VerifyArgs { accepted: &float.view, ..args() }),
        ("accepted", VerifyArgs { accepted: &drafts.view.narrow(0, 1..3)?, ..args() }),
        ("next", VerifyArgs { next: &float.view, ..args() }),
        ("next", VerifyArgs { next: &accepted.view, ..args() }),
        ("next", VerifyArgs { next: &drafts.view.narrow(0, 0..2)?, ..args() }),
    ] {
        refused("sampling", argument, args.check())?;
    }
    accepted.untouched(stream)?;
    next.untouched(stream)
}
