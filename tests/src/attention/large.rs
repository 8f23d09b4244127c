//! A cache whose offsets do not fit 32 bits.

use super::{Fill, Tokens};
use crate::{
    cache::place,
    case::{Fault, Verdict},
    judge::same_bits,
    oracle::cache::Blocks,
    poison::{Guarded, Layout},
    random::Rng,
};
use halite_hal::Pending;
use halite_kernels::{
    Backend, DType, Error, Stream, Tensor,
    attention::{AttentionArgs, AttentionCapacity, AttentionOut, AttentionSpec, AttentionStep},
    cache::{BlockExport, CacheWriteArgs, KvSpec},
};

const BLOCK: usize = 16;

/// Writes and reads only the last block of a cache of more than 2^31 elements: the bits of a cache of one block.
///
/// For devices whose memory is taken when it is touched; it belongs to no group. A refusal that names the limit, or
/// that there is no memory, is right too.
///
/// # Errors
/// Another block was written or read.
pub fn beyond_i32<B: Backend>(device: &B) -> Verdict {
    let kv = KvSpec::new(1, 32, 128).with_value_head_dim(1).with_block_size(BLOCK).with_dtype(DType::Bf16);
    // Of keys alone, since a backend may keep values elsewhere: the last block begins beyond 2^31 elements.
    let blocks = (1usize << 31) / (BLOCK * 32 * 128) + 2;
    let spec = AttentionSpec::causal(32, kv.clone());
    let tokens = Tokens::new(&mut Rng::new(2), &spec, Fill::Away, BLOCK, BLOCK);
    let large = match device.kv_cache(&kv, blocks) {
        Ok(cache) => cache,
        Err(Error::OutOfMemory { .. } | Error::Limit { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let small = device.kv_cache(&kv, 1)?;
    let (contents, out) = last_block(device, &spec, &large, blocks, &tokens)?;
    let (_, expected) = last_block(device, &spec, &small, 1, &tokens)?;
    same_bits("attention over the last block", &out, &expected)?;
    let mut oracle = Blocks::poisoned(&kv, 1);
    for (slot, (k, v)) in tokens.k.chunks_exact(32 * 128).zip(tokens.v.chunks_exact(32)).enumerate() {
        oracle.write(0, slot, k, v);
    }
    same_bits("the last block", &contents, &oracle.bytes)
}

/// The last block's bytes after a write of all its slots, and what attention makes of it.
fn last_block<B: Backend>(
    device: &B,
    spec: &AttentionSpec,
    cache: &B::KvCache,
    blocks: usize,
    tokens: &Tokens,
) -> Result<(Vec<u8>, Vec<u8>), Fault> {
    let (stream, last) = (&mut device.stream()?, blocks - 1);
    let mut slots = device.slots_plan(cache, BLOCK)?;
    let mapping: Vec<i64> = (last * BLOCK..blocks * BLOCK).map(|slot| slot as i64).collect();
    place(device, stream, &mut slots, &mapping)?;
    let q = Tensor::<B>::from_slice(stream, &tokens.q, &[BLOCK, 32, 128])?;
    let k = Tensor::<B>::from_slice(stream, &tokens.k, &[BLOCK, 32, 128])?;
    let v = Tensor::<B>::from_slice(stream, &tokens.v, &[BLOCK, 32, 1])?;
    let write = CacheWriteArgs { slots: &slots, cache, layer: 0, k: &k, v: &v };
    device.cache_write(stream, write.check()?)?;
    let capacity = AttentionCapacity {
        max_tokens: BLOCK,
        max_sequences: 1,
        max_blocks_per_sequence: 1,
        cache_blocks: blocks,
    };
    let mut plan = device.attention_plan(spec, &capacity)?;
    stream.reserve(device.attention_workspace(&plan))?;
    let (ends, table) = ([0, BLOCK as u32], [last as i32]);
    let step = AttentionStep {
        cu_seqlens: &ends,
        kv_lens: &ends[1..],
        kv_ranges: &[],
        block_table: &table,
        tree_parents: &[],
    };
    let step = step.check(&plan)?;
    device.attention_update(stream, &mut plan, &step)?;
    let out = Guarded::<B>::output(stream, DType::F32, &[BLOCK, 32, 1], Layout::Dense)?;
    let args = AttentionArgs {
        plan: &plan,
        cache,
        layer: 0,
        q: &q,
        state_in: None,
        out: AttentionOut::Normalised(&out.view),
        sinks: None,
        log_sum_exp: None,
    };
    device.attention(stream, args.check()?)?;
    let blocks = [last as u32];
    let export = BlockExport { cache, blocks: &blocks }.check()?;
    Ok((device.cache_export(stream, export)?.wait()?, out.read_bytes(stream)?))
}
