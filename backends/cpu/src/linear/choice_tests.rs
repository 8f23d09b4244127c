//! What is chosen for which layer, number of rows, tier and number of threads. Whoever moves a threshold moves it here.

use super::{
    super::{
        blocks::{Tiling, for_each_tile},
        float, int8,
        pack::PANEL,
        product::TILE,
        quantized::step,
    },
    *,
};
use crate::{
    cost,
    device::{Cpu, Options},
    simd::Tier,
    threads::units_per_task,
};
use halite_hal::{Device, Result, Tensor};
use halite_kernels::{
    Support,
    linear::{Activations, Epilogue, GroupOffset, HostWeights, Linear, LinearArgs, WeightFormat},
};
use std::collections::BTreeSet;

/// The rows of a tile that each tier allows; `simd::tests` holds the tiers to them.
const TILE_ROWS: [(&str, usize); 3] = [("avx2, avx-vnni", 2), ("portable", 4), ("avx512", 12)];

const FLOAT: ActivationFormat = ActivationFormat::Float(DType::F32);

fn spec(weights: WeightFormat, activations: ActivationFormat, output: DType) -> LinearSpec {
    LinearSpec::w8a8(256, 64).with_weights(weights).with_activation_format(activations).with_output(output)
}

/// Every format of weights, with whether floats meet them as stored.
fn formats() -> Vec<(WeightFormat, Option<DType>)> {
    let offsets = [GroupOffset::Symmetric, GroupOffset::ZeroPoint, GroupOffset::Min];
    let mut all = vec![
        (WeightFormat::F32, Some(DType::F32)),
        (WeightFormat::F16, Some(DType::F16)),
        (WeightFormat::Bf16, Some(DType::Bf16)),
        (WeightFormat::Int8PerChannel, None),
        (WeightFormat::Int8PerChannelAsymmetric, None),
        (WeightFormat::Int8PerTensor, None),
        (WeightFormat::Int8PerGroup { group_size: 16 }, None),
        (WeightFormat::Q4_0, None),
        (WeightFormat::Q4_1, None),
        (WeightFormat::Q4K, None),
    ];
    all.extend(offsets.map(|offset| (WeightFormat::Int4PerGroup { group_size: 32, offset }, None)));
    all
}

#[test]
fn formats_choose_the_product() {
    let cpu = Cpu::new(Options::default().threads(1)).unwrap();
    for (weights, as_stored) in formats() {
        for dtype in [DType::F32, DType::F16, DType::Bf16] {
            let spec = spec(weights, ActivationFormat::Float(dtype), DType::F32);
            assert_eq!(cpu.linear_supports(&spec), Support::Native);
            let expected = as_stored.map_or(FloatKernel::Dequantized, FloatKernel::Stored);
            assert_eq!(FloatKernel::of(&spec), expected, "{spec:?}");
        }
        if !weights.is_integer() {
            continue;
        }
        for (activations, scales) in [
            (ActivationFormat::Int8PerToken, ScaleKind::Row),
            (ActivationFormat::Int8PerTensor, ScaleKind::All),
            (ActivationFormat::Int8PerGroup { group_size: 64 }, ScaleKind::Group(64)),
            (ActivationFormat::AsymmetricPerToken(DType::U8), ScaleKind::Row),
            (ActivationFormat::AsymmetricPerTensor(DType::I8), ScaleKind::All),
        ] {
            assert_eq!(ScaleKind::of(activations), scales);
            for (output, per_channel) in [
                (DType::F32, IntegerKernel::Scaled),
                (DType::Bf16, IntegerKernel::Scaled),
                (DType::I8, IntegerKernel::Scaled),
                (DType::I32, IntegerKernel::Sums),
            ] {
                let spec = spec(weights, activations, output);
                let expected = if weights.is_channel_wise() { per_channel } else { IntegerKernel::GroupWise };
                assert_eq!(IntegerKernel::of(&spec), expected, "{spec:?}");
            }
        }
    }
}

#[test]
fn the_output_chooses_what_follows() {
    for (output, expected) in [
        (DType::F32, Ending::Finish(DType::F32)),
        (DType::F16, Ending::Finish(DType::F16)),
        (DType::Bf16, Ending::Finish(DType::Bf16)),
        (DType::I8, Ending::Requantize),
        (DType::U8, Ending::Requantize),
    ] {
        assert_eq!(Ending::of(output), expected);
    }
}

#[test]
fn a_step_of_k_is_the_shorter_group() {
    let per_channel = WeightFormat::Int8PerChannel;
    let groups = |group_size| WeightFormat::Int8PerGroup { group_size };
    let (token, columns) =
        (ActivationFormat::Int8PerToken, |group_size| ActivationFormat::Int8PerGroup { group_size });
    for (k, weights, activations, expected) in [
        (256, per_channel, token, 256),
        (1, per_channel, token, 1),
        (256, per_channel, columns(32), 32),
        (256, per_channel, columns(512), 256),
        (256, groups(128), token, 128),
        (256, groups(128), columns(32), 32),
        (256, groups(32), columns(128), 32),
        (100, groups(128), token, 100),
        (256, WeightFormat::Q4_0, token, 32),
        (256, WeightFormat::Q4K, columns(64), 32),
    ] {
        let spec = LinearSpec::w8a8(k, 64).with_weights(weights).with_activation_format(activations);
        assert_eq!(step(&spec), expected, "{spec:?}");
    }
}

