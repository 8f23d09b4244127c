//! The CPU backend, judged in each tier.

mod native;

use halite_cpu::{Cpu, Options, Tier};
use halite_hal::{Device, Result};
use halite_kernels::{
    DType, Error, Support, Tensor,
    activation::{Activation, ActivationArgs, ActivationOps, ActivationOut, ActivationSpec},
    attention::{Attention, AttentionCapacity, AttentionSpec},
    cache::{BlockExport, KvCacheOps, KvSpec},
    norm::{Norm, NormArgs, NormOut, NormSpec},
    quantize::{Quantize, QuantizeArgs, QuantizeSpec},
    rope::{Rope, RopeSpec, RopeStyle},
};
use halite_parity::{Fault, Verdict, beyond_i32, invariance, parity_tests};

fn cpu(tier: Tier, threads: usize) -> Result<Cpu> {
    Cpu::new(Options::default().tier(tier).threads(threads))
}

fn able(tier: Option<Tier>) -> Result<Option<Cpu>> {
    tier.map(|tier| cpu(tier, 2)).transpose()
}

parity_tests!(invariant portable, cpu(Tier::PORTABLE, 2));
parity_tests!(invariant avx2, if_processor_can able(Tier::avx2()));
parity_tests!(invariant avx_vnni, if_processor_can able(Tier::avx_vnni()));
parity_tests!(invariant avx512, if_processor_can able(Tier::avx512()));
parity_tests!(invariant amx, if_processor_can able(Tier::amx()));

#[test]
fn every_tier_gives_the_same_bits_for_any_number_of_threads() -> Verdict {
    for tier in Tier::available() {
        let one = cpu(tier, 1)?;
        for threads in [2, 3, 8] {
            invariance::across(&one, &cpu(tier, threads)?)
                .map_err(|Fault(fault)| Fault(format!("{tier:?}, 1 and {threads} threads: {fault}")))?;
        }
    }
    Ok(())
}

/// They fuse the same operations and sum in the same order: a cluster of unlike machines gives one answer.
#[test]
fn the_tiers_that_fuse_give_the_same_bits() -> Verdict {
    let fusing: Vec<_> = Tier::available().filter(|&tier| tier != Tier::PORTABLE).collect();
    fusing.windows(2).try_for_each(|pair| {
        invariance::across(&cpu(pair[0], 2)?, &cpu(pair[1], 2)?)
            .map_err(|Fault(fault)| Fault(format!("{pair:?}: {fault}")))
    })
}

#[test]
fn offsets_beyond_32_bits_reach_the_last_block() -> Verdict {
    Tier::available().try_for_each(|tier| {
        let cpu = cpu(tier, 2)?;
        beyond_i32::attention(&cpu)?;
        beyond_i32::moe(&cpu)
    })
}

/// In one tier, for packing 3.2 GB takes seconds: panels are found alike in all of them.
#[test]
fn weights_beyond_32_bits_reach_the_last_channel() -> Verdict {
    beyond_i32::weights(&Cpu::new(Options::default().threads(2))?)
}

/// Sizes that a caller may ask for and no memory holds: an error, whichever product overflows.
#[test]
fn sizes_beyond_all_memory_are_refused() -> Verdict {
    let cpu = cpu(Tier::best(), 2)?;
    for (head_dim, value_head_dim, query_heads, max_tokens) in [
        (1 << 56, 8, 1, 1),
        (8, 1 << 56, 1, 1),
        (1 << 61, 1 << 61, 1, 0),
        (1 << 40, 1, 1 << 20, 1),
        (1, 1, 1 << 62, 1),
        (1, 1, usize::MAX, usize::MAX),
        (1 << 30, 1 << 30, 1 << 30, usize::MAX),
    ] {
        let kv = KvSpec::new(1, 1, head_dim).with_value_head_dim(value_head_dim).with_block_size(1);
        let spec = AttentionSpec::causal(query_heads, kv);
        let capacity =
            AttentionCapacity { max_tokens, max_sequences: 1, max_blocks_per_sequence: 1, cache_blocks: 1 };
        let planned = cpu.attention_plan(&spec, &capacity).map(drop);
        assert!(matches!(planned, Err(Error::Limit { .. })), "{spec:?}: {planned:?}");
    }
    // Tables that none holds, of steps whose scratch memory any does.
    let small = AttentionSpec::causal(1, KvSpec::new(1, 1, 8).with_block_size(1));
    for (max_tokens, max_sequences, max_blocks_per_sequence) in
        [(usize::MAX, 1, 1), (1, usize::MAX, 1), (1, 1, usize::MAX), (1, 1 << 40, 1 << 40)]
    {
        let capacity =
            AttentionCapacity { max_tokens, max_sequences, max_blocks_per_sequence, cache_blocks: 1 };
        let planned = cpu.attention_plan(&small, &capacity).map(drop);
        assert!(matches!(planned, Err(Error::OutOfMemory { .. })), "{capacity:?}: {planned:?}");
    }
    for max_tokens in [usize::MAX, usize::MAX / 32, 1 << 56] {
        let planned = cpu.rope_plan(&RopeSpec::new(64, RopeStyle::HalfSplit, 10), max_tokens).map(drop);
        assert!(matches!(planned, Err(Error::OutOfMemory { .. })), "{max_tokens} tokens: {planned:?}");
    }
    // One small block so often that no host has room: 2^49 bytes.
    let cache = cpu.kv_cache(&KvSpec::new(1, 1, 1 << 25).with_block_size(1), 1)?;
    let often = vec![0; 1 << 22];
    let export = BlockExport { cache: &cache, blocks: &often }.check()?;
    let exported = cpu.cache_export(&mut cpu.stream()?, export).map(drop);
    assert!(matches!(exported, Err(Error::OutOfMemory { .. })), "{exported:?}");
    Ok(())
}

/// What `supports` says of integers where floats are meant is what running it says.
#[test]
fn integers_are_not_taken_for_floats() -> Verdict {
    let cpu = cpu(Tier::best(), 1)?;
    let stream = &mut cpu.stream()?;
    let weight = Tensor::from_slice(stream, &[1f32; 4], &[4])?;
    let (q, scales) = (Tensor::new(&cpu, DType::I8, &[2, 4])?, Tensor::new(&cpu, DType::F32, &[2])?);
    for dtype in [DType::I32, DType::I8, DType::U8] {
        let (x, out) = (Tensor::new(&cpu, dtype, &[2, 4])?, Tensor::new(&cpu, dtype, &[2, 4])?);
        let norm = NormSpec::rms(1e-5).with_dtype(dtype);
        let activation = ActivationSpec::new(Activation::Silu).with_dtype(dtype);
        let quantize = QuantizeSpec::new(dtype);
        for support in
            [cpu.norm_supports(&norm), cpu.activation_supports(&activation), cpu.quantize_supports(&quantize)]
        {
            assert!(matches!(support, Support::No(_)), "{dtype}: {support:?}");
        }
        let out_of_norm = NormOut::Float(&out);
        let args = NormArgs {
            spec: &norm,
            x: &x,
            residual: None,
            weight: Some(&weight),
            bias: None,
            out: out_of_norm,
        };
        for ran in [
            cpu.norm(stream, args.check()?),
            cpu.activation(
                stream,
                ActivationArgs { spec: &activation, x: &x, out: ActivationOut::Float(&out) }.check()?,
            ),
            cpu.quantize(stream, QuantizeArgs::new(&quantize, &x, &q, &scales).check()?),
        ] {
            assert!(matches!(ran, Err(Error::Unsupported { .. })), "{dtype}: {ran:?}");
        }
    }
    Ok(())
}
