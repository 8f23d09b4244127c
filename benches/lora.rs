//! Low-rank adapters of a layer, several in a batch.

use criterion::{Criterion, criterion_group, criterion_main};
use halite_bench::{
    Bench, Group, Measured, Product, Work, check_first, cold_copies, for_each_device, values,
};
use halite_hal::{Result, Stream, Tensor};
use halite_kernels::linear::*;

/// Hidden size of Llama 3 8B: its query and output projections.
const HIDDEN: usize = 4096;
const RANK: usize = 16;
const ADAPTERS: usize = 4;
const SCALE: f32 = 2.0;

struct Loras;

impl Bench for Loras {
    const OPERATOR: &'static str = "lora";

    fn run<B: Measured>(&self, group: &mut Group<'_>, device: &B) -> Result<()> {
        // Decode with an adapter a row and with rows of one adapter together, prefill of a prompt an adapter.
        for rows_an_adapter in [1, 8, 128] {
            measure(group, device, rows_an_adapter)?;
        }
        Ok(())
    }
}

fn measure<B: Measured>(group: &mut Group<'_>, device: &B, rows_an_adapter: usize) -> Result<()> {
    let stream = &mut device.stream()?;
    let rows = ADAPTERS * rows_an_adapter;
    let spec = LoraSpec::new(ADAPTERS, RANK);
    let down_spec = LinearSpec::float(HIDDEN, RANK, WeightFormat::F32);
    let up_spec = LinearSpec::float(RANK, HIDDEN, WeightFormat::F32);
    let data = values(RANK * HIDDEN);
    let bytes = 2 * ADAPTERS * RANK * HIDDEN * 4;
    let layers = if rows_an_adapter <= 8 { cold_copies(bytes) } else { 1 };
    let weights = (0..layers * ADAPTERS)
        .map(|_| {
            let down = device.linear_pack(stream, HostWeights::F32(&data).check(&down_spec)?)?;
            let up = device.linear_pack(stream, HostWeights::F32(&data).check(&up_spec)?)?;
            Ok((down, up))
        })
        .collect::<Result<Vec<_>>>()?;
    // The same matrices in every adapter: their scales tell them apart.
    let adapters: Vec<Option<LoraAdapter<'_, B>>> = weights
        .iter()
        .enumerate()
        .map(|(i, (down, up))| Some(LoraAdapter { down, up, scale: SCALE * (i % ADAPTERS + 1) as f32 }))
        .collect();
    let layers: Vec<_> = adapters.chunks(ADAPTERS).collect();

    let mut plan = device.lora_plan(&spec, rows)?;
    let chosen: Vec<i32> = (0..rows).map(|row| (row / rows_an_adapter) as i32).collect();
    let step = LoraStep { adapters: &chosen }.check(&plan)?;
    device.lora_update(stream, &mut plan, &step)?;
    stream.reserve(device.lora_workspace(&plan, layers[0]))?;
    let x_data = values(HIDDEN);
    let x = Tensor::from_slice(stream, &x_data.repeat(rows), &[rows, HIDDEN])?;
    let out = Tensor::from_slice(stream, &vec![1.0f32; rows * HIDDEN], &[rows, HIDDEN])?;
    let step = |stream: &mut B::Stream, adapters: &[_]| -> Result<()> {
        device.lora(stream, LoraArgs { plan: &plan, x: &x, adapters, out: &out }.check()?)
    };

    step(stream, layers[0])?;
    let dot = |w: &[f32], x: &[f64]| w.iter().zip(x).map(|(w, x)| f64::from(*w) * x).sum::<f64>();
    let x: Vec<f64> = x_data.iter().map(|&x| f64::from(x)).collect();
    let inner: Vec<f64> = data.chunks(HIDDEN).map(|row| dot(row, &x)).collect();
    let product = dot(&data[..RANK], &inner);
    let answer = out.to_vec::<f32>(stream)?;
    for row in [0, rows - 1] {
        let scale = f64::from(SCALE) * (row / rows_an_adapter + 1) as f64;
        check_first(&answer[row * HIDDEN..], 1.0 + scale * product, 1e-2);
    }

    let products = (2 * rows * RANK * HIDDEN) as u64;
    let work = match rows_an_adapter {
        1 | 8 => Work::Weights {
            product: Product::F32,
            products,
            moved: bytes as u64,
            resident: (bytes * layers.len()) as u64,
        },
        _ => Work::f32(products),
    };
    let mut turn = 0;
    group.measure(
        &format!("{rows}x{HIDDEN}x{HIDDEN}/{ADAPTERS}-of-rank-{RANK}/F32"),
        work,
        stream,
        |stream| {
            turn = (turn + 1) % layers.len();
            step(stream, layers[turn])
        },
    )
}

fn lora(criterion: &mut Criterion) {
    for_each_device(criterion, &Loras);
}

criterion_group!(benches, lora);
criterion_main!(benches);
