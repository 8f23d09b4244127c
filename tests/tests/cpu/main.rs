//! The CPU backend, judged in each tier.

use halite_cpu::{Cpu, Options, Tier};
use halite_hal::{Device, Result};
use halite_kernels::{
    DType, Error, Support, Tensor,
    activation::{Activation, ActivationArgs, ActivationOps, ActivationOut, ActivationSpec, GateLayout, Glu},
    attention::{
        Attention, AttentionCapacity, AttentionCompute, AttentionMergeSpec, AttentionSpec, Mask, Sinks,
        ValueProducts, alibi_slopes,
    },
    cache::{BlockExport, KvCacheOps, KvFormat, KvSpec},
    collectives::{Collective, CollectiveSpec, Collectives, Reduction},
    embedding::{Embedding, EmbeddingSpec, L2NormalizeSpec, Pooling, PoolingSpec, TableFormat},
    grouped::Grouped,
    linear::{ActivationFormat, GroupOffset, Linear, LinearSpec, Lora, LoraSpec, WeightFormat},
    logits::{LogitOps, LogitsSpec},
    mla::{LatentAttention, MlaForm, MlaSpec},
    moe::{ExpertsSpec, FeedForward, GroupScore, LocalExperts, Moe, RouterWeightOn, RoutingSpec, Scoring},
    norm::{Norm, NormArgs, NormOut, NormSpec},
    quantize::{Quantize, QuantizeArgs, QuantizeSpec, RotateSpec},
    rope::{Rope, RopeScaling, RopeSpec, RopeStyle, Yarn},
    top_k::{TopK, TopKSpec},
};
use halite_parity::{Fault, Verdict, beyond_i32, invariance, parity_tests};

fn cpu(tier: Tier, threads: usize) -> Result<Cpu> {
    Cpu::new(Options::default().tier(tier).threads(threads))
}

fn if_present(tier: Option<Tier>) -> Result<Option<Cpu>> {
    tier.map(|tier| cpu(tier, 2)).transpose()
}

parity_tests!(invariant portable, cpu(Tier::PORTABLE, 2));
parity_tests!(invariant avx2, if_present if_present(Tier::avx2()));
parity_tests!(invariant avx_vnni, if_present if_present(Tier::avx_vnni()));
parity_tests!(invariant avx512, if_present if_present(Tier::avx512()));

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

