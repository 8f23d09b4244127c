//! RMS norm with a residual before it, to F32 and quantised in the same pass.

use criterion::{Criterion, criterion_group, criterion_main};
use halite_bench::{Bench, Group, Measured, Work, check_first, for_each_device, values};
use halite_hal::{DType, Result, Stream, Tensor};
use halite_kernels::{
    norm::*,
    quantize::{QuantizeOut, QuantizeSpec},
};

struct Norms;

impl Bench for Norms {
    const OPERATOR: &'static str = "norm";

    fn run<B: Measured>(&self, group: &mut Group<'_>, device: &B) -> Result<()> {
        let stream = &mut device.stream()?;
        for (rows, columns) in [(1, 576), (512, 576), (1, 4096), (512, 4096)] {
            let data = values(rows * columns);
            let x = Tensor::from_slice(stream, &data, &[rows, columns])?;
            let residual = Tensor::from_slice(stream, &vec![0.0f32; rows * columns], &[rows, columns])?;
            let weight = Tensor::from_slice(stream, &vec![1.0f32; columns], &[columns])?;
            let sum = Tensor::new(device, DType::F32, &[rows, columns])?;
            let out = Tensor::new(device, DType::F32, &[rows, columns])?;
            let q = Tensor::new(device, DType::I8, &[rows, columns])?;
            let scales = Tensor::new(device, DType::F32, &[rows])?;
            let spec = NormSpec::rms(1e-5);
            let quantize = QuantizeSpec::INT8_PER_TOKEN;
            stream.reserve(device.norm_quantize_workspace(&spec, &quantize, rows, columns))?;
            let step = |stream: &mut B::Stream, quantised: bool| -> Result<()> {
                let out = if quantised {
                    NormOut::Quantized { spec: &quantize, out: QuantizeOut::new(&q, &scales) }
                } else {
                    NormOut::Float(&out)
                };
                let residual = Some(NormResidual::Before { residual: &residual, sum: &sum });
                let args = NormArgs { spec: &spec, x: &x, residual, weight: Some(&weight), bias: None, out };
                device.norm(stream, args.check()?)
            };
            step(stream, false)?;
            let square: f64 = data[..columns].iter().map(|&x| f64::from(x).powi(2)).sum();
            let expected = f64::from(data[0]) / (square / columns as f64 + 1e-5).sqrt();
            check_first(&out.to_vec::<f32>(stream)?, expected, 1e-4);
            // Two inputs and the sum are F32.
            let bytes = (rows * columns * 12) as u64;
            let floats = Work::bytes(bytes + (rows * columns * 4) as u64);
            group.measure(&format!("{rows}x{columns}/F32"), floats, stream, |stream| step(stream, false))?;
            let int8 = Work::bytes(bytes + (rows * columns) as u64);
            group.measure(&format!("{rows}x{columns}/INT8"), int8, stream, |stream| step(stream, true))?;
        }
        Ok(())
    }
}

fn norm(criterion: &mut Criterion) {
    for_each_device(criterion, &Norms);
}

criterion_group!(benches, norm);
criterion_main!(benches);
