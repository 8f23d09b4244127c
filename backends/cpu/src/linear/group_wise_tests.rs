//! Integer weights against F32 weights made of them, and against integers, in every tier.

use crate::device::{Cpu, Options};
use crate::{linear::quantized::step, simd::Tier};
use halite_hal::{DType, Device, Stream, Tensor};
use halite_kernels::linear::{
    ActivationFormat, Activations, Epilogue, GroupOffset, GroupOffsets, HostWeights, Linear, LinearArgs,
    LinearSpec, WeightFormat,
};

fn q(count: usize) -> Vec<i8> {
    (0..count).map(|i| (i * 7 % 16) as i8).collect()
}

fn run(cpu: &Cpu, spec: &LinearSpec, weights: HostWeights<'_>, x: &[f32], rows: usize) -> Vec<u32> {
    let stream = &mut cpu.stream().unwrap();
    let packed = cpu.linear_pack(stream, weights.check(spec).unwrap()).unwrap();
    let x = Tensor::from_slice(stream, x, &[rows, spec.in_features]).unwrap();
    let out = Tensor::new(cpu, DType::F32, &[rows, spec.out_features]).unwrap();
    let args =
        LinearArgs { x: Activations::Float(&x), weights: &packed, epilogue: Epilogue::default(), out: &out };
    cpu.linear(stream, args.check().unwrap()).unwrap();
    out.to_vec::<f32>(stream).unwrap().into_iter().map(f32::to_bits).collect()
}

#[test]
fn times_floats_it_has_the_bits_of_dequantised_weights() {
    let (rows, n) = (5, 35);
    for tier in Tier::available() {
        let cpu = Cpu::new(Options::default().tier(tier).threads(2)).unwrap();
        for (k, group_size) in [(32usize, 16usize), (100, 32), (300, 144), (256, 256)] {
            let groups = k.div_ceil(group_size);
            let q = q(n * k);
            let scales: Vec<f32> = (0..n * groups).map(|i| 0.01 + i as f32 / 37.0).collect();
            let mins: Vec<f32> = (0..n * groups).map(|i| -0.3 - i as f32 / 29.0).collect();
            let element = |i: usize| {
                let place = i / k * groups + i % k / group_size;
                f32::from(q[i]) * scales[place] + mins[place]
            };
            let floats: Vec<f32> = (0..n * k).map(element).collect();
            let x: Vec<f32> = (0..rows * k).map(|i| ((i * 31 % 101) as f32 - 50.0) / 7.0).collect();
            let plain = LinearSpec::float(k, n, WeightFormat::F32);
            let expected = run(&cpu, &plain, HostWeights::F32(&floats), &x, rows);
            let format = WeightFormat::Int4PerGroup { group_size, offset: GroupOffset::Min };
            let offsets = GroupOffsets::Mins(&mins);
            let weights = HostWeights::Int4PerGroup { q: &q, scales: &scales, offsets, group_size };
            let got = run(&cpu, &LinearSpec::float(k, n, format), weights, &x, rows);
            assert_eq!(got, expected, "{tier} k {k} group {group_size}");
        }
    }
}

#[test]
fn steps_are_the_shorter_groups() {
    for (weights, activations, k, expected) in
        [(32, None, 100, 32), (128, Some(32), 256, 32), (32, Some(128), 256, 32), (128, Some(256), 100, 100)]
    {
        let mut spec =
            LinearSpec::w8a8(k, 1).with_weights(WeightFormat::Int8PerGroup { group_size: weights });
        if let Some(group_size) = activations {
            spec = spec.with_activation_format(ActivationFormat::Int8PerGroup { group_size });
        }
        assert!(spec.check().is_ok());
        assert_eq!(step(&spec), expected, "{spec:?}");
    }
}

#[test]
fn a_call_without_its_workspace_is_refused() {
    let cpu = Cpu::new(Options::default().threads(1)).unwrap();
    let stream = &mut cpu.stream().unwrap();
    let spec = LinearSpec::w8a8(64, 4).with_weights(WeightFormat::Int8PerGroup { group_size: 16 });
    let weights = HostWeights::Int8PerGroup { q: &[1; 256], scales: &[1.0; 16], group_size: 16 };
    let packed = cpu.linear_pack(stream, weights.check(&spec).unwrap()).unwrap();
    assert_eq!(cpu.linear_workspace(&packed, 3), 3 * 4 * 4, "a sum a row and step");
    let x = Tensor::from_slice(stream, &[1i8; 192], &[3, 64]).unwrap();
    let scales = Tensor::from_slice(stream, &[0.5f32; 3], &[3]).unwrap();
    let out = Tensor::new(&cpu, DType::F32, &[3, 4]).unwrap();
    let args = || LinearArgs {
        x: Activations::int8_per_token(&x, &scales),
        weights: &packed,
        epilogue: Epilogue::default(),
        out: &out,
    };
    assert!(cpu.linear(stream, args().check().unwrap()).is_err());
    stream.reserve(48).unwrap();
    cpu.linear(stream, args().check().unwrap()).unwrap();
    assert_eq!(out.to_vec::<f32>(stream).unwrap(), [32.0; 12]);
}
