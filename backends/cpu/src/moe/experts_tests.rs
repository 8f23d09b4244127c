use super::*;
use crate::device::Options;
use halite_hal::{Device, Error};
use halite_kernels::{
    activation::Activation,
    linear::{HostWeights, LinearSpec, WeightFormat},
    moe::{LocalExperts, Moe},
};

#[test]
fn a_plan_serves_one_call_at_a_time() {
    let cpu = Cpu::new(Options::default().threads(1)).unwrap();
    let stream = &mut cpu.stream().unwrap();
    let gate_up = LinearSpec::float(2, 2, WeightFormat::F32).gated(Activation::Silu);
    let down = LinearSpec::float(2, 2, WeightFormat::F32);
    let mut pack = |weights: &[f32], spec: &LinearSpec| {
        [cpu.linear_pack(stream, HostWeights::F32(weights).check(spec).unwrap()).unwrap()]
    };
    let (first, second) = (pack(&[1.0; 8], &gate_up), pack(&[1.0; 4], &down));
    let spec = ExpertsSpec::new(LocalExperts::all(1), 1, FeedForward::new(gate_up, down));
    let plan = cpu.moe_plan(&spec, 1).unwrap();
    let x = Tensor::from_slice(stream, &[1.0f32, 2.0], &[1, 2]).unwrap();
    let ids = Tensor::from_slice(stream, &[0i32], &[1, 1]).unwrap();
    let weights = Tensor::from_slice(stream, &[1.0f32], &[1, 1]).unwrap();
    let out = Tensor::from_slice(stream, &[7.0f32; 2], &[1, 2]).unwrap();
    let (x, ids, weights, out) = (&x, &ids, &weights, &out);
    let experts = ExpertWeights::new(&first, &second);
    let args = || ExpertsArgs { plan: &plan, x, ids, weights, experts, shared: None, residual: None, out };
    let other = plan.in_use.write(0..1).unwrap();
    assert!(matches!(cpu.moe(stream, args().check().unwrap()), Err(Error::Busy { .. })));
    assert_eq!(out.to_vec::<f32>(stream).unwrap(), [7.0; 2], "refused, and nothing written");
    drop(other);
    cpu.moe(stream, args().check().unwrap()).unwrap();
    assert_ne!(out.to_vec::<f32>(stream).unwrap(), [7.0; 2]);
}

#[test]
fn formats_choose_what_is_quantised_before_rows_are_sorted() {
    let int8 = LinearSpec::w8a8;
    let network = |gate_up: LinearSpec| FeedForward::new(gate_up.gated(Activation::Silu), int8(32, 64));
    let plain = network(LinearSpec::float(64, 32, WeightFormat::F32));
    for (gate_up, quantised) in [
        (LinearSpec::float(64, 32, WeightFormat::F32), false),
        (int8(64, 32), true),
        (int8(64, 32).with_weights(WeightFormat::Q4_0), true),
        // Each expert's rows by themselves.
        (int8(64, 32).with_outliers(2, DType::F32), false),
        (int8(64, 32).with_activation_format(ActivationFormat::Int8PerTensor), false),
        (int8(64, 32).with_activation_format(ActivationFormat::AsymmetricPerToken(DType::U8)), false),
    ] {
        let spec = ExpertsSpec::new(LocalExperts::all(4), 2, network(gate_up.clone()));
        assert_eq!(quantised_first(&spec), quantised, "{gate_up:?}");
        // Shared experts alone want it too.
        let spec = ExpertsSpec::new(LocalExperts::all(4), 2, plain.clone()).with_shared(network(gate_up));
        assert_eq!(quantised_first(&spec), quantised, "{spec:?}");
    }
}
