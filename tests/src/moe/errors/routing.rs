//! Bad specs and arguments of routing.

use crate::{
    case::Verdict,
    judge::refused,
    poison::{Guarded, Layout},
};
use halite_kernels::{
    Backend, DType,
    moe::{GroupScore, RoutingArgs, RoutingSpec, Scoring},
};

pub(super) fn specs() -> Verdict {
    let spec = |experts, top_k| RoutingSpec::new(experts, top_k, Scoring::Sigmoid);
    for (argument, spec) in [
        ("experts", spec(0, 1)),
        ("experts", spec(1 << 31, 1)),
        ("experts", spec(usize::MAX, 1)),
        ("top_k", spec(8, 0)),
        ("top_k", spec(8, 9)),
        ("top_k", spec(8, usize::MAX)),
        ("scale", spec(8, 2).with_scale(f32::NAN)),
        ("scale", spec(8, 2).with_scale(f32::INFINITY)),
        ("groups", spec(8, 2).with_groups(0, 1, GroupScore::Best)),
        ("groups", spec(8, 2).with_groups(3, 1, GroupScore::Best)),
        ("groups", spec(8, 2).with_groups(16, 1, GroupScore::Best)),
        ("kept", spec(8, 2).with_groups(4, 0, GroupScore::TopTwo)),
        ("kept", spec(8, 2).with_groups(4, 5, GroupScore::TopTwo)),
        ("top_k", spec(8, 3).with_groups(4, 1, GroupScore::TopTwo)),
        ("top_k", spec(8, 2).with_groups(8, 1, GroupScore::Best)),
    ] {
        refused("routing", argument, spec.check())?;
    }
    Ok(spec(8, 2).with_groups(8, 2, GroupScore::TopTwo).check()?)
}

pub(super) fn args<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let spec = RoutingSpec::new(8, 2, Scoring::Softmax);
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let (logits, half, few) =
        (tensor(DType::F32, &[3, 8])?, tensor(DType::F16, &[3, 8])?, tensor(DType::F32, &[3, 7])?);
    let (bias, long) = (tensor(DType::F32, &[8])?, tensor(DType::F32, &[9])?);
    let (ids, floats, wide) =
        (tensor(DType::I32, &[3, 2])?, tensor(DType::F32, &[3, 2])?, tensor(DType::F32, &[3, 3])?);
    let (logits, half, few, bias, long) = (&logits.view, &half.view, &few.view, &bias.view, &long.view);
    let args = || RoutingArgs::<B> {
        spec: &spec,
        logits,
        correction_bias: None,
        ids: &ids.view,
        weights: &floats.view,
    };
    args().check()?;
    let narrow = logits.narrow(1, 0..2)?;
    let bad = RoutingSpec::new(8, 9, Scoring::Softmax);
    for (argument, args) in [
        ("logits", RoutingArgs { logits: half, ..args() }),
        ("logits", RoutingArgs { logits: few, ..args() }),
        ("logits", RoutingArgs { logits: bias, ..args() }),
        ("correction_bias", RoutingArgs { correction_bias: Some(long), ..args() }),
        ("ids", RoutingArgs { ids: &floats.view, ..args() }),
        ("ids", RoutingArgs { ids: &ids.view.narrow(0, 0..2)?, ..args() }),
        ("weights", RoutingArgs { weights: &wide.view, ..args() }),
        ("weights", RoutingArgs { weights: &narrow, ..args() }),
        ("top_k", RoutingArgs { spec: &bad, ..args() }),
    ] {
        refused("routing", argument, args.check())?;
    }
    ids.untouched(stream)
}
