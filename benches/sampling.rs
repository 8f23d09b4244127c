//! Choosing tokens from logits over a model's vocabulary.

use criterion::{Criterion, criterion_group, criterion_main};
use halite_bench::{Bench, Group, Measured, Work, for_each_device, values};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::sampling::*;

const VOCABULARY: usize = 49_152;

struct Samplings;

impl Bench for Samplings {
    const OPERATOR: &'static str = "sampling";

    fn run<B: Measured>(&self, group: &mut Group<'_>, device: &B) -> Result<()> {
        let stream = &mut device.stream()?;
        for rows in [1, 32] {
            let mut data = values(rows * VOCABULARY);
            data.iter_mut().for_each(|logit| *logit *= 10.0);
            data[17] = 100.0;
            let logits = Tensor::from_slice(stream, &data, &[rows, VOCABULARY])?;
            let ids = Tensor::new(device, DType::I32, &[rows])?;
            let mut plan = device.sampling_plan(&SamplingSpec::new(VOCABULARY), rows)?;
            let drawn = SamplingParams::seeded(0.8, 7);
            for (name, params) in [
                ("greedy", SamplingParams::greedy()),
                ("top_k 40", drawn.clone().with_top_k(40)),
                ("top_p 0.95", drawn.clone().with_top_p(0.95)),
                ("temperature", drawn.clone()),
            ] {
                let params = vec![params; rows];
                let step = SamplingStep { params: &params }.check(&plan)?;
                device.sampling_update(stream, &mut plan, &step)?;
                let step = |stream: &mut B::Stream| -> Result<()> {
                    device.sample(stream, SamplingArgs { plan: &plan, logits: &logits, ids: &ids }.check()?)
                };
                step(stream)?;
                // Its logit is far above the others: every way of choosing takes it.
                assert_eq!(ids.to_vec::<i32>(stream)?[0], 17, "{name}");
                let work = Work::bytes((rows * VOCABULARY * 4) as u64);
                group.measure(&format!("{rows}x{VOCABULARY}/{name}"), work, stream, step)?;
            }
        }
        Ok(())
    }
}

fn sampling(criterion: &mut Criterion) {
    for_each_device(criterion, &Samplings);
}

criterion_group!(benches, sampling);
criterion_main!(benches);
