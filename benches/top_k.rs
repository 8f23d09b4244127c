//! The greatest elements of rows of a vocabulary's length.

use criterion::{Criterion, criterion_group, criterion_main};
use halite_bench::{Bench, Group, Measured, Work, for_each_device, values};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::top_k::*;

const COLUMNS: usize = 49_152;

struct TopKs;

impl Bench for TopKs {
    const OPERATOR: &'static str = "top_k";

    fn run<B: Measured>(&self, group: &mut Group<'_>, device: &B) -> Result<()> {
        let stream = &mut device.stream()?;
        for (rows, k) in [(1, 1), (1, 50), (32, 50)] {
            let mut data = values(rows * COLUMNS);
            data[17] = 2.0;
            let x = Tensor::from_slice(stream, &data, &[rows, COLUMNS])?;
            let best = Tensor::new(device, DType::F32, &[rows, k])?;
            let ids = Tensor::new(device, DType::I32, &[rows, k])?;
            let spec = TopKSpec::largest(k);
            let step = |stream: &mut B::Stream| -> Result<()> {
                let args = TopKArgs { spec: &spec, x: &x, values: &best, ids: &ids };
                device.top_k(stream, args.check()?)
            };
            step(stream)?;
            assert_eq!(ids.to_vec::<i32>(stream)?[0], 17);
            group.measure(
                &format!("{k}of{rows}x{COLUMNS}"),
                Work::bytes((rows * COLUMNS * 4) as u64),
                stream,
                step,
            )?;
        }
        Ok(())
    }
}

fn top_k(criterion: &mut Criterion) {
    for_each_device(criterion, &TopKs);
}

criterion_group!(benches, top_k);
criterion_main!(benches);
