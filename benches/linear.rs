//! Linear layers: W8A8 with quantisation of F32 activations, and F32, over the shapes of a small and a 7B model.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use halite_bench::{OnDevice, for_each_device, values};
use halite_hal::{DType, Result, Stream, Tensor};
use halite_kernels::{Backend, linear::*, quantize::*};

const SHAPES: [(usize, usize); 3] = [(1536, 576), (576, 1536), (4096, 4096)];
const ROWS: [usize; 4] = [1, 8, 128, 512];

/// Weights that are used in turn, so that a decode step finds them as cold as a model's layers would be.
const COLD_BYTES: usize = 256 << 20;

fn linear(criterion: &mut Criterion) {
    for_each_device(&mut Linears(criterion));
}

struct Linears<'c>(&'c mut Criterion);

impl OnDevice for Linears<'_> {
    fn run<B: Backend>(&mut self, name: &str, device: &B) {
        for (n, k) in SHAPES {
            for rows in ROWS {
                for format in [WeightFormat::Int8PerChannel, WeightFormat::F32] {
                    if let Err(error) = measure(self.0, name, device, (rows, n, k), format) {
                        eprintln!("{name}: {rows} x {n} x {k}, {format:?}: not measured: {error}");
                    }
                }
            }
        }
    }
}

fn measure<B: Backend>(
    criterion: &mut Criterion,
    name: &str,
    device: &B,
    (rows, n, k): (usize, usize, usize),
    format: WeightFormat,
) -> Result<()> {
    let mut stream = device.stream()?;
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
    let copies = if rows <= 8 { COLD_BYTES.div_ceil(bytes).min(64) } else { 1 };
    let weights = (0..copies)
        .map(|_| device.linear_pack(&mut stream, host.check(&spec)?))
        .collect::<Result<Vec<_>>>()?;
    stream.reserve(device.linear_workspace(&weights[0], rows))?;

    let x_data = values(rows * k);
    let x = Tensor::from_slice(&mut stream, &x_data, &[rows, k])?;
    let q = Tensor::new(device, DType::I8, &[rows, k])?;
    let q_scales = Tensor::new(device, DType::F32, &[rows])?;
    let out = Tensor::new(device, DType::F32, &[rows, n])?;
    let quantize = QuantizeSpec::new(DType::F32);
    let mut step = |weights: &B::Packed| -> Result<()> {
        let activations = if int8 {
            let args = QuantizeArgs { spec: &quantize, x: &x, q: &q, scales: &q_scales };
            device.quantize(&mut stream, args.check()?)?;
            Activations::Int8PerToken { q: &q, scales: &q_scales }
        } else {
            Activations::Float(&x)
        };
        let args = LinearArgs { x: activations, weights, epilogue: Epilogue::default(), out: &out };
        device.linear(&mut stream, args.check()?)
    };

    // The answer first: one element against F64, within what INT8 rounding allows.
    step(&weights[0])?;
    let expected: f64 = x_data[..k].iter().zip(&data).map(|(x, w)| f64::from(x * w)).sum();
    let got = out.to_vec::<f32>(&mut device.stream()?)?[0];
    let tolerance = if int8 { 0.03 * (k as f64).sqrt() } else { 1e-5 * k as f64 };
    assert!((f64::from(got) - expected).abs() < tolerance, "{name}: {got} instead of {expected}");

    let mut group = criterion.benchmark_group(format!("linear/{name}/{format:?}"));
    group.throughput(if rows <= 8 {
        Throughput::Bytes(bytes as u64)
    } else {
        Throughput::Elements((rows * n * k) as u64)
    });
    let mut turn = 0;
    group.bench_function(BenchmarkId::from_parameter(format!("{rows}x{n}x{k}")), |bencher| {
        bencher.iter(|| {
            turn = (turn + 1) % weights.len();
            step(&weights[turn])
        });
    });
    group.finish();
    Ok(())
}

criterion_group!(benches, linear);
criterion_main!(benches);
