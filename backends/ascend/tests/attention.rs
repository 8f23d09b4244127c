//! Attention: what others met with CANN's operator, each a test.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed test panics")]

mod standin;

use std::{ops::Range, slice::from_ref};

use halite_ascend::{Ascend, AscendAttentionPlan};
use halite_hal::{DType, Device, Error, Pending, Result, Stream, Tensor};
use halite_kernels::{
    Support,
    attention::{
        Attention, AttentionArgs, AttentionCapacity, AttentionOut, AttentionSpec, AttentionState,
        AttentionStep, Mask, Sinks,
    },
    cache::{CacheWriteArgs, KvCacheOps, KvSpec, SlotMapping},
};

const HEADS: usize = 2;
const HEAD_DIM: usize = 64;

fn spec() -> AttentionSpec {
    let kv = KvSpec::new(1, 1, HEAD_DIM).with_block_size(128).with_dtype(DType::Bf16);
    AttentionSpec::causal(HEADS, kv).with_dtype(DType::Bf16)
}

/// A step over a cache whose keys are zeros, so that a row weighs alike what it sees, and whose values are positions.
struct Uniform {
    device: Ascend,
    stream: <Ascend as Device>::Stream,
    cache: <Ascend as KvCacheOps>::KvCache,
    plan: AscendAttentionPlan,
    /// `(rows, positions)` of each sequence.
    sequences: Vec<(usize, usize)>,
    table: Vec<i32>,
}

impl Uniform {
    fn new(device: Ascend, sequences: &[(usize, usize)]) -> Result<Self> {
        let (spec, mut stream) = (spec(), device.stream()?);
        let row = sequences.iter().map(|&(_, len)| len.div_ceil(128)).max().unwrap_or(0);
        let blocks = sequences.len() * row;
        let cache = device.kv_cache(&spec.kv, blocks)?;
        // The last block first.
        let table: Vec<i32> = (0..blocks as i32).rev().collect();
        let (mut slots, mut values) = (Vec::new(), Vec::new());
        for (&(_, len), table) in sequences.iter().zip(table.chunks(row)) {
            slots.extend((0..len).map(|at| i64::from(table[at / 128]) * 128 + (at % 128) as i64));
            values.extend((0..len).flat_map(|at| [at as f32; HEAD_DIM]));
        }
        let mut plan = device.slots_plan(&cache, slots.len())?;
        let mapping = SlotMapping { slots: &slots }.check(&plan)?;
        device.slots_update(&mut stream, &mut plan, &mapping)?;
        let dims = [slots.len(), 1, HEAD_DIM];
        let k = Tensor::from_slice(&mut stream, &vec![0f32; values.len()], &dims)?;
        let v = Tensor::from_slice(&mut stream, &values, &dims)?;
        let args = CacheWriteArgs { slots: &plan, cache: &cache, layer: 0, k: &k, v: &v };
        device.cache_write(&mut stream, args.check()?)?;
        let capacity = AttentionCapacity {
            max_tokens: sequences.iter().map(|sequence| sequence.0).sum(),
            max_sequences: sequences.len(),
            max_blocks_per_sequence: row,
            cache_blocks: blocks,
        };
        let plan = device.attention_plan(&spec, &capacity)?;
        stream.reserve(device.attention_workspace(&plan))?;
        Ok(Uniform { device, stream, cache, plan, sequences: sequences.to_vec(), table })
    }

    fn update(&mut self, kv_ranges: &[Range<u32>]) -> Result<()> {
        let mut ends = vec![0];
        for (rows, _) in &self.sequences {
            ends.push(ends[ends.len() - 1] + *rows as u32);
        }
        let kv_lens: Vec<u32> = self.sequences.iter().map(|sequence| sequence.1 as u32).collect();
        let step = AttentionStep {
            cu_seqlens: &ends,
            kv_lens: &kv_lens,
            kv_ranges,
            block_table: &self.table,
            tree_parents: &[],
        };
        let step = step.check(&self.plan)?;
        self.device.attention_update(&mut self.stream, &mut self.plan, &step)
    }

