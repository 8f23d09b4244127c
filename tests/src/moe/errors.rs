//! Bad arguments of the family.

use super::{experts::Packed, layers::gated};
use crate::{
    case::{Shown, Verdict},
    judge::{refused, unsupported},
    ledger::denied,
    poison::{Guarded, Layout},
    random::Rng,
};
use halite_kernels::{
    Backend, DType, Tensor,
    activation::{Activation, GateLayout, Glu},
    linear::{ActivationFormat, Activations},
    moe::{
        CombineArgs, DispatchArgs, ExpertsArgs, ExpertsSpec, GroupScore, LayerInputs, LocalExperts,
        RoutingArgs, RoutingSpec, Scoring, SharedWeights,
    },
    quantize::ScaleSource,
};

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("routing specs that make no sense", |_| routing_specs()),
        ("arguments of routing", routing_args),
        ("arguments of dispatch and combine", permutation_args),
        ("layers that do not fit each other", |_| experts_specs()),
        ("arguments of experts", experts_args),
        ("what rows of experts are quantised with", layer_inputs),
    ]
}

fn routing_specs() -> Verdict {
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

fn routing_args<B: Backend>(device: &B) -> Verdict {
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

fn permutation_args<B: Backend>(device: &B) -> Verdict {
    let tensor = |dtype, dims: &[usize]| Tensor::<B>::new(device, dtype, dims);
    let (x, half, q) =
        (tensor(DType::F32, &[3, 5])?, tensor(DType::F16, &[3, 5])?, tensor(DType::I8, &[3, 5])?);
    let (rows, half_rows, few) =
        (tensor(DType::F32, &[6, 5])?, tensor(DType::F16, &[6, 5])?, tensor(DType::F32, &[5, 5])?);
    let (q_rows, scales, row_scales) =
        (tensor(DType::I8, &[6, 5])?, tensor(DType::F32, &[3])?, tensor(DType::F32, &[6])?);
    let (ids, places, narrow_ids) =
        (tensor(DType::I32, &[3, 2])?, tensor(DType::I32, &[3, 2])?, tensor(DType::I32, &[3, 1])?);
    let (weights, offsets, long) =
        (tensor(DType::F32, &[3, 2])?, tensor(DType::I32, &[5])?, tensor(DType::I32, &[6])?);
    let no_slots = tensor(DType::I32, &[3, 0])?;
    let args = || DispatchArgs::<B> {
        local: LocalExperts::all(4),
        x: Activations::Float(&x),
        ids: &ids,
        weights: Some(&weights),
        rows: Activations::Float(&rows),
        offsets: &offsets,
        places: &places,
    };
    args().check()?;
    let int8 = |q, scales| Activations::Int8PerToken { q, scales };
    for (argument, args) in [
        ("count", DispatchArgs { local: LocalExperts::all(0), ..args() }),
        ("first + count", DispatchArgs { local: LocalExperts::range(usize::MAX, 4), ..args() }),
        ("first + count", DispatchArgs { local: LocalExperts::range(i32::MAX as usize, 4), ..args() }),
        ("ids", DispatchArgs { ids: &weights, ..args() }),
        ("top_k", DispatchArgs { ids: &no_slots, ..args() }),
        ("x", DispatchArgs { x: Activations::Float(&ids), ..args() }),
        ("x", DispatchArgs { x: Activations::Float(&rows), ..args() }),
        ("x scales", DispatchArgs { x: int8(&q, &row_scales), ..args() }),
        ("rows", DispatchArgs { x: int8(&q, &scales), ..args() }),
        ("rows", DispatchArgs { rows: Activations::Float(&few), ..args() }),
        ("rows", DispatchArgs { rows: Activations::Float(&half_rows), ..args() }),
        ("row scales", DispatchArgs { x: int8(&q, &scales), rows: int8(&q_rows, &scales), ..args() }),
        ("weights", DispatchArgs { weights: Some(&x), ..args() }),
        ("offsets", DispatchArgs { offsets: &long, ..args() }),
        ("places", DispatchArgs { places: &narrow_ids, ..args() }),
        ("places", DispatchArgs { places: &ids, ..args() }),
        ("rows", DispatchArgs { x: Activations::Float(&rows.narrow(0, 0..3)?), ..args() }),
    ] {
        refused("dispatch", argument, args.check())?;
    }
    let args = || CombineArgs::<B> {
        rows: Activations::Float(&rows),
        places: &places,
        weights: Some(&weights),
        added: &[],
        out: &x,
    };
    args().check()?;
    for (argument, args) in [
        ("rows", CombineArgs { rows: Activations::Float(&weights), ..args() }),
        ("rows", CombineArgs { rows: Activations::Float(&ids), ..args() }),
        ("row scales", CombineArgs { rows: int8(&q_rows, &scales), ..args() }),
        ("places", CombineArgs { places: &weights, ..args() }),
        ("weights", CombineArgs { weights: Some(&x), ..args() }),
        ("out", CombineArgs { out: &few, ..args() }),
        ("out", CombineArgs { out: &q, ..args() }),
        ("out", CombineArgs { rows: Activations::Float(&x), ..args() }),
        ("added", CombineArgs { added: &[&half], ..args() }),
        ("out", CombineArgs { added: &[&x], ..args() }),
    ] {
        refused("combine", argument, args.check())?;
    }
    Ok(())
}

fn experts_specs() -> Verdict {
    let network = || gated(0, 8, 6, Activation::Silu);
    let spec = |network| ExpertsSpec::new(LocalExperts::all(4), 2, network);
    spec(network()).check()?;
    let (mut no_function, mut wide, mut deep, mut inner) = (network(), network(), network(), network());
    no_function.gate_up.gate = None;
    wide.gate_up.out_features = 7;
    deep.down.out_features = 9;
    inner.gate_up.output = DType::Bf16;
    let (mut bare, mut gate, mut none) = (gated(2, 8, 6, Activation::Silu), network(), network());
    (bare.gate_up.gate, bare.gate_up.output) = (None, DType::I32);
    (bare.gate_up.out_features, gate.down.gate) = (12, Some(Activation::Silu));
    none.gate_up.in_features = 0;
    let unit = |alpha, limit| {
        let mut network = network();
        (network.gate_up.gate, network.gate_up.out_features) = (None, 12);
        network.with_glu(Glu::Clamped { alpha, limit }, GateLayout::Split)
    };
    spec(unit(1.702, 7.0)).check()?;
    let int8 = || gated(2, 8, 6, Activation::Silu);
    let kept = |first, second| {
        let mut network = int8();
        network.gate_up = network.gate_up.with_outliers(2, first);
        network.down = network.down.with_outliers(2, second);
        network
    };
    spec(kept(DType::F32, DType::F32)).check()?;
    let mut no_integers = network();
    no_integers.down = no_integers.down.with_outliers(2, DType::F32);
    for (operator, argument, spec) in [
        ("moe", "count", ExpertsSpec::new(LocalExperts::all(0), 2, network())),
        ("moe", "top_k", ExpertsSpec::new(LocalExperts::all(4), 0, network())),
        ("moe", "dtype", spec(network()).with_dtype(DType::I8)),
        ("moe", "function", spec(no_function)),
        ("moe", "function", spec(network().with_glu(Glu::CLAMPED_SWIGLU, GateLayout::Split))),
        ("moe", "gate_up", spec(wide)),
        ("moe", "down", spec(deep)),
        ("moe", "down", spec(inner)),
        ("moe", "down", spec(gate)),
        ("moe", "gate_up", spec(bare.with_glu(Glu::CLAMPED_SWIGLU, GateLayout::Split))),
        ("moe", "gate_up", spec(network()).with_dtype(DType::Bf16)),
        ("linear", "in_features", spec(none)),
        ("moe", "glu", spec(unit(f32::NAN, 7.0))),
        ("moe", "glu", spec(unit(1.702, 0.0))),
        ("moe", "shared", spec(network()).with_shared(gated(0, 9, 6, Activation::Silu))),
        // Static scales of what has one a row, or none; outliers of another type than their rows.
        ("moe", "gate_up", spec(int8().with_scales(ScaleSource::Static, ScaleSource::Dynamic))),
        ("moe", "down", spec(int8().with_scales(ScaleSource::Dynamic, ScaleSource::Static))),
        ("moe", "down", spec(network().with_scales(ScaleSource::Dynamic, ScaleSource::Static))),
        ("moe", "gate_up", spec(kept(DType::F16, DType::F32))),
        ("moe", "down", spec(kept(DType::F32, DType::Bf16))),
        ("linear", "outliers", spec(no_integers)),
    ] {
        refused(operator, argument, spec.check())?;
    }
    refused("moe", "tokens * top_k", spec(network()).check_tokens(usize::MAX))?;
    refused("moe", "tokens * top_k", spec(network()).check_tokens(1 << 30))
}

fn experts_args<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let network = gated(0, 8, 6, Activation::Silu);
    let spec = ExpertsSpec::new(LocalExperts::range(1, 2), 2, network.clone());
    let with_shared = spec.clone().with_shared(network.clone());
    refused("moe", "tokens * top_k", device.moe_plan(&spec, usize::MAX))?;
    let (plan, shared_plan) = (device.moe_plan(&spec, 3)?, device.moe_plan(&with_shared, 3)?);
    let rng = &mut Rng::new(1);
    let two = Packed::new(device, stream, rng, &network, 2, true)?;
    let three = Packed::new(device, stream, rng, &network, 3, true)?;
    let other = Packed::new(device, stream, rng, &gated(1, 8, 6, Activation::Silu), 2, true)?;
    let one = Packed::new(device, stream, rng, &network, 1, true)?;
    let tensor = |dtype, dims: &[usize]| Tensor::<B>::new(device, dtype, dims);
    let (x, out, half) =
        (tensor(DType::F32, &[3, 8])?, tensor(DType::F32, &[3, 8])?, tensor(DType::F16, &[3, 8])?);
    let (ids, weights, long) =
        (tensor(DType::I32, &[3, 2])?, tensor(DType::F32, &[3, 2])?, tensor(DType::F32, &[4, 8])?);
    let flat = tensor(DType::F32, &[9])?;
    let args = || ExpertsArgs::<B> {
        plan: &plan,
        x: &x,
        ids: &ids,
        weights: &weights,
        experts: two.weights(),
        shared: None,
        residual: None,
        out: &out,
    };
    args().check()?;
    let shared = |expert, gate| {
        let mut weights = SharedWeights::new(expert);
        weights.gate = gate;
        Some(weights)
    };
    let (mut no_down, mut bias) = (two.weights(), two.weights());
    no_down.down = &[];
    bias.gate_up_bias = two.weights().down_bias;
    for (argument, args) in [
        ("tokens", ExpertsArgs { x: &long, ..args() }),
        ("x", ExpertsArgs { x: &half, ..args() }),
        ("x", ExpertsArgs { x: &weights, ..args() }),
        ("ids", ExpertsArgs { ids: &weights, ..args() }),
        ("weights", ExpertsArgs { weights: &x, ..args() }),
        ("out", ExpertsArgs { out: &half, ..args() }),
        ("out", ExpertsArgs { out: &x, ..args() }),
        ("experts", ExpertsArgs { experts: three.weights(), ..args() }),
        ("experts", ExpertsArgs { experts: other.weights(), ..args() }),
        ("experts", ExpertsArgs { experts: no_down, ..args() }),
        ("gate_up_bias", ExpertsArgs { experts: bias, ..args() }),
        ("shared", ExpertsArgs { shared: shared(one.weights(), None), ..args() }),
        ("shared", ExpertsArgs { plan: &shared_plan, ..args() }),
        ("shared", ExpertsArgs { plan: &shared_plan, shared: shared(two.weights(), None), ..args() }),
        (
            "shared gate",
            ExpertsArgs { plan: &shared_plan, shared: shared(one.weights(), Some(&flat)), ..args() },
        ),
        ("residual", ExpertsArgs { residual: Some(&half), ..args() }),
        ("out", ExpertsArgs { residual: Some(&out), ..args() }),
    ] {
        refused("moe", argument, args.check())?;
    }
    Ok(())
}

fn layer_inputs<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let format = ActivationFormat::AsymmetricPerTensor(DType::U8);
    let mut network = gated(2, 8, 6, Activation::Silu);
    network.gate_up = network.gate_up.with_activation_format(format).with_outliers(3, DType::F32);
    network.down = network.down.with_activation_format(format);
    let spec = |network| ExpertsSpec::new(LocalExperts::all(2), 1, network);
    let dynamic = spec(network.clone());
    let fixed = spec(network.with_scales(ScaleSource::Static, ScaleSource::Static));
    if denied(device.moe_supports(&fixed)) {
        return unsupported("moe", device.moe_plan(&fixed, 3));
    }
    let (plan, dynamic_plan) = (device.moe_plan(&fixed, 3)?, device.moe_plan(&dynamic, 3)?);
    let packed = Packed::new(device, stream, &mut Rng::new(1), &fixed.expert, 2, false)?;
    let tensor = |dtype, dims: &[usize]| Tensor::<B>::new(device, dtype, dims);
    let (x, out) = (tensor(DType::F32, &[3, 8])?, tensor(DType::F32, &[3, 8])?);
    let (ids, weights) = (tensor(DType::I32, &[3, 1])?, tensor(DType::F32, &[3, 1])?);
    let (one, three) = (tensor(DType::F32, &[1])?, tensor(DType::F32, &[3])?);
    let (floats, few) = (tensor(DType::F32, &[2])?, tensor(DType::I32, &[2, 2])?);
    let all = packed.weights();
    let args = |experts| ExpertsArgs::<B> {
        plan: &plan,
        x: &x,
        ids: &ids,
        weights: &weights,
        experts,
        shared: None,
        residual: None,
        out: &out,
    };
    args(all).check()?;
    let first = |inputs| args(all.with_gate_up_inputs(inputs));
    let second = |inputs| args(all.with_down_inputs(inputs));
    let (gate_up, down) = (all.gate_up_inputs, all.down_inputs);
    let mut no_scales = gate_up;
    no_scales.scales = None;
    let mut no_zeros = down;
    no_zeros.zero_points = None;
    let mut no_columns = gate_up;
    no_columns.outlier_columns = None;
    let columns = gate_up.outlier_columns.unwrap_or(&few);
    for (argument, args) in [
        ("gate_up_inputs", first(no_scales)),
        ("gate_up_inputs", first(gate_up.with_scales(&three))),
        ("gate_up_inputs", first(gate_up.with_scales(&one))),
        ("gate_up_inputs", first(no_columns)),
        ("gate_up_inputs", first(gate_up.with_outlier_columns(&few))),
        ("down_inputs", second(LayerInputs::default())),
        ("down_inputs", second(no_zeros)),
        ("down_inputs", second(down.with_zero_points(&floats))),
        ("down_inputs", second(down.with_outlier_columns(columns))),
        ("out", ExpertsArgs { out: &x, ..args(all) }),
        ("gate_up_inputs", ExpertsArgs { plan: &dynamic_plan, ..args(all) }),
    ] {
        refused("moe", argument, args.check())?;
    }
    Ok(())
}
