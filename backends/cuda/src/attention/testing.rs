//! Sequences for unit tests: their keys and values in a cache, queries of every position, seeded.

use half::{bf16, f16};
use halite_hal::{DType, Result, Stream, Tensor};
use halite_kernels::{
    attention::{Attention, AttentionCapacity, AttentionOut, AttentionSpec, AttentionStep},
    cache::{CacheWriteArgs, KvCacheOps, SlotMapping},
};

use super::{
    Call, Queries, RowTensors,
    call::attend,
    mma::{self, SOURCE},
    shape,
};
use crate::{cache::CudaKvCache, compile::Source, device::Cuda, launch::Launch, stream::CudaStream};

/// One sequence in blocks of any order.
pub(super) struct Sequence<'a> {
    cuda: &'a Cuda,
    spec: &'a AttentionSpec,
    cache: CudaKvCache,
    blocks: Vec<i32>,
    q: Tensor<Cuda>,
    len: usize,
}

/// Numbers between -1 and 1 that nobody chose.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(next).collect()
}

impl<'a> Sequence<'a> {
    /// Of `len` positions; `spoilt` are values: position, element of the row of all heads, what it is.
    pub(super) fn new(
        cuda: &'a Cuda,
        stream: &mut CudaStream,
        spec: &'a AttentionSpec,
        len: usize,
        spoilt: &[(usize, usize, f32)],
    ) -> Result<Self> {
        let kv = &spec.kv;
        let count = len.div_ceil(kv.block_size);
        // Backwards, every other block another's.
        let blocks: Vec<i32> = (0..count).rev().map(|block| 2 * block as i32 + 1).collect();
        let cache = cuda.kv_cache(kv, 2 * count)?;
        let size = kv.block_size;
        let slot =
            |position: usize| i64::from(blocks[position / size]) * size as i64 + (position % size) as i64;
        let slots: Vec<i64> = (0..len).map(slot).collect();
        let mut plan = cuda.slots_plan(&cache, len)?;
        let mapping = SlotMapping { slots: &slots }.check(&plan)?;
        cuda.slots_update(stream, &mut plan, &mapping)?;
        let (keys, values) = (kv.kv_heads * kv.head_dim, kv.kv_heads * kv.value_head_dim);
        let k = Tensor::from_slice(stream, &numbers(len * keys, 1), &[len, kv.kv_heads, kv.head_dim])?;
        let mut v = numbers(len * values, 2);
        for &(position, element, value) in spoilt {
            v[position * values + element] = value;
        }
        let v = Tensor::from_slice(stream, &v, &[len, kv.kv_heads, kv.value_head_dim])?;
        let write = CacheWriteArgs { slots: &plan, cache: &cache, layer: 0, k: &k, v: &v };
        cuda.cache_write(stream, write.check()?)?;
        let (q, dims) =
            (numbers(len * spec.query_heads * kv.head_dim, 3), [len, spec.query_heads, kv.head_dim]);
        let q = match spec.dtype {
            DType::F16 => {
                Tensor::from_slice(stream, &q.into_iter().map(f16::from_f32).collect::<Vec<_>>(), &dims)?
            }
            _ => Tensor::from_slice(stream, &q.into_iter().map(bf16::from_f32).collect::<Vec<_>>(), &dims)?,
        };
        Ok(Sequence { cuda, spec, cache, blocks, q, len })
    }

    /// Results of the last `rows` tokens, `[rows, query_heads, value_head_dim]` as bits, of what `run` does with the call.
    pub(super) fn run(
        &self,
        stream: &mut CudaStream,
        rows: usize,
        run: impl FnOnce(&mut CudaStream, Call<'_>) -> Result<()>,
    ) -> Result<Vec<u16>> {
        let (count, spec) = (self.blocks.len(), self.spec);
        let capacity = AttentionCapacity {
            max_tokens: self.len,
            max_sequences: 1,
            max_blocks_per_sequence: count,
            cache_blocks: 2 * count,
        };
        let mut plan = self.cuda.attention_plan(spec, &capacity)?;
        stream.reserve(self.cuda.attention_workspace(&plan))?;
        let step = AttentionStep {
            cu_seqlens: &[0, rows as u32],
            kv_lens: &[self.len as u32],
            kv_ranges: &[],
            block_table: &self.blocks,
            tree_parents: &[],
        };
        let step = step.check(&plan)?;
        self.cuda.attention_update(stream, &mut plan, &step)?;
        let dims = [rows, spec.query_heads, spec.kv.value_head_dim];
        let bytes = vec![0u8; 2 * dims.iter().product::<usize>()];
        let room = Tensor::from_slice(stream, &bytes, &[bytes.len()])?;
        let out = Tensor::from_buffer(room.buffer().clone(), room.offset(), spec.dtype, &dims)?;
        let q = self.q.narrow(0, self.len - rows..self.len)?;
        let out = AttentionOut::Normalised(&out);
        let tensors = RowTensors { q: &q, state_in: None, out, sinks: None, log_sum_exp: None };
        run(stream, Call { operator: "attention", plan: &plan, cache: &self.cache, layer: 0, tensors })?;
        let bytes = room.to_vec::<u8>(stream)?;
        Ok(bytes.chunks_exact(2).map(|two| u16::from_le_bytes([two[0], two[1]])).collect())
    }
}

/// A call whose rows are read whole, by a source like the tensor cores' kernel.
pub(super) fn launch(stream: &mut CudaStream, call: Call<'_>, source: &'static Source) -> Result<()> {
    let start = mma::start(call.operator, source, &call.plan.spec, call.plan.tile.rows());
    launch_whole(stream, call, start)
}

/// The tensor cores' kernel as it is.
pub(super) fn by_tensor_cores(stream: &mut CudaStream, call: Call<'_>) -> Result<()> {
    launch(stream, call, &SOURCE)
}

/// The kernel of every type and shape, for up to 16 rows.
pub(super) fn by_words(stream: &mut CudaStream, call: Call<'_>) -> Result<()> {
    let shared = shape::shared(&call.plan.spec, call.plan.tile.rows());
    launch_whole(stream, call, attend(call.operator, 16, false).shared(shared))
}

fn launch_whole(stream: &mut CudaStream, call: Call<'_>, start: Launch) -> Result<()> {
    let Call { plan, tensors, .. } = call;
    let AttentionOut::Normalised(out) = tensors.out else { unreachable!("a result is asked for") };
    assert!(!plan.cut.parted, "rows are read whole");
    let queries = Queries { q: tensors.q, first: 0 };
    stream.launch(call.described(start, &plan.cut.whole(), queries, Some(out), None))
}
