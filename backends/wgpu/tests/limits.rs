//! What the device cannot do is refused, with the limit: never computed wrongly, and never found out in the middle.

use halite_hal::{DType, Device, Error, Result, Stream, Tensor};
use halite_kernels::{
    Support,
    activation::{Activation, ActivationArgs, ActivationOps, ActivationOut, ActivationSpec},
    attention::{
        Attention, AttentionArgs, AttentionCapacity, AttentionOut, AttentionPlan, AttentionSpec,
        AttentionStep,
    },
    cache::{CacheWriteArgs, KvCacheOps, KvSpec, SlotMapping},
    embedding::{Embedding, L2NormalizeArgs, L2NormalizeSpec, Pooling, PoolingSpec},
    linear::{Activations, Epilogue, HostWeights, Linear, LinearArgs, LinearSpec, WeightFormat},
    logits::{LogitOps, LogitsCapacity, LogitsSpec},
    rope::{Rope, RopeSpec, RopeStyle},
    sampling::{Sampling, SamplingSpec},
};
use halite_wgpu::{Options, Wgpu, adapters};

/// A device of its own. None where there is no adapter, which `parity` does not pass over where `CI=true`.
fn gpu() -> Result<Option<Wgpu>> {
    let there = adapters().iter().any(|adapter| adapter.lacks.is_none());
    there.then(|| Wgpu::new(Options::default())).transpose()
}

/// Whether loops end early there.
fn is_software() -> bool {
    adapters().iter().any(|adapter| adapter.default && adapter.kind == "CPU")
}

fn is_argument<T: std::fmt::Debug>(result: Result<T>) {
    assert!(matches!(result, Err(Error::Argument { .. })), "{result:?}");
}

/// Drivers number their buffers a device, and would take another's for their own.
#[test]
fn memory_of_another_device_is_refused() -> Result<()> {
    let (Some(ours), Some(other)) = (gpu()?, gpu()?) else { return Ok(()) };
    let (stream, foreign) = (&mut ours.stream()?, &mut other.stream()?);
    let x = Tensor::from_slice(stream, &[1f32, 2.0, 3.0, 4.0], &[1, 4])?;
    let _same_place = Tensor::from_slice(foreign, &[5f32, 6.0, 7.0, 8.0], &[1, 4])?;
    is_argument(x.to_vec::<f32>(foreign));
    is_argument(x.write(foreign, &[0f32; 4]));
    let spec = ActivationSpec::new(Activation::Silu);
    let out = Tensor::new(&ours, DType::F32, &[1, 4])?;
    let args = ActivationArgs { spec: &spec, x: &x, out: ActivationOut::Float(&out) };
    is_argument(other.activation(foreign, args.check()?));
    // Memory that the other device has no number for.
    let many =
        (0..40).map(|_| Tensor::<Wgpu>::new(&ours, DType::U8, &[8 << 20])).collect::<Result<Vec<_>>>()?;
    is_argument(many[39].to_vec::<u8>(foreign));
    assert_eq!(x.to_vec::<f32>(stream)?, [1.0, 2.0, 3.0, 4.0]);
    Ok(())
}

/// Plans say what calls would.
#[test]
fn plans_that_no_dispatch_can_bind_are_refused() -> Result<()> {
    let Some(gpu) = gpu()? else { return Ok(()) };
    let limit =
        adapters().iter().find(|adapter| adapter.default).map_or(0, |adapter| adapter.largest_binding);
    let words = usize::try_from(limit / 4).unwrap_or(usize::MAX - 8) + 8;
    let cache = gpu.kv_cache(&KvSpec::new(1, 1, 8), 2)?;
    let history = LogitsCapacity::rows(1).with_history(words);
    for (operator, planned) in [
        ("sampling", gpu.sampling_plan(&SamplingSpec::new(4097), words / 8192 + 1).map(drop)),
        ("logits", gpu.logits_plan(&LogitsSpec::new(100), &history).map(drop)),
        ("cache", gpu.slots_plan(&cache, words).map(drop)),
        ("rope", gpu.rope_plan(&RopeSpec::new(8, RopeStyle::HalfSplit, 10), words / 8 + 1).map(drop)),
        ("pool", gpu.pooling_plan(&PoolingSpec::new(Pooling::Mean), words, 10).map(drop)),
    ] {
        match planned {
            Err(Error::Limit { operator: told, got, limit, .. }) => assert!(told == operator && got > limit),
            other => panic!("{operator}: {other:?}"),
        }
    }
    let capacity = AttentionCapacity {
        max_tokens: usize::MAX,
        max_sequences: 1,
        max_blocks_per_sequence: 1,
        cache_blocks: 1,
    };
    let spec = AttentionSpec::causal(1, KvSpec::new(1, 1, 8));
    assert!(matches!(
        gpu.attention_plan(&spec, &capacity),
        Err(Error::Limit { .. } | Error::OutOfMemory { .. })
    ));
    Ok(())
}