/// The suites accept a refusal where `supports` says no; here is what the CPU must not refuse.
#[test]
fn what_a_decoder_needs_is_native() -> Verdict {
    for tier in Tier::available() {
        let cpu = cpu(tier, 1)?;
        for weights in [WeightFormat::F32, WeightFormat::F16, WeightFormat::Bf16] {
            assert_eq!(cpu.linear_supports(&LinearSpec::float(576, 1536, weights)), Support::Native);
        }
        for weights in [WeightFormat::Int8PerChannel, WeightFormat::Int8PerChannelAsymmetric] {
            for format in [
                ActivationFormat::Int8PerToken,
                ActivationFormat::Int8PerTensor,
                ActivationFormat::Int8PerGroup { size: 128 },
                ActivationFormat::AsymmetricPerToken(DType::U8),
                ActivationFormat::AsymmetricPerTensor(DType::I8),
            ] {
                let quantize = QuantizeSpec::new(DType::Bf16).with_output(format);
                for quantize in [
                    quantize.clone().with_smoothing().with_hadamard(64),
                    quantize.with_smoothing().with_outlier_columns(8),
                ] {
                    assert_eq!(cpu.quantize_supports(&quantize), Support::Native, "{quantize:?}");
                }
                let spec = LinearSpec::w8a8(576, 1536).with_weights(weights).with_activation_format(format);
                for spec in [spec.clone(), spec.with_outliers(8, DType::Bf16).with_output(DType::I8)] {
                    assert_eq!(cpu.linear_supports(&spec), Support::Native, "{spec:?}");
                }
            }
        }
        for dtype in [DType::F16, DType::Bf16] {
            let spec = LinearSpec::float(576, 1536, WeightFormat::Bf16).with_activations(dtype);
            assert_eq!(cpu.linear_supports(&spec), Support::Native);
        }
        for collective in [
            Collective::AllReduce(Reduction::Sum),
            Collective::ReduceScatter(Reduction::Max),
            Collective::AllGather,
            Collective::AllToAll,
        ] {
            for dtype in [DType::F32, DType::F16, DType::Bf16, DType::I32] {
                let spec = CollectiveSpec::new(collective, 8).with_dtype(dtype);
                assert_eq!(cpu.collectives_supports(&spec), Support::Native);
            }
        }
        assert_eq!(cpu.logits_supports(&LogitsSpec::new(150_000)), Support::Native);
        for dtype in [DType::F32, DType::F16, DType::Bf16] {
            let spec = LoraSpec::new(8, 64).with_activations(dtype).with_output(dtype);
            assert_eq!(cpu.lora_supports(&spec), Support::Native, "{spec:?}");
        }
        for weights in integer_weights().into_iter().chain([WeightFormat::Int8PerChannelAsymmetric]) {
            for spec in [LinearSpec::w8a8(512, 1536), LinearSpec::float(512, 1536, weights)] {
                let spec = spec.with_weights(weights);
                assert_eq!(cpu.linear_supports(&spec), Support::Native, "{spec:?}");
            }
        }
        for dtype in [DType::F32, DType::F16, DType::Bf16] {
            for spec in [TopKSpec::largest(50), TopKSpec::smallest(1)] {
                assert_eq!(cpu.top_k_supports(&spec.with_dtype(dtype)), Support::Native);
            }
            for spec in [
                ActivationSpec::new(Activation::ReluSquared),
                ActivationSpec::glu(Glu::Plain(Activation::Silu), GateLayout::Split),
                ActivationSpec::glu(Glu::CLAMPED_SWIGLU, GateLayout::Interleaved),
            ] {
                assert_eq!(cpu.activation_supports(&spec.with_dtype(dtype)), Support::Native);
            }
            for table in
                [TableFormat::Float(dtype), TableFormat::Q4K, TableFormat::Int4PerGroup { group: 32 }]
            {
                let spec = EmbeddingSpec::new(table).with_output(dtype);
                assert_eq!(cpu.embedding_supports(&spec), Support::Native);
            }
            let pooling = PoolingSpec::new(Pooling::Mean).with_input(dtype);
            assert_eq!(cpu.pooling_supports(&pooling), Support::Native);
            let normalize = L2NormalizeSpec::new(1e-12).with_dtype(dtype);
            assert_eq!(cpu.l2_normalize_supports(&normalize), Support::Native);
            let yarn = RopeScaling::Yarn(Yarn::new(32.0, 4096));
            let rope = RopeSpec::new(128, RopeStyle::Interleaved, 131_072).with_sections(&[16, 24, 24]);
            assert_eq!(cpu.rope_supports(&rope.with_scaling(yarn).with_dtype(dtype)), Support::Native);
            let rotation = RotateSpec::hadamard(64).with_dtype(dtype);
            assert_eq!(cpu.rotate_supports(&rotation), Support::Native);
            for spec in [NormSpec::rms(1e-6).with_weight_offset(1.0), NormSpec::layer(1e-5)] {
                let spec = spec.with_dtype(dtype);
                assert_eq!(cpu.norm_supports(&spec), Support::Native);
                for format in [
                    ActivationFormat::Int8PerGroup { size: 128 },
                    ActivationFormat::AsymmetricPerToken(DType::U8),
                ] {
                    let quantize = QuantizeSpec::INT8_PER_TOKEN.with_output(format).with_smoothing();
                    let quantize = quantize.with_hadamard(64);
                    assert_eq!(cpu.norm_quantize_supports(&spec, &quantize), Support::Native);
                    let activation = ActivationSpec::new(Activation::Silu).with_dtype(dtype);
                    let support = cpu.activation_quantize_supports(&activation, &quantize);
                    assert_eq!(support, Support::Native);
                }
            }
        }
        for dtype in [DType::F32, DType::F16, DType::Bf16] {
            let kv = KvSpec::latent(61, 512, 64).with_dtype(dtype);
            assert_eq!(cpu.cache_supports(&kv), Support::Native, "{kv:?}");
            for queries in [DType::F32, DType::F16, DType::Bf16] {
                let spec = AttentionSpec::causal(128, kv.clone()).with_dtype(queries);
                assert_eq!(cpu.attention_supports(&spec), Support::Native, "{spec:?}");
            }
            let merge = AttentionMergeSpec::new().with_dtype(dtype);
            assert_eq!(cpu.attention_merge_supports(&merge), Support::Native, "{merge:?}");
            for form in [MlaForm::Absorbed, MlaForm::Expanded] {
                for weights in [WeightFormat::F32, WeightFormat::F16, WeightFormat::Bf16] {
                    let spec = MlaSpec::new(128, kv.clone(), 128, 128, form).with_weights(weights);
                    let spec = spec.with_attention(|attention| attention.with_dtype(dtype));
                    assert_eq!(cpu.mla_supports(&spec), Support::Native, "{spec:?}");
                }
            }
        }
        for format in [
            KvFormat::Float(DType::F32),
            KvFormat::Float(DType::F16),
            KvFormat::Float(DType::Bf16),
            KvFormat::Int8PerTokenHead,
        ] {
            for (head_dim, block_size) in [(1, 1), (32, 7), (64, 16), (80, 32), (256, 128), (576, 256)] {
                let kv = KvSpec::new(2, 3, head_dim).with_format(format).with_block_size(block_size);
                assert_eq!(cpu.cache_supports(&kv), Support::Native, "{kv:?}");
                if format == KvFormat::Int8PerTokenHead {
                    for values in [ValueProducts::Float, ValueProducts::Int8] {
                        let compute = AttentionCompute::Int8 { values };
                        let spec = AttentionSpec::causal(9, kv.clone()).with_compute(compute);
                        let spec = spec.with_dtype(DType::Bf16);
                        assert_eq!(cpu.attention_supports(&spec), Support::Native, "{spec:?}");
                    }
                }
                let spec = AttentionSpec::causal(9, kv);
                assert_eq!(cpu.attention_supports(&spec), Support::Native, "{spec:?}");
                for mask in [
                    Mask::Bidirectional,
                    Mask::Sliding { window: 4096 },
                    Mask::Chunked { chunk: 8192 },
                    Mask::Tree,
                ] {
                    let spec = spec.clone().with_soft_cap(50.0).with_mask(mask).with_sinks(Sinks::PerHead);
                    assert_eq!(cpu.attention_supports(&spec), Support::Native, "{spec:?}");
                }
                let spec = spec.with_alibi_slopes(alibi_slopes(9));
                assert_eq!(cpu.attention_supports(&spec), Support::Native, "{spec:?}");
            }
        }
    }
    Ok(())
}

