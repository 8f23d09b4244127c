//! Rows that are taken apart: which, and that they have the bits of rows that are not.

use super::{are_spread, copied_stride};
use crate::{
    device::{Cpu, Options},
    simd::Tier,
};
use halite_hal::{DType, Device, Stream, Tensor};
use halite_kernels::linear::{
    Activations, Epilogue, GroupOffset, GroupOffsets, HostWeights, Linear, LinearArgs, LinearSpec,
    WeightFormat,
};

#[test]
fn rows_that_share_cache_sets_are_taken_apart() {
    for (rows, k, spread, stride) in [
        (8, 4096, false, 4160),
        (9, 4096, true, 4160),
        (512, 8192, true, 8256),
        (512, 2048, false, 2048),
        (512, 11008, false, 11008),
        (512, 0, true, 64),
    ] {
        assert_eq!((are_spread(rows, k), copied_stride(k)), (spread && k > 0, stride), "{rows} x {k}");
    }
}

#[test]
fn rows_have_the_same_bits_apart() {
    const K: usize = 4096;
    const N: usize = 35;
    const GROUP: usize = 64;
    let q: Vec<i8> = (0..N * K).map(|i| (i * 7 % 15) as i8 - 7).collect();
    let scales: Vec<f32> = (0..N * (K / GROUP)).map(|i| 0.01 + (i % 37) as f32 / 370.0).collect();
    let per_channel = HostWeights::Int8PerChannel { q: &q, scales: &scales[..N] };
    let offsets = GroupOffsets::Symmetric;
    let per_group = HostWeights::Int4PerGroup { q: &q, scales: &scales, offsets, group_size: GROUP };
    let int4 = WeightFormat::Int4PerGroup { group_size: GROUP, offset: GroupOffset::Symmetric };
    for tier in Tier::available() {
        let cpu = Cpu::new(Options::default().tier(tier).threads(2)).unwrap();
        let w8a8 = LinearSpec::w8a8(K, N);
        for (spec, weights) in [(w8a8.clone(), per_channel), (w8a8.with_weights(int4), per_group)] {
            let stream = &mut cpu.stream().unwrap();
            let packed = cpu.linear_pack(stream, weights.check(&spec).unwrap()).unwrap();
            stream.reserve(cpu.linear_workspace(&packed, 25)).unwrap();
            // With a gap between rows too.
            for (rows, wide) in [(13, K), (25, K + 3)] {
                let x: Vec<i8> = (0..rows * wide).map(|i| (i * 31 % 255) as u8 as i8).collect();
                let row_scales: Vec<f32> = (0..rows).map(|i| 0.5 + i as f32).collect();
                let x = Tensor::from_slice(stream, &x, &[rows, wide]).unwrap().narrow(1, 0..K).unwrap();
                let row_scales = Tensor::from_slice(stream, &row_scales, &[rows]).unwrap();
                let mut run = |range: std::ops::Range<usize>| {
                    let out = Tensor::new(&cpu, DType::F32, &[range.len(), N]).unwrap();
                    let (x, scales) =
                        (x.narrow(0, range.clone()).unwrap(), row_scales.narrow(0, range).unwrap());
                    let x = Activations::int8_per_token(&x, &scales);
                    let args = LinearArgs { x, weights: &packed, epilogue: Epilogue::default(), out: &out };
                    cpu.linear(stream, args.check().unwrap()).unwrap();
                    out.to_vec::<f32>(stream).unwrap().into_iter().map(f32::to_bits).collect::<Vec<_>>()
                };
                let alone: Vec<u32> = (0..rows).flat_map(|row| run(row..row + 1)).collect();
                assert!(alone.iter().any(|&bits| bits != 0));
                assert_eq!(run(0..rows), alone, "{tier} {spec:?} {rows} rows, {wide} apart");
            }
        }
    }
}