    /// The first element of each head's result, and the log-sum-exps.
    fn run(&mut self) -> Result<[Vec<f32>; 2]> {
        let tokens: usize = self.sequences.iter().map(|sequence| sequence.0).sum();
        let q = Tensor::new(&self.device, DType::Bf16, &[tokens, HEADS, HEAD_DIM])?;
        // Ones.
        self.stream.upload(&q, &[0x80, 0x3F].repeat(tokens * HEADS * HEAD_DIM))?;
        let out = Tensor::new(&self.device, DType::Bf16, &[tokens, HEADS, HEAD_DIM])?;
        let logs = Tensor::new(&self.device, DType::F32, &[tokens, HEADS])?;
        let args = AttentionArgs {
            plan: &self.plan,
            cache: &self.cache,
            layer: 0,
            q: &q,
            state_in: None,
            out: AttentionOut::Normalised(&out),
            sinks: None,
            log_sum_exp: Some(&logs),
        };
        self.device.attention(&mut self.stream, args.check()?)?;
        let out = self.stream.download(&out)?.wait()?;
        let wide = |x: &[u8]| f32::from_bits(u32::from(u16::from_le_bytes([x[0], x[1]])) << 16);
        Ok([out.chunks(2 * HEAD_DIM).map(wide).collect(), logs.to_vec(&mut self.stream)?])
    }

    /// A row at position `p` sees `p + 1` positions, whose mean is `p / 2`.
    fn judge(&mut self) -> Result<()> {
        self.update(&[])?;
        let [out, logs] = self.run()?;
        let positions: Vec<i64> = self
            .sequences
            .iter()
            .flat_map(|&(rows, len)| (0..rows).map(move |row| (len + row) as i64 - rows as i64))
            .flat_map(|position| [position; HEADS])
            .collect();
        assert_eq!(out.len(), positions.len());
        for ((out, log), &position) in out.iter().zip(&logs).zip(&positions) {
            if position < 0 {
                assert_eq!((*out, *log), (0.0, f32::NEG_INFINITY));
                continue;
            }
            let (mean, seen) = (position as f32 / 2.0, (position + 1) as f32);
            assert!((out - mean).abs() <= mean / 256.0, "{out} at position {position}");
            assert!((log - seen.ln()).abs() < 1e-5, "{log} at position {position}");
        }
        Ok(())
    }
}

/// vllm-ascend PR 3652, sglang PR 22020: query lengths for KV lengths, sums for lengths, a prefix that is left out.
#[test]
fn lengths_are_those_of_their_sequences() -> Result<()> {
    for sequences in [
        &[(3, 3), (5, 300), (1, 129), (1, 1), (5, 131)][..],
        // The same number of rows each, and one alone.
        &[(1, 200), (1, 7), (1, 128), (1, 129)],
        &[(4, 260), (4, 4), (4, 131)],
        &[(130, 513)],
        // Rows that see nothing, in front, between and behind; sequences without rows.
        &[(3, 1), (2, 0), (0, 5), (1, 40), (4, 2)],
    ] {
        Uniform::new(standin::device()?, sequences)?.judge()?;
    }
    Ok(())
}

/// More rows than the mask that stands for all masks has.
#[test]
fn long_steps_are_causal_throughout() -> Result<()> {
    Uniform::new(standin::device()?, &[(2_100, 2_300)])?.judge()
}

/// Steps of one plan follow each other: nothing of the one before is used.
#[test]
fn a_step_forgets_the_one_before() -> Result<()> {
    let mut uniform = Uniform::new(standin::device()?, &[(2, 260), (3, 140), (1, 9)])?;
    uniform.judge()?;
    uniform.sequences = vec![(0, 200), (1, 9), (4, 3)];
    uniform.judge()?;
    uniform.sequences = vec![(0, 0), (0, 0), (0, 0)];
    uniform.judge()
}

