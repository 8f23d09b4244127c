//! The CPU backend, judged in each tier.

use halite_cpu::{Cpu, Options, Tier};
use halite_hal::Result;
use halite_kernels::{
    DType, Support,
    attention::{Attention, AttentionSpec},
    cache::{KvCacheOps, KvSpec},
    linear::{Linear, LinearSpec, WeightFormat},
};
use halite_parity::{Fault, Verdict, attention, invariance, parity_tests};

fn cpu(tier: Tier, threads: usize) -> Result<Cpu> {
    Cpu::new(Options::default().tier(tier).threads(threads))
}

fn avx512_cpu(threads: usize) -> Result<Option<Cpu>> {
    Tier::avx512().map(|tier| cpu(tier, threads)).transpose()
}

parity_tests!(invariant portable, cpu(Tier::PORTABLE, 2));
parity_tests!(invariant avx512, if_present avx512_cpu(2));

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

#[test]
fn offsets_beyond_32_bits_reach_the_last_block() -> Verdict {
    Tier::available().try_for_each(|tier| attention::beyond_i32(&cpu(tier, 2)?))
}

/// The suites accept a refusal where `supports` says no; here is what the CPU must not refuse.
#[test]
fn what_a_decoder_needs_is_native() -> Verdict {
    for tier in Tier::available() {
        let cpu = cpu(tier, 1)?;
        for weights in [WeightFormat::F32, WeightFormat::F16, WeightFormat::Bf16] {
            assert_eq!(cpu.linear_supports(&LinearSpec::float(576, 1536, weights)), Support::Native);
        }
        assert_eq!(cpu.linear_supports(&LinearSpec::w8a8(576, 1536)), Support::Native);
        for dtype in [DType::F32, DType::F16, DType::Bf16] {
            for (head_dim, block_size) in [(1, 1), (32, 7), (64, 16), (80, 32), (256, 128), (576, 256)] {
                let kv = KvSpec::new(2, 3, head_dim).with_dtype(dtype).with_block_size(block_size);
                assert_eq!(cpu.cache_supports(&kv), Support::Native, "{kv:?}");
                let spec = AttentionSpec::causal(9, kv);
                assert_eq!(cpu.attention_supports(&spec), Support::Native, "{spec:?}");
            }
        }
    }
    Ok(())
}
