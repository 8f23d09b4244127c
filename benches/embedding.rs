//! Looking token ids up in tables of a model's size.

use criterion::{Criterion, criterion_group, criterion_main};
use halite_bench::{Bench, Group, Measured, Work, check_first, for_each_device, values};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::embedding::*;

const VOCABULARY: usize = 49_152;

struct Embeddings;

impl Bench for Embeddings {
    const OPERATOR: &'static str = "embedding";

    fn run<B: Measured>(&self, group: &mut Group<'_>, device: &B) -> Result<()> {
        let stream = &mut device.stream()?;
        let hidden = 576;
        let data = values(VOCABULARY * hidden);
        let floats = Tensor::from_slice(stream, &data, &[VOCABULARY, hidden])?;
        let bytes: Vec<i8> = data.iter().map(|x| (x * 127.0) as i8).collect();
        let q = Tensor::from_slice(stream, &bytes, &[VOCABULARY, hidden])?;
        let scales = Tensor::from_slice(stream, &vec![0.5f32; VOCABULARY], &[VOCABULARY])?;
        for tokens in [1, 512] {
            let ids: Vec<i32> =
                (0..tokens as i32).map(|token| (token * 7919 + 5) % VOCABULARY as i32).collect();
            let first = ids[0] as usize * hidden;
            let ids = Tensor::from_slice(stream, &ids, &[tokens])?;
            let out = Tensor::new(device, DType::F32, &[tokens, hidden])?;
            for (format, size) in [(TableFormat::Float(DType::F32), 4), (TableFormat::Int8PerRow, 1)] {
                let spec = EmbeddingSpec::new(format);
                let step = |stream: &mut B::Stream| -> Result<()> {
                    let table = if format == TableFormat::Int8PerRow {
                        EmbeddingTable::Int8PerRow { q: &q, scales: &scales }
                    } else {
                        EmbeddingTable::Float(&floats)
                    };
                    let args = EmbeddingArgs { spec: &spec, table, ids: &ids, out: &out };
                    device.embedding(stream, args.check()?)
                };
                step(stream)?;
                let expected = if size == 1 { f64::from(bytes[first]) / 2.0 } else { f64::from(data[first]) };
                check_first(&out.to_vec::<f32>(stream)?, expected, 0.0);
                let work = Work::bytes((tokens * hidden * (size + 4)) as u64);
                group.measure(&format!("{tokens}x{hidden}/{format:?}"), work, stream, step)?;
            }
        }
        Ok(())
    }
}

fn embedding(criterion: &mut Criterion) {
    for_each_device(criterion, &Embeddings);
}

criterion_group!(benches, embedding);
criterion_main!(benches);
