//! Tall tiles by the model of a matrix unit, which must change no bit of any product.

use super::*;
use crate::{
    device::{Cpu, Options},
    linear::{
        blocks::{Tiling, for_each_tile},
        epilogue::Int8ToI32,
        output::OutputRows,
        product::{Multiply, TALL},
    },
    simd::{Tier, random::Random},
};
use halite_hal::{DType, Device, Result, Tensor};
use halite_kernels::{
    activation::Activation,
    linear::{
        ActivationFormat, Activations, Epilogue, HostWeights, Linear, LinearArgs, LinearSpec, Quantized,
    },
};

#[test]
fn rows_and_k_choose_the_unit() {
    for (rows, k, expected) in [
        (0, 64, false),
        (1, 4096, false),
        (12, 4096, false),
        (13, 63, false),
        (13, 64, true),
        (512, 63, false),
        (512, 4096, true),
    ] {
        assert_eq!(worth(rows, k), expected, "{rows} rows of {k}");
    }
}

#[test]
fn the_last_rows_of_a_product_are_not_evened_out() {
    for (rows, expected) in
        [(13, &[13][..]), (32, &[32]), (33, &[32, 1]), (44, &[32, 12]), (45, &[32, 13]), (80, &[32, 32, 16])]
    {
        let mut heights = Vec::new();
        for_each_tile(Tiling::of_height(TALL, 4096, 1), rows, 0..1, |tile| heights.push(tile.rows.len()));
        assert_eq!(heights, expected, "{rows} rows");
    }
}

/// Sums of some rows with `n` channels, from a place within longer rows, in every tier with and without the unit.
fn compare(m: usize, n: usize, k: usize, gap: usize, mut fill: impl FnMut() -> (i8, u8)) {
    let stride = k + gap;
    let a: Vec<i8> = (0..m * stride - gap).map(|_| fill().0).collect();
    let columns = Columns::Plain;
    let weights: Vec<u8> = (0..columns.panels(n) * int8_panel_len(k)).map(|_| fill().1).collect();
    for tier in Tier::available() {
        let mut row_sums = vec![0; m];
        tier.run(SumRows {
            values: &a,
            stride,
            rows: m,
            k,
            group: k,
            times: 1,
            first: 0,
            sums: &mut row_sums,
        });
        let multiply = |matrix| {
            let mut out = vec![i32::MIN; m * n];
            let weights = Int8Weights::new(&weights, n, k, columns);
            let product = Int8Product::new(Int8Rows::new(&a, m, stride, k, &row_sums), weights);
            let product = product.with_matrix(matrix);
            assert_eq!(product.tall(), matrix.is_some() && worth(m, k));
            let epilogue = Int8ToI32 { out: OutputRows::new(&mut out, m, n, n) };
            tier.run(Multiply { product, panels: 0..columns.panels(n), epilogue });
            out
        };
        assert_eq!(
            multiply(Some(Matrix::MODEL)),
            multiply(None),
            "{tier}, m {m} n {n} k {k} stride {stride}"
        );
    }
}

#[test]
fn sums_are_the_same_for_every_row_count() {
    let mut random = Random::new(1);
    for m in 1..=70 {
        for (k, gap) in [(63, 0), (64, 0), (101, 3)] {
            compare(m, 40, k, gap, || (random.i8(), random.i8() as u8));
        }
    }
}

#[test]
fn sums_are_the_same_for_every_k() {
    let mut random = Random::new(2);
    for k in 60..=200 {
        for m in [13, 29] {
            compare(m, 33, k, k % 7, || (random.i8(), random.i8() as u8));
        }
    }
}

#[test]
fn sums_are_the_same_at_the_ends_of_bytes() {
    for pair in [(-128, 0), (127, 0), (-128, 255), (127, 255), (-128, 128), (0, 255)] {
        for k in [64, 130, 4097] {
            compare(33, 33, k, 0, || pair);
        }
    }
}