#[test]
fn rows_and_tier_choose_the_tile() {
    // For each tier, height x panels of a tile of floats.
    for (rows, expected) in [
        (0, [(1, 1), (1, 1), (1, 1)]),
        (1, [(1, 4), (1, 4), (1, 4)]),
        (2, [(2, 1), (2, 2), (2, 2)]),
        (3, [(2, 1), (3, 2), (3, 2)]),
        (4, [(2, 1), (4, 1), (4, 1)]),
        (5, [(2, 1), (3, 1), (5, 1)]),
        (8, [(2, 1), (4, 1), (8, 1)]),
        (9, [(2, 1), (3, 1), (9, 1)]),
        (12, [(2, 1), (4, 1), (12, 1)]),
        (13, [(2, 1), (4, 1), (7, 1)]),
        (24, [(2, 1), (4, 1), (12, 1)]),
        (25, [(2, 1), (4, 1), (9, 1)]),
        (512, [(2, 1), (4, 1), (12, 1)]),
    ] {
        for ((tier, tile_rows), (height, panels)) in TILE_ROWS.into_iter().zip(expected) {
            let wide = float::panels_at_once(rows, tile_rows);
            let tiling = Tiling::new(rows, 4 * 4096, tile_rows, wide);
            assert_eq!((tiling.height, tiling.panels), (height, panels), "{rows} rows, {tier}");
        }
    }
}

#[test]
fn rows_choose_the_sums_in_flight() {
    let sets = [(1, 8), (2, 4), (3, 4), (4, 2), (5, 2), (6, 1), (7, 1), (11, 1), (12, 1)];
    for (rows, expected) in sets {
        assert_eq!(int8::sets(rows), expected, "{rows} rows");
    }
}

#[test]
fn rows_stay_in_a_megabyte() {
    for (rows, row_bytes, tile_rows, expected) in [
        (0, 0, 12, 1 << 20),
        (1, 4096, 12, 256),
        // Whole tiles of 12 rows: 21 of them, and 10 of twice the length.
        (512, 4096, 12, 21 * 12),
        (512, 8192, 12, 10 * 12),
        (512, 4096, 4, 64 * 4),
        (512, 4096, 2, 128 * 2),
        // At least one tile, however long its rows are.
        (512, (1 << 20) / 12, 12, 12),
        (512, (1 << 20) / 24 + 1, 12, 12),
        (512, (1 << 20) / 24, 12, 24),
        (512, 1 << 22, 12, 12),
    ] {
        let group = Tiling::new(rows, row_bytes, tile_rows, 1).group;
        assert_eq!(group, expected, "{rows} rows of {row_bytes} bytes, tiles of {tile_rows}");
    }
}

#[test]
fn work_and_threads_choose_the_panels_of_a_task() {
    let (int8, float) = (cost::int8_panel, |rows, k| cost::float_panel(rows, k, 4));
    for (what, threads, n, nanoseconds, expected) in [
        // One thread takes all; so does the caller where all panels take less than 4 µs.
        ("INT8", 1, 4096, int8(512, 4096), 128),
        ("INT8", 2, 0, int8(1, 576), 1),
        ("INT8", 2, 96, int8(1, 576), 3),
        ("INT8", 2, 1536, int8(1, 1), 48),
        // Decode is bound by bytes, 1,152 ns a panel: at least 2 µs a task.
        ("INT8", 2, 1536, int8(1, 576), 6),
        ("INT8", 2, 1536, int8(18, 576), 6),
        ("INT8", 64, 1536, int8(1, 576), 2),
        ("INT8", 64, 1536, int8(64, 576), 1),
        // Four tasks a thread.
        ("INT8", 2, 4096, int8(1, 4096), 16),
        ("INT8", 16, 4096, int8(512, 4096), 2),
        ("INT8", 256, 4096, int8(512, 4096), 1),
        ("F32", 2, 64, float(1, 64), 2),
        ("F32", 2, 1536, float(1, 64), 6),
        ("F32", 64, 1536, float(1, 64), 4),
        ("F32", 64, 1536, float(128, 64), 1),
    ] {
        let panels = n / PANEL;
        let chosen = units_per_task(threads, panels, nanoseconds);
        assert_eq!(chosen, expected, "{what}: {panels} panels of {nanoseconds} ns, {threads} threads");
    }
}

/// Rows and panels of all tiles that some number of rows and panels is cut into in some tier.
fn reached(wide: impl Fn(usize, usize) -> usize) -> BTreeSet<(usize, usize)> {
    let mut tiles = BTreeSet::new();
    for (_, tile_rows) in TILE_ROWS {
        for rows in 0..=40 {
            for panels in 0..=9 {
                let tiling = Tiling::new(rows, 64, tile_rows, wide(rows, tile_rows));
                for_each_tile(tiling, rows, 0..panels, |tile| {
                    let sums = tile.rows.len() * tile.panels.len();
                    assert!(sums <= TILE, "{tile:?}");
                    tiles.insert((tile.rows.len(), tile.panels.len()));
                });
            }
        }
    }
    tiles
}