/// Right, or refused where loops end early: `results` are all alike.
fn right_or_refused(results: Result<Vec<f32>>, expected: f32, may_refuse: bool) -> Result<()> {
    match results {
        Ok(results) => {
            let far = results.iter().find(|&&y| (y - expected).abs() > expected * 1e-3);
            assert_eq!(far, None, "expected {expected}");
        }
        Err(Error::Limit { argument, .. }) if may_refuse && is_software() => {
            assert!(argument.contains("software adapter"), "{argument}");
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

#[test]
fn loops_that_would_end_early_are_refused() -> Result<()> {
    let Some(gpu) = gpu()? else { return Ok(()) };
    let stream = &mut gpu.stream()?;
    for (columns, may_refuse) in [(5 << 20, false), (6 << 20, true)] {
        let x = Tensor::from_slice(stream, &vec![1f32; columns], &[1, columns])?;
        let out = Tensor::new(&gpu, DType::F32, &[1, columns])?;
        let spec = L2NormalizeSpec::new(1e-12);
        let run = gpu.l2_normalize(stream, L2NormalizeArgs { spec: &spec, x: &x, out: &out }.check()?);
        let results = run.and_then(|()| out.to_vec::<f32>(stream));
        right_or_refused(results, 1.0 / (columns as f32).sqrt(), may_refuse)?;
    }
    // The longest rows, by the kernel of few and by that of many.
    let k = (0..20).map(|bit| 1 << bit).rev().fold(0, |k, bit| {
        let longer = LinearSpec::float(k + bit, 3, WeightFormat::F32);
        if matches!(gpu.linear_supports(&longer), Support::Native) { k + bit } else { k }
    });
    let spec = LinearSpec::float(k, 3, WeightFormat::F32);
    let weights = gpu.linear_pack(stream, HostWeights::F32(&vec![1f32; 3 * k]).check(&spec)?)?;
    for rows in [1, 9] {
        let x = Tensor::from_slice(stream, &vec![1f32; rows * k], &[rows, k])?;
        let out = Tensor::new(&gpu, DType::F32, &[rows, 3])?;
        let (x, epilogue) = (Activations::Float(&x), Epilogue::default());
        let args = LinearArgs { weights: &weights, x, epilogue, out: &out };
        gpu.linear(stream, args.check()?)?;
        right_or_refused(out.to_vec::<f32>(stream), k as f32, false)?;
    }
    Ok(())
}

/// One token over so many positions of which all weigh alike: the later half has values 1, the others 0.
fn attention(gpu: &Wgpu, positions: usize, kv_split: usize) -> Result<Vec<f32>> {
    let (stream, heads, dim, block) = (&mut gpu.stream()?, 128, 8, 16);
    let kv = KvSpec::new(1, 1, dim).with_value_head_dim(1024).with_block_size(block);
    let blocks = positions / block;
    let cache = gpu.kv_cache(&kv, blocks)?;
    let mut slots = gpu.slots_plan(&cache, positions)?;
    let mapping: Vec<i64> = (0..positions as i64).collect();
    let mapping = SlotMapping { slots: &mapping }.check(&slots)?;
    gpu.slots_update(stream, &mut slots, &mapping)?;
    let k = Tensor::from_slice(stream, &vec![0f32; positions * dim], &[positions, 1, dim])?;
    let halves: Vec<f32> = (0..positions * 1024).map(|i| f32::from(i >= positions * 512)).collect();
    let v = Tensor::from_slice(stream, &halves, &[positions, 1, 1024])?;
    gpu.cache_write(
        stream,
        CacheWriteArgs { slots: &slots, cache: &cache, layer: 0, k: &k, v: &v }.check()?,
    )?;
    let spec = AttentionSpec::causal(heads, kv).with_kv_split(kv_split);
    let (max_tokens, max_sequences) = (1, 1);
    let capacity = AttentionCapacity {
        max_tokens,
        max_sequences,
        max_blocks_per_sequence: blocks,
        cache_blocks: blocks,
    };
    let mut plan = gpu.attention_plan(&spec, &capacity)?;
    let table: Vec<i32> = (0..blocks as i32).collect();
    let step = AttentionStep {
        cu_seqlens: &[0, 1],
        kv_lens: &[positions as u32],
        kv_ranges: &[],
        block_table: &table,
        tree_parents: &[],
    };
    let step = step.check(&plan)?;
    if let Err(error) = gpu.attention_update(stream, &mut plan, &step) {
        assert_eq!(plan.tokens(), 0, "a failed update leaves no step");
        return Err(error);
    }
    stream.reserve(gpu.attention_workspace(&plan))?;
    let q = Tensor::from_slice(stream, &vec![1f32; heads * dim], &[1, heads, dim])?;
    let out = Tensor::new(gpu, DType::F32, &[1, heads, 1024])?;
    let args = AttentionArgs {
        plan: &plan,
        cache: &cache,
        layer: 0,
        q: &q,
        state_in: None,
        out: AttentionOut::Normalised(&out),
        sinks: None,
        log_sum_exp: None,
    };
    gpu.attention(stream, args.check()?)?;
    out.to_vec(stream)
}

/// Small parts take the most rounds a position.
#[test]
fn attention_over_many_parts_is_right_or_refused() -> Result<()> {
    let Some(gpu) = gpu()? else { return Ok(()) };
    for (positions, may_refuse) in [(4_096, false), (16_384, true)] {
        right_or_refused(attention(&gpu, positions, 16), 0.5, may_refuse)?;
    }
    Ok(())
}