/// A layer's results.
fn results(tier: Tier, spec: &LinearSpec, rows: usize) -> Result<Vec<u32>> {
    let cpu = Cpu::new(Options::default().tier(tier).threads(2))?;
    let stream = &mut cpu.stream()?;
    let (k, n) = (spec.in_features, spec.weight_rows());
    let mut random = Random::new(rows as u64);
    let q: Vec<i8> = (0..n * k).map(|_| random.i8()).collect();
    let scales: Vec<f32> = (0..n).map(|i| 0.002 + 0.0001 * i as f32).collect();
    let zeros: Vec<i8> = (0..n).map(|_| random.i8()).collect();
    let symmetric = HostWeights::Int8PerChannel { q: &q, scales: &scales };
    let asymmetric = HostWeights::Int8PerChannelAsymmetric { q: &q, scales: &scales, zero_points: &zeros };
    let host = if spec.weights == symmetric.format() { symmetric } else { asymmetric };
    let packed = cpu.linear_pack(stream, host.check(spec)?)?;
    halite_hal::Stream::reserve(stream, cpu.linear_workspace(&packed, rows))?;

    let format = spec.activations;
    let x: Vec<i8> = (0..rows * k).map(|_| random.i8()).collect();
    let x = if format.dtype() == DType::U8 {
        Tensor::from_slice(stream, bytemuck::cast_slice::<i8, u8>(&x), &[rows, k])?
    } else {
        Tensor::from_slice(stream, &x, &[rows, k])?
    };
    let dims = format.scale_dims(rows, k);
    let count = dims.iter().product::<usize>();
    let scales: Vec<f32> = (0..count).map(|i| 0.01 + 0.003 * (i % 97) as f32).collect();
    let zeros: Vec<i32> = (0..count as i32).map(|i| i * 7 % 100).collect();
    let (scales, zeros) =
        (Tensor::from_slice(stream, &scales, &dims)?, Tensor::from_slice(stream, &zeros, &dims)?);
    let mut x = Quantized::new(&x, &scales);
    if format.has_zero_points() {
        x = x.with_zero_points(&zeros);
    }
    let out = Tensor::new(&cpu, spec.output, &[rows, spec.out_features])?;
    let args = LinearArgs {
        x: Activations::Quantized(x),
        weights: &packed,
        epilogue: Epilogue::default(),
        out: &out,
    };
    cpu.linear(stream, args.check()?)?;
    if spec.output == DType::I32 {
        return Ok(bytemuck::cast_vec(out.to_vec::<i32>(stream)?));
    }
    Ok(out.to_vec::<f32>(stream)?.into_iter().map(f32::to_bits).collect())
}

#[test]
fn layers_of_every_format_have_the_same_bits() {
    let host = [
        HostWeights::Int8PerChannel { q: &[], scales: &[] }.format(),
        HostWeights::Int8PerChannelAsymmetric { q: &[], scales: &[], zero_points: &[] }.format(),
    ];
    for activations in [
        ActivationFormat::Int8PerToken,
        ActivationFormat::Int8PerTensor,
        ActivationFormat::Int8PerGroup { group_size: 32 },
        ActivationFormat::Int8PerGroup { group_size: 64 },
        ActivationFormat::Int8PerGroup { group_size: 96 },
        ActivationFormat::AsymmetricPerToken(DType::U8),
        ActivationFormat::AsymmetricPerTensor(DType::I8),
    ] {
        for weights in host {
            let plain = LinearSpec::w8a8(150, 75).with_weights(weights).with_activation_format(activations);
            let gated = plain.clone().gated(Activation::Silu);
            let sums = plain.clone().with_output(DType::I32);
            for spec in [plain, gated, sums].iter().filter(|spec| spec.check().is_ok()) {
                for rows in [12, 13, 16, 17, 33, 45] {
                    for tier in Tier::available() {
                        let expected = results(tier, spec, rows).unwrap();
                        let got = results(tier.with_model(), spec, rows).unwrap();
                        assert_eq!(got, expected, "{tier}, {rows} rows, {spec:?}");
                    }
                }
            }
        }
    }
}
