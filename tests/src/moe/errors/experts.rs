//! Bad specs and arguments of experts.

use crate::{
    case::Verdict,
    judge::{refused, unsupported},
    ledger::denied,
    moe::{experts::Packed, layers::gated},
    random::Rng,
};
use halite_kernels::{
    Backend, DType, Tensor,
    activation::{Activation, GateLayout, Glu},
    linear::ActivationFormat,
    moe::{ExpertsArgs, ExpertsSpec, LayerInputs, LocalExperts, SharedWeights},
    quantize::ScaleSource,
};

pub(super) fn specs() -> Verdict {
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

pub(super) fn args<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let network = gated(0, 8, 6, Activation::Silu);
    let spec = ExpertsSpec::new(LocalExperts::range(1, 2), 2, network.clone());
    let with_shared = spec.clone().with_shared(network.clone());
    if denied(device.moe_supports(&spec)) || denied(device.moe_supports(&with_shared)) {
        return Ok(());
    }
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

pub(super) fn layer_inputs<B: Backend>(device: &B) -> Verdict {
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
