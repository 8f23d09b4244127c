//! Linear layers over the shapes of a small and a 7B model: W8A8 from quantised activations and with their quantisation,
//! W4A8 in groups of 32, and F32. Layers of few rows find their weights as cold as a decode step does.

use criterion::{Criterion, criterion_group, criterion_main};
use halite_bench::{
    Bench, Group, Measured, Product, Work, check_first, cold_copies, for_each_device, measuring, prompt,
    values,
};
use halite_hal::{DType, Result, Stream, Tensor};
use halite_kernels::{linear::*, quantize::*};
use std::fmt;

/// N and K.
const SHAPES: [(usize, usize); 5] = [(1536, 576), (576, 1536), (4096, 4096), (11008, 4096), (4096, 11008)];
const ROWS: [usize; 5] = [1, 8, 32, 128, 512];
/// The most rows of a step that is likelier a batch's decode than a prompt.
const FEW: usize = 32;
/// Values of a 4-bit group.
const GROUP: usize = 32;

/// What is measured.
#[derive(Clone, Copy, PartialEq)]
enum Format {
    /// INT8 weights and activations.
    W8a8,
    /// The same, activations quantised in the step.
    W8a8FromF32,
    /// 4-bit weights and INT8 activations.
    W4a8,
    F32,
}

impl Format {
    const ALL: [Self; 4] = [Self::W8a8, Self::W8a8FromF32, Self::W4a8, Self::F32];

    /// Bytes of so many weights, with the scales of their groups.
    fn bytes(self, weights: usize) -> usize {
        match self {
            Self::W8a8 | Self::W8a8FromF32 => weights,
            Self::W4a8 => weights / 2 + weights / GROUP * size_of::<f32>(),
            Self::F32 => weights * size_of::<f32>(),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::W8a8 => "w8a8",
            Self::W8a8FromF32 => "w8a8-from-f32",
            Self::W4a8 => "w4a8-of-32",
            Self::F32 => "f32",
        })
    }
}

struct Linears;

impl Bench for Linears {
    const OPERATOR: &'static str = "linear";

    fn run<B: Measured>(&self, group: &mut Group<'_>, device: &B) -> Result<()> {
        // For a try, not the largest, which software adapters take minutes for.
        let shapes = if measuring() { &SHAPES[..] } else { &SHAPES[..3] };
        for &shape in shapes {
            for format in Format::ALL {
                measure(group, device, shape, format)?;
            }
        }
        Ok(())
    }
}

fn measure<B: Measured>(
    group: &mut Group<'_>,
    device: &B,
    (n, k): (usize, usize),
    format: Format,
) -> Result<()> {
    let stream = &mut device.stream()?;
    let data = values(n * k);
    // Weights of 4 bits are whole sevenths, so that all formats have the same answer.
    let steps = if format == Format::W4a8 { 7.0 } else { 127.0 };
    let quantized: Vec<i8> = data.iter().map(|value| (value * steps).round() as i8).collect();
    let rounded: Vec<f32> = match format {
        Format::F32 => data.clone(),
        _ => quantized.iter().map(|&q| f32::from(q) / steps).collect(),
    };
    let w8a8 = LinearSpec::w8a8(k, n);
    let (spec, scales) = match format {
        Format::W8a8 | Format::W8a8FromF32 => (w8a8, vec![1.0 / steps; n]),
        Format::W4a8 => {
            let weights = WeightFormat::Int4PerGroup { group_size: GROUP, offset: GroupOffset::Symmetric };
            (w8a8.with_weights(weights), vec![1.0 / steps; n * k.div_ceil(GROUP)])
        }
        Format::F32 => (LinearSpec::float(k, n, WeightFormat::F32), Vec::new()),
    };
    let host = match format {
        Format::W8a8 | Format::W8a8FromF32 => HostWeights::Int8PerChannel { q: &quantized, scales: &scales },
        Format::W4a8 => HostWeights::Int4PerGroup {
            q: &quantized,
            scales: &scales,
            offsets: GroupOffsets::Symmetric,
            group_size: GROUP,
        },
        Format::F32 => HostWeights::F32(&data),
    };
    let bytes = format.bytes(n * k);
    let copies = cold_copies(bytes);
    let pack = |_| device.linear_pack(stream, host.check(&spec)?);
    let weights = (0..copies).map(pack).collect::<Result<Vec<_>>>()?;
    for rows in ROWS {
        let weights = if rows <= FEW { &weights[..] } else { &weights[..1] };
        let rows = if rows > FEW { prompt(rows) } else { rows };
        rows_times(group, device, stream, (rows, n, k), format, weights, &rounded)?;
    }
    Ok(())
}

/// `expected` are the weights as they count.
fn rows_times<B: Measured>(
    group: &mut Group<'_>,
    device: &B,
    stream: &mut B::Stream,
    (rows, n, k): (usize, usize, usize),
    format: Format,
    weights: &[B::Packed],
    expected: &[f32],
) -> Result<()> {
    let x_data = values(rows * k);
    let x = Tensor::from_slice(stream, &x_data, &[rows, k])?;
    let q = Tensor::new(device, DType::I8, &[rows, k])?;
    let q_scales = Tensor::new(device, DType::F32, &[rows])?;
    let out = Tensor::new(device, DType::F32, &[rows, n])?;
    let quantize = QuantizeSpec::new(DType::F32);
    let quantizing = device.quantize_workspace(&quantize, rows, k);
    stream.reserve(quantizing.max(device.linear_workspace(&weights[0], rows)))?;
    device.quantize(stream, QuantizeArgs::new(&quantize, &x, &q, &q_scales).check()?)?;
    let step = |stream: &mut B::Stream, weights: &B::Packed| -> Result<()> {
        if format == Format::W8a8FromF32 {
            device.quantize(stream, QuantizeArgs::new(&quantize, &x, &q, &q_scales).check()?)?;
        }
        let activations = match format {
            Format::F32 => Activations::Float(&x),
            _ => Activations::int8_per_token(&q, &q_scales),
        };
        let args = LinearArgs { x: activations, weights, epilogue: Epilogue::default(), out: &out };
        device.linear(stream, args.check()?)
    };

    // The answer first: one element against F64, within what INT8 rounding of the activations allows.
    step(stream, &weights[0])?;
    let sum: f64 = x_data[..k].iter().zip(expected).map(|(x, w)| f64::from(x * w)).sum();
    let tolerance = if format == Format::F32 { 1e-5 * k as f64 } else { 0.02 * (k as f64).sqrt() };
    check_first(&out.to_vec::<f32>(stream)?, sum, tolerance);

    let products = (rows * n * k) as u64;
    let product = if format == Format::F32 { Product::F32 } else { Product::Int8 };
    let bytes = format.bytes(n * k);
    let work = match rows <= FEW {
        true => {
            let (moved, resident) = (bytes as u64, (bytes * weights.len()) as u64);
            Work::Weights { product, products, moved, resident }
        }
        false => Work::Products(product, products),
    };
    let mut turn = 0;
    group.measure(&format!("{rows}x{n}x{k}/{format}"), work, stream, |stream| {
        turn = (turn + 1) % weights.len();
        step(stream, &weights[turn])
    })
}

fn linear(criterion: &mut Criterion) {
    for_each_device(criterion, &Linears);
}

criterion_group!(benches, linear);
criterion_main!(benches);
