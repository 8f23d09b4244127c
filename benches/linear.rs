//! Linear layers: W8A8 with quantisation of F32 activations, and F32, over the shapes of a small and a 7B model.

use criterion::{Criterion, criterion_group, criterion_main};
use halite_bench::{
    Bench, Group, Measured, Product, Work, check_first, cold_copies, for_each_device, prompt, values,
};
use halite_hal::{DType, Result, Stream, Tensor};
use halite_kernels::{linear::*, quantize::*};

const SHAPES: [(usize, usize); 3] = [(1536, 576), (576, 1536), (4096, 4096)];
const ROWS: [usize; 4] = [1, 8, 128, 512];

struct Linears;

impl Bench for Linears {
    const OPERATOR: &'static str = "linear";

    fn run<B: Measured>(&self, group: &mut Group<'_>, device: &B) -> Result<()> {
        for shape in SHAPES {
            for rows in ROWS {
                let rows = if rows > 8 { prompt(rows) } else { rows };
                for format in [WeightFormat::Int8PerChannel, WeightFormat::F32] {
                    measure(group, device, rows, shape, format)?;
                }
            }
        }
        Ok(())
    }
}

fn measure<B: Measured>(
    group: &mut Group<'_>,
    device: &B,
    rows: usize,
    (n, k): (usize, usize),
    format: WeightFormat,
) -> Result<()> {
    let stream = &mut device.stream()?;
    let int8 = format == WeightFormat::Int8PerChannel;
    let spec = if int8 { LinearSpec::w8a8(k, n) } else { LinearSpec::float(k, n, format) };
    let data = values(n * k);
    let quantized: Vec<i8> = data.iter().map(|value| (value * 127.0).round() as i8).collect();
    let scales = vec![1.0 / 127.0; n];
    let host = if int8 {
        HostWeights::Int8PerChannel { q: &quantized, scales: &scales }
    } else {
        HostWeights::F32(&data)
    };
    let bytes = n * k * if int8 { 1 } else { 4 };
    let copies = if rows <= 8 { cold_copies(bytes) } else { 1 };
    let weights =
        (0..copies).map(|_| device.linear_pack(stream, host.check(&spec)?)).collect::<Result<Vec<_>>>()?;

    let x_data = values(rows * k);
    let x = Tensor::from_slice(stream, &x_data, &[rows, k])?;
    let q = Tensor::new(device, DType::I8, &[rows, k])?;
    let q_scales = Tensor::new(device, DType::F32, &[rows])?;
    let out = Tensor::new(device, DType::F32, &[rows, n])?;
    let quantize = QuantizeSpec::new(DType::F32);
    let quantizing = device.quantize_workspace(&quantize, rows, k);
    stream.reserve(quantizing.max(device.linear_workspace(&weights[0], rows)))?;
    let step = |stream: &mut B::Stream, weights: &B::Packed| -> Result<()> {
        let activations = if int8 {
            let args = QuantizeArgs::new(&quantize, &x, &q, &q_scales);
            device.quantize(stream, args.check()?)?;
            Activations::int8_per_token(&q, &q_scales)
        } else {
            Activations::Float(&x)
        };
        let args = LinearArgs { x: activations, weights, epilogue: Epilogue::default(), out: &out };
        device.linear(stream, args.check()?)
    };

    // The answer first: one element against F64, within what INT8 rounding allows.
    step(stream, &weights[0])?;
    let expected: f64 = x_data[..k].iter().zip(&data).map(|(x, w)| f64::from(x * w)).sum();
    let tolerance = if int8 { 0.03 * (k as f64).sqrt() } else { 1e-5 * k as f64 };
    check_first(&out.to_vec::<f32>(stream)?, expected, tolerance);

    let products = (rows * n * k) as u64;
    let product = if int8 { Product::Int8 } else { Product::F32 };
    let work = match rows <= 8 {
        true => {
            let (moved, resident) = (bytes as u64, (bytes * copies) as u64);
            Work::Weights { product, products, moved, resident }
        }
        false => Work::Products(product, products),
    };
    let mut turn = 0;
    group.measure(&format!("{rows}x{n}x{k}/{format:?}"), work, stream, |stream| {
        turn = (turn + 1) % weights.len();
        step(stream, &weights[turn])
    })
}

fn linear(criterion: &mut Criterion) {
    for_each_device(criterion, &Linears);
}

criterion_group!(benches, linear);
criterion_main!(benches);
