//! Rotating queries and keys of one layer.

use criterion::{Criterion, criterion_group, criterion_main};
use halite_bench::{Bench, Group, Measured, Work, check_first, for_each_device, values};
use halite_hal::{Result, Tensor};
use halite_kernels::rope::*;

struct Ropes;

impl Bench for Ropes {
    const OPERATOR: &'static str = "rope";

    fn run<B: Measured>(&self, group: &mut Group<'_>, device: &B) -> Result<()> {
        let stream = &mut device.stream()?;
        for (tokens, heads, head_dim) in [(1, 12, 64), (512, 12, 64), (512, 40, 128)] {
            let data = values(tokens * heads * head_dim);
            for style in [RopeStyle::HalfSplit, RopeStyle::Interleaved] {
                let x = Tensor::from_slice(stream, &data, &[tokens, heads, head_dim])?;
                let mut plan = device.rope_plan(&RopeSpec::new(head_dim, style, 8192), tokens)?;
                let positions: Vec<u32> = (7..7 + tokens as u32).collect();
                let step = Positions { positions: &positions }.check(&plan)?;
                device.rope_update(stream, &mut plan, &step)?;
                let step = |stream: &mut B::Stream| -> Result<()> {
                    device
                        .rope(stream, RopeArgs { plan: &plan, direction: Direction::Forward, x: &x }.check()?)
                };
                step(stream)?;
                let other = if style == RopeStyle::HalfSplit { head_dim / 2 } else { 1 };
                let (sin, cos) = 7f64.sin_cos();
                let expected = f64::from(data[0]) * cos - f64::from(data[other]) * sin;
                check_first(&x.to_vec::<f32>(stream)?, expected, 1e-5);
                let work = Work::bytes((tokens * heads * head_dim * 8) as u64);
                group.measure(&format!("{tokens}x{heads}x{head_dim}/{style:?}"), work, stream, step)?;
            }
        }
        Ok(())
    }
}

fn rope(criterion: &mut Criterion) {
    for_each_device(criterion, &Ropes);
}

criterion_group!(benches, rope);
criterion_main!(benches);
