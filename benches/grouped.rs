//! Grouped products: the experts that one rank holds of two models, a row a group to many.

use criterion::{Criterion, criterion_group, criterion_main};
use halite_bench::{
    Bench, Group, Measured, Product, Work, check_first, cold_copies, for_each_device, values,
};
use halite_hal::{DType, Result, Stream, Tensor};
use halite_kernels::{grouped::*, linear::*, quantize::*};

/// One product of a layer's experts.
struct Shape {
    name: &'static str,
    /// Experts of this rank.
    groups: usize,
    n: usize,
    k: usize,
}

const SHAPES: [Shape; 2] = [
    // 16 of 128 experts, gate and up together.
    Shape { name: "qwen3-30b-a3b on 8 ranks", groups: 16, n: 1536, k: 2048 },
    // An eighth of each of 8 experts, down.
    Shape { name: "mixtral-8x7b on 8 ranks", groups: 8, n: 4096, k: 1792 },
];

struct Groupeds;

impl Bench for Groupeds {
    const OPERATOR: &'static str = "grouped";

    fn run<B: Measured>(&self, group: &mut Group<'_>, device: &B) -> Result<()> {
        SHAPES.iter().try_for_each(|shape| measure(group, device, shape))
    }
}

fn measure<B: Measured>(
    group: &mut Group<'_>,
    device: &B,
    &Shape { name, groups, n, k }: &Shape,
) -> Result<()> {
    let stream = &mut device.stream()?;
    let spec = LinearSpec::w8a8(k, n);
    let data = values(n * k);
    let quantized: Vec<i8> = data.iter().map(|value| (value * 127.0).round() as i8).collect();
    let scales = vec![1.0 / 127.0; n];
    let host = HostWeights::Int8PerChannel { q: &quantized, scales: &scales };
    let bytes = groups * n * k;
    // The same weights in every group: their biases tell them apart.
    let weights = (0..cold_copies(bytes) * groups)
        .map(|_| device.linear_pack(stream, host.check(&spec)?))
        .collect::<Result<Vec<_>>>()?;
    let layers: Vec<_> = weights.chunks(groups).collect();
    let bias: Vec<f32> = (0..groups).flat_map(|group| vec![100.0 * group as f32; n]).collect();
    let bias = Tensor::from_slice(stream, &bias, &[groups, n])?;
    let x_data = values(k);
    let product: f64 = x_data.iter().zip(&data).map(|(x, w)| f64::from(x * w)).sum();

    for rows_a_group in [1, 16] {
        let rows = groups * rows_a_group;
        let offsets: Vec<i32> = (0..=groups).map(|group| (group * rows_a_group) as i32).collect();
        let offsets = Tensor::from_slice(stream, &offsets, &[groups + 1])?;
        let x = Tensor::from_slice(stream, &x_data.repeat(rows), &[rows, k])?;
        let q = Tensor::new(device, DType::I8, &[rows, k])?;
        let q_scales = Tensor::new(device, DType::F32, &[rows])?;
        let quantize = QuantizeSpec::new(DType::F32);
        device.quantize(stream, QuantizeArgs::new(&quantize, &x, &q, &q_scales).check()?)?;
        let out = Tensor::new(device, DType::F32, &[rows, n])?;
        let quantizing = device.quantize_workspace(&quantize, rows, k);
        stream.reserve(quantizing.max(device.grouped_workspace(&weights[0], rows)))?;
        let step = |stream: &mut B::Stream, weights: &[B::Packed]| -> Result<()> {
            let x = Activations::int8_per_token(&q, &q_scales);
            let args = GroupedArgs { x, weights, offsets: &offsets, bias: Some(&bias), out: &out };
            device.grouped(stream, args.check()?)
        };

        step(stream, layers[0])?;
        let answer = out.to_vec::<f32>(stream)?;
        for row in [0, rows - 1] {
            let bias = 100.0 * (row / rows_a_group) as f64;
            check_first(&answer[row * n..], product + bias, 0.03 * (k as f64).sqrt());
        }

        let products = (rows * n * k) as u64;
        let work = match rows_a_group {
            1 => Work::Weights {
                product: Product::Int8,
                products,
                moved: bytes as u64,
                resident: (bytes * layers.len()) as u64,
            },
            _ => Work::int8(products),
        };
        let mut turn = 0;
        group.measure(&format!("{name}/{groups}x{rows_a_group}x{n}x{k}/W8A8"), work, stream, |stream| {
            turn = (turn + 1) % layers.len();
            step(stream, layers[turn])
        })?;
    }
    Ok(())
}

fn grouped(criterion: &mut Criterion) {
    for_each_device(criterion, &Groupeds);
}

criterion_group!(benches, grouped);
criterion_main!(benches);