/// sglang issue 38196, lmdeploy PR 4723, vllm-ascend 9632, 8045 and 8523: sizes of blocks and heads that some release computes
/// wrongly or refuses are refused before a step comes, with the reason.
#[test]
fn what_a_release_may_not_take_is_refused_beforehand() -> Result<()> {
    let device = standin::device()?;
    let kv = |block, dim| KvSpec::new(1, 1, dim).with_block_size(block).with_dtype(DType::Bf16);
    let of = |kv| AttentionSpec::causal(HEADS, kv).with_dtype(DType::Bf16);
    let wide = KvSpec::new(1, 128, 512).with_block_size(128).with_dtype(DType::Bf16);
    for (reason, spec) in [
        ("blocks of 1:", of(kv(1, 64))),
        ("blocks of 16:", of(kv(16, 64))),
        ("blocks of 64:", of(kv(64, 256))),
        ("blocks of 256:", of(kv(256, 64))),
        ("heads of 72 and 72:", of(kv(128, 72))),
        ("heads of 528 and 528:", of(kv(128, 528))),
        ("heads of 192 and 128:", of(kv(128, 192).with_value_head_dim(128))),
        ("65 heads on 1", AttentionSpec::causal(65, kv(128, 64)).with_dtype(DType::Bf16)),
        ("257 heads", AttentionSpec::causal(257, kv(128, 64)).with_dtype(DType::Bf16)),
        ("65535 elements", AttentionSpec::causal(128, wide).with_dtype(DType::Bf16)),
        ("queries of F32", spec().with_dtype(DType::F32)),
        ("of one type", spec().with_dtype(DType::F16)),
        ("Sliding", spec().with_mask(Mask::Sliding { window: 9 })),
        ("Tree", spec().with_mask(Mask::Tree)),
        ("soft-caps", spec().with_soft_cap(2.0)),
        ("sinks", spec().with_sinks(Sinks::PerHead)),
        ("biases", spec().with_alibi_slopes(vec![0.5; HEADS])),
    ] {
        let Support::No(told) = device.attention_supports(&spec) else { panic!("granted: {spec:?}") };
        assert!(told.contains(reason), "{told}");
        let capacity = AttentionCapacity {
            max_tokens: 1,
            max_sequences: 1,
            max_blocks_per_sequence: 1,
            cache_blocks: 1,
        };
        let error = device.attention_plan(&spec, &capacity).unwrap_err();
        assert!(matches!(&error, Error::Unsupported { .. }), "{error}");
    }
    Ok(())
}

/// What no specification tells, calls tell.
#[test]
fn parts_of_the_positions_and_captures_are_refused() -> Result<()> {
    let mut uniform = Uniform::new(standin::device()?, &[(1, 300)])?;
    let error = uniform.update(from_ref(&(0..256))).unwrap_err();
    assert!(matches!(&error, Error::Unsupported { reason, .. } if reason.contains("ranges")), "{error}");
    uniform.update(from_ref(&(0..300)))?;
    let (device, stream) = (uniform.device.clone(), &mut uniform.stream);
    let tensor = |dtype, dims: &[usize]| Tensor::new(&device, dtype, dims);
    let q = tensor(DType::Bf16, &[1, HEADS, HEAD_DIM])?;
    let (max, sum) = (tensor(DType::F32, &[1, HEADS])?, tensor(DType::F32, &[1, HEADS])?);
    let (values, out) = (tensor(DType::F32, q.dims())?, tensor(DType::Bf16, q.dims())?);
    let args = |out| AttentionArgs {
        plan: &uniform.plan,
        cache: &uniform.cache,
        layer: 0,
        q: &q,
        state_in: None,
        out,
        sinks: None,
        log_sum_exp: None,
    };
    let state = AttentionOut::State(AttentionState { max: &max, sum: &sum, values: &values });
    let error = device.attention(stream, args(state).check()?).unwrap_err();
    assert!(matches!(&error, Error::Unsupported { reason, .. } if reason.contains("states")), "{error}");
    stream.begin_capture()?;
    let error = device.attention(stream, args(AttentionOut::Normalised(&out)).check()?).unwrap_err();
    assert!(error.to_string().contains("lengths"), "{error}");
    stream.end_capture().map(drop)
}
