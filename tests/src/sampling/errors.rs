//! Bad arguments of sampling.

use crate::{
    case::{Shown, Verdict},
    judge::refused,
    poison::{Guarded, Layout},
};
use halite_kernels::{
    Backend, DType,
    sampling::{LogProbArgs, SamplingArgs, SamplingParams, SamplingSpec, SamplingStep},
};

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("vocabularies and parameters out of range", ranges),
        ("tensors that do not fit", tensors),
        ("log-probabilities: tensors that do not fit", log_probs),
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
        refused("sampling", argument, LogProbArgs { logits, targets, out }.check())?;
    }
    out.untouched(stream)
}
