//! Quantising rows to INT8, one scale a token.

use criterion::{Criterion, criterion_group, criterion_main};
use halite_bench::{Bench, Group, Measured, Work, check_first, for_each_device, values};
use halite_hal::{DType, Result, Stream, Tensor};
use halite_kernels::quantize::*;

struct Quantizes;

impl Bench for Quantizes {
    const OPERATOR: &'static str = "quantize";

    fn run<B: Measured>(&self, group: &mut Group<'_>, device: &B) -> Result<()> {
        let stream = &mut device.stream()?;
        for (rows, columns) in [(1, 1536), (512, 1536), (512, 4096)] {
            let data = values(rows * columns);
            let x = Tensor::from_slice(stream, &data, &[rows, columns])?;
            let q = Tensor::new(device, DType::I8, &[rows, columns])?;
            let scales = Tensor::new(device, DType::F32, &[rows])?;
            let spec = QuantizeSpec::new(DType::F32);
            stream.reserve(device.quantize_workspace(&spec, rows, columns))?;
            let step = |stream: &mut B::Stream| -> Result<()> {
                let args = QuantizeArgs::new(&spec, &x, &q, &scales);
                device.quantize(stream, args.check()?)
            };
            step(stream)?;
            let largest = data[..columns].iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
            let expected = f64::from(largest / 127.0);
            check_first(&scales.to_vec::<f32>(stream)?, expected, 1e-9);
            let work = Work::bytes((rows * columns * 5) as u64);
            group.measure(&format!("{rows}x{columns}"), work, stream, step)?;
        }
        Ok(())
    }
}

fn quantize(criterion: &mut Criterion) {
    for_each_device(criterion, &Quantizes);
}

criterion_group!(benches, quantize);
criterion_main!(benches);
