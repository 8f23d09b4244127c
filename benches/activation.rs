//! Gated activations of a feed-forward layer.

use criterion::{Criterion, criterion_group, criterion_main};
use halite_bench::{Bench, Group, Measured, Work, check_first, for_each_device, values};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::activation::*;

struct Activations;

impl Bench for Activations {
    const OPERATOR: &'static str = "activation";

    fn run<B: Measured>(&self, group: &mut Group<'_>, device: &B) -> Result<()> {
        let stream = &mut device.stream()?;
        for (rows, columns) in [(1, 1536), (512, 1536), (512, 14_336)] {
            let data = values(rows * columns * 2);
            let x = Tensor::from_slice(stream, &data, &[rows, columns * 2])?;
            let out = Tensor::new(device, DType::F32, &[rows, columns])?;
            for activation in [Activation::Silu, Activation::GeluTanh, Activation::GeluErf] {
                let spec = ActivationSpec::glu(Glu::Plain(activation), GateLayout::Split);
                let step = |stream: &mut B::Stream| -> Result<()> {
                    let out = ActivationOut::Float(&out);
                    device.activation(stream, ActivationArgs { spec: &spec, x: &x, out }.check()?)
                };
                step(stream)?;
                if activation == Activation::Silu {
                    let (gate, up) = (f64::from(data[0]), f64::from(data[columns]));
                    let expected = gate / (1.0 + (-gate).exp()) * up;
                    check_first(&out.to_vec::<f32>(stream)?, expected, 1e-6);
                }
                let work = Work::bytes((rows * columns * 12) as u64);
                group.measure(&format!("{rows}x{columns}/{activation:?}"), work, stream, step)?;
            }
        }
        Ok(())
    }
}

fn activation(criterion: &mut Criterion) {
    for_each_device(criterion, &Activations);
}

criterion_group!(benches, activation);
criterion_main!(benches);