#[test]
fn every_tile_that_is_compiled_is_used_and_no_other() {
    let floats: BTreeSet<_> = float::TILES.iter().copied().collect();
    assert_eq!(reached(float::panels_at_once), floats);
    let integers: BTreeSet<_> = int8::TILES.iter().map(|&rows| (rows, 1)).collect();
    assert_eq!(reached(|_, _| 1), integers);
}

#[test]
fn every_product_is_some_layers() {
    let mut floats = Vec::new();
    let mut integers = Vec::new();
    for (weights, _) in formats() {
        floats.push(FloatKernel::of(&spec(weights, FLOAT, DType::F32)));
        if weights.is_integer() {
            for output in [DType::F32, DType::I32] {
                integers.push(IntegerKernel::of(&spec(weights, ActivationFormat::Int8PerToken, output)));
            }
        }
    }
    for dtype in [DType::F32, DType::F16, DType::Bf16] {
        assert!(floats.contains(&FloatKernel::Stored(dtype)));
    }
    assert!(floats.contains(&FloatKernel::Dequantized));
    for kernel in [IntegerKernel::GroupWise, IntegerKernel::Sums, IntegerKernel::Scaled] {
        assert!(integers.contains(&kernel), "{kernel:?}");
    }
}

/// A layer's results in a tier, of rows that are in every tier cut in another way.
fn results(tier: Tier, spec: &LinearSpec, rows: usize, host: HostWeights<'_>) -> Result<Vec<f32>> {
    let cpu = Cpu::new(Options::default().tier(tier).threads(1))?;
    let stream = &mut cpu.stream()?;
    let packed = cpu.linear_pack(stream, host.check(spec)?)?;
    halite_hal::Stream::reserve(stream, cpu.linear_workspace(&packed, rows))?;
    let k = spec.in_features;
    let out = Tensor::new(&cpu, DType::F32, &[rows, spec.out_features])?;
    let q: Vec<i8> = (0..rows * k).map(|i| (i * 37 % 255) as i8).collect();
    let floats: Vec<f32> = q.iter().map(|&q| f32::from(q) / 100.0).collect();
    let scales: Vec<f32> = (0..rows).map(|row| 0.01 + 0.003 * row as f32).collect();
    let (q, scales) =
        (Tensor::from_slice(stream, &q, &[rows, k])?, Tensor::from_slice(stream, &scales, &[rows])?);
    let floats = Tensor::from_slice(stream, &floats, &[rows, k])?;
    let x = match spec.activations {
        ActivationFormat::Float(_) => Activations::Float(&floats),
        _ => Activations::int8_per_token(&q, &scales),
    };
    let args = LinearArgs { x, weights: &packed, epilogue: Epilogue::default(), out: &out };
    cpu.linear(stream, args.check()?)?;
    out.to_vec(stream)
}

/// Integer sums are exact and their scales never fused, so tiers differ in the tile that they choose and in no bit.
/// Chains of floats are fused in the tiers of x86-64, which agree with each other, and not in the portable one.
#[test]
fn whatever_tile_a_tier_chooses_bits_agree_where_they_are_promised_to() {
    let (k, n) = (97, 5 * PANEL + 3);
    let q: Vec<i8> = (0..n * k).map(|i| (i * 91 % 251) as i8).collect();
    let floats: Vec<f32> = q.iter().map(|&q| f32::from(q) / 64.0).collect();
    let scales: Vec<f32> = (0..n).map(|i| 0.002 + 0.0001 * i as f32).collect();
    let group_scales: Vec<f32> = (0..n * k.div_ceil(32)).map(|i| 0.002 + 0.0001 * (i % 97) as f32).collect();
    let per_channel = HostWeights::Int8PerChannel { q: &q, scales: &scales };
    let per_group = HostWeights::Int8PerGroup { q: &q, scales: &group_scales, group_size: 32 };
    let layer = |host: HostWeights<'_>| LinearSpec::w8a8(k, n).with_weights(host.format());
    let float = LinearSpec::float(k, n, WeightFormat::F32);
    let cases = [
        (layer(per_channel), per_channel, true),
        (layer(per_group), per_group, true),
        (layer(per_group).with_activation_format(FLOAT), per_group, false),
        (float, HostWeights::F32(&floats), false),
    ];
    for (spec, host, portable_too) in &cases {
        for rows in [1, 2, 3, 4, 5, 12, 13] {
            let first = Tier::available().find(|&tier| *portable_too || tier != Tier::PORTABLE);
            let Some(first) = first else { continue };
            let expected = results(first, spec, rows, *host).unwrap();
            for tier in Tier::available().filter(|&tier| *portable_too || tier != Tier::PORTABLE) {
                let got = results(tier, spec, rows, *host).unwrap();
                let same = got.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(same, "{spec:?}, {rows} rows: {tier} and {first}");
            }
        }
    }
}