/// Mixture of experts: every router, and experts in every format with every function.
#[test]
fn what_experts_need_is_native() -> Verdict {
    for tier in Tier::available() {
        let cpu = cpu(tier, 1)?;
        for scoring in [Scoring::Softmax, Scoring::SoftmaxOfChosen, Scoring::Sigmoid] {
            for score in [GroupScore::Best, GroupScore::TopTwo] {
                let spec = RoutingSpec::new(256, 8, scoring).with_groups(8, 4, score);
                assert_eq!(cpu.routing_supports(&spec), Support::Native);
            }
        }
        for dtype in [DType::F32, DType::F16, DType::Bf16] {
            assert_eq!(cpu.permutation_supports(ActivationFormat::Float(dtype)), Support::Native);
        }
        assert_eq!(cpu.permutation_supports(ActivationFormat::Int8PerToken), Support::Native);
        let layers = |layer: fn(usize, usize) -> LinearSpec| (layer(64, 32), layer(32, 64));
        for (gate_up, down) in [
            layers(|k, n| LinearSpec::float(k, n, WeightFormat::F32)),
            layers(|k, n| LinearSpec::float(k, n, WeightFormat::Bf16)),
            layers(LinearSpec::w8a8),
            layers(|k, n| LinearSpec::w8a8(k, n).with_weights(WeightFormat::Q4_0)),
        ] {
            assert_eq!(cpu.grouped_supports(&gate_up), Support::Native);
            let mut wide = gate_up.clone();
            wide.out_features *= 2;
            let clamped = FeedForward::new(wide, down.clone());
            for network in [
                FeedForward::new(gate_up.clone().gated(Activation::GeluErf), down.clone()),
                FeedForward::new(gate_up.gated(Activation::Silu), down),
                clamped.clone().with_glu(Glu::CLAMPED_SWIGLU, GateLayout::Split),
                clamped.with_glu(Glu::CLAMPED_SWIGLU, GateLayout::Interleaved),
            ] {
                let spec = ExpertsSpec::new(LocalExperts::range(4, 4), 2, network.clone())
                    .with_shared(network)
                    .with_router_weight(RouterWeightOn::Input);
                assert_eq!(cpu.moe_supports(&spec), Support::Native, "{spec:?}");
            }
        }
        for format in [
            ActivationFormat::Int8PerToken,
            ActivationFormat::Int8PerTensor,
            ActivationFormat::Int8PerGroup { size: 32 },
            ActivationFormat::AsymmetricPerToken(DType::U8),
            ActivationFormat::AsymmetricPerTensor(DType::I8),
        ] {
            for weights in integer_weights().into_iter().chain([WeightFormat::Int8PerChannelAsymmetric]) {
                let layer =
                    |k, n| LinearSpec::w8a8(k, n).with_weights(weights).with_activation_format(format);
                let [gate_up, down] = [layer(512, 256).gated(Activation::Silu), layer(256, 512)]
                    .map(|layer| layer.with_outliers(4, DType::F32));
                let network = FeedForward::new(gate_up, down);
                // Zero points do not go with weights of groups.
                if network.gate_up.check().is_ok() {
                    let spec = ExpertsSpec::new(LocalExperts::range(4, 4), 2, network.clone());
                    let spec = spec.with_shared(network);
                    assert_eq!(cpu.moe_supports(&spec), Support::Native, "{spec:?}");
                }
            }
        }
    }
    Ok(())
}

fn integer_weights() -> Vec<WeightFormat> {
    let mut formats = vec![
        WeightFormat::Int8PerChannel,
        WeightFormat::Int8PerTensor,
        WeightFormat::Q4_0,
        WeightFormat::Q4_1,
        WeightFormat::Q4K,
    ];
    for group in [32, 64, 128] {
        formats.push(WeightFormat::Int8PerGroup { group });
        for offset in [GroupOffset::Symmetric, GroupOffset::ZeroPoint, GroupOffset::Min] {
            formats.push(WeightFormat::Int4PerGroup { group, offset });
        }
    }
    formats
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
