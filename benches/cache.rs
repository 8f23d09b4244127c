//! Writing a step's keys and values into the paged cache, and copying blocks within it.

use criterion::{Criterion, criterion_group, criterion_main};
use halite_bench::{Bench, Group, Measured, Work, for_each_device, values};
use halite_hal::{DType, Pending, Result, Tensor};
use halite_kernels::cache::*;

struct Caches;

impl Bench for Caches {
    const OPERATOR: &'static str = "cache";

    fn run<B: Measured>(&self, group: &mut Group<'_>, device: &B) -> Result<()> {
        let stream = &mut device.stream()?;
        for (tokens, kv_heads, head_dim) in [(1, 3, 64), (512, 3, 64), (512, 8, 128)] {
            for dtype in [DType::F32, DType::F16, DType::Bf16] {
                let spec = KvSpec::new(1, kv_heads, head_dim).with_dtype(dtype);
                let cache = device.kv_cache(&spec, 64)?;
                let mut table = device.slots_plan(&cache, tokens)?;
                let slots: Vec<i64> = (0..tokens as i64).collect();
                let mapping = SlotMapping { slots: &slots }.check(&table)?;
                device.slots_update(stream, &mut table, &mapping)?;
                let dims = [tokens, kv_heads, head_dim];
                let elements = tokens * kv_heads * head_dim;
                let k = Tensor::from_slice(stream, &vec![0.5f32; elements], &dims)?;
                let v = Tensor::from_slice(stream, &values(elements), &dims)?;
                let step = |stream: &mut B::Stream| -> Result<()> {
                    let args = CacheWriteArgs { slots: &table, cache: &cache, layer: 0, k: &k, v: &v };
                    device.cache_write(stream, args.check()?)
                };
                step(stream)?;
                let export = BlockExport { cache: &cache, blocks: &[0] }.check()?;
                let block = device.cache_export(stream, export)?.wait()?;
                let half = match dtype {
                    DType::F32 => 0.5f32.to_le_bytes().to_vec(),
                    DType::F16 => 0x3800u16.to_le_bytes().to_vec(),
                    _ => 0x3F00u16.to_le_bytes().to_vec(),
                };
                assert_eq!(block[..dtype.size()], half, "the first key");
                let work = Work::bytes((2 * elements * (4 + dtype.size())) as u64);
                group.measure(
                    &format!("write/{tokens}x{kv_heads}x{head_dim}/{dtype}"),
                    work,
                    stream,
                    step,
                )?;
            }
        }
        let spec = KvSpec::new(30, 3, 64);
        let cache = device.kv_cache(&spec, 64)?;
        let pairs: Vec<(u32, u32)> = (0..16).map(|block| (block, 32 + block)).collect();
        let work = Work::bytes(2 * 16 * spec.block_bytes()?);
        group.measure("copy/16-blocks", work, stream, |stream| {
            device.cache_copy(stream, BlockCopies { cache: &cache, pairs: &pairs }.check()?)
        })
    }
}

fn cache(criterion: &mut Criterion) {
    for_each_device(criterion, &Caches);
}

criterion_group!(benches, cache);
criterion_main!(benches);
