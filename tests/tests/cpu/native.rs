//! The suites accept a refusal where `supports` says no; here is what the CPU must not refuse.

use crate::cpu;
use halite_cpu::{Cpu, Tier};
use halite_kernels::{
    DType, Support,
    activation::{Activation, ActivationOps, ActivationSpec, GateLayout, Glu},
    attention::{
        Attention, AttentionCompute, AttentionMergeSpec, AttentionSpec, Mask, Sinks, ValueProducts,
        alibi_slopes,
    },
    cache::{KvCacheOps, KvFormat, KvSpec},
    collectives::{Collective, CollectiveSpec, Collectives, Reduction},
    embedding::{Embedding, EmbeddingSpec, L2NormalizeSpec, Pooling, PoolingSpec, TableFormat},
    grouped::Grouped,
    linear::{ActivationFormat, GroupOffset, Linear, LinearSpec, Lora, LoraSpec, WeightFormat},
    logits::{LogitOps, LogitsSpec},
    mla::{LatentAttention, MlaForm, MlaSpec},
    moe::{ExpertsSpec, FeedForward, GroupScore, LocalExperts, Moe, RouterWeightOn, RoutingSpec, Scoring},
    norm::{Norm, NormSpec},
    quantize::{Quantize, QuantizeSpec, RotateSpec},
    rope::{Rope, RopeScaling, RopeSpec, RopeStyle, Yarn},
    top_k::{TopK, TopKSpec},
};
use halite_parity::Verdict;
use std::fmt::Debug;

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];

/// Formats of activations that layers of INT8 weights take.
const INTEGERS: [ActivationFormat; 5] = [
    ActivationFormat::Int8PerToken,
    ActivationFormat::Int8PerTensor,
    ActivationFormat::Int8PerGroup { group_size: 32 },
    ActivationFormat::AsymmetricPerToken(DType::U8),
    ActivationFormat::AsymmetricPerTensor(DType::I8),
];

/// Runs a family's list in every tier.
fn in_every_tier(family: impl Fn(&Cpu)) -> Verdict {
    for tier in Tier::available() {
        family(&cpu(tier, 1)?);
    }
    Ok(())
}

#[track_caller]
fn native(support: Support, spec: impl Debug) {
    assert_eq!(support, Support::Native, "{spec:?}");
}

fn integer_weights() -> Vec<WeightFormat> {
    let mut formats = vec![
        WeightFormat::Int8PerChannel,
        WeightFormat::Int8PerChannelAsymmetric,
        WeightFormat::Int8PerTensor,
        WeightFormat::Q4_0,
        WeightFormat::Q4_1,
        WeightFormat::Q4K,
    ];
    for group_size in [32, 64, 128] {
        formats.push(WeightFormat::Int8PerGroup { group_size });
        for offset in [GroupOffset::Symmetric, GroupOffset::ZeroPoint, GroupOffset::Min] {
            formats.push(WeightFormat::Int4PerGroup { group_size, offset });
        }
    }
    formats
}

#[test]
fn linear_of_floats() -> Verdict {
    in_every_tier(|cpu| {
        for weights in [WeightFormat::F32, WeightFormat::F16, WeightFormat::Bf16] {
            for activations in FLOATS {
                let spec = LinearSpec::float(576, 1536, weights).with_activations(activations);
                native(cpu.linear_supports(&spec), spec);
            }
        }
    })
}

#[test]
fn linear_of_integers() -> Verdict {
    in_every_tier(|cpu| {
        for weights in [WeightFormat::Int8PerChannel, WeightFormat::Int8PerChannelAsymmetric] {
            for format in INTEGERS {
                let spec = LinearSpec::w8a8(576, 1536).with_weights(weights).with_activation_format(format);
                for spec in [spec.clone(), spec.with_outliers(8, DType::Bf16).with_output(DType::I8)] {
                    native(cpu.linear_supports(&spec), spec);
                }
            }
        }
        for weights in integer_weights() {
            for spec in [LinearSpec::w8a8(512, 1536), LinearSpec::float(512, 1536, weights)] {
                let spec = spec.with_weights(weights);
                native(cpu.linear_supports(&spec), spec);
            }
        }
    })
}

#[test]
fn lora() -> Verdict {
    in_every_tier(|cpu| {
        for dtype in FLOATS {
            let spec = LoraSpec::new(8, 64).with_activations(dtype).with_output(dtype);
            native(cpu.lora_supports(&spec), spec);
        }
    })
}

#[test]
fn quantize() -> Verdict {
    in_every_tier(|cpu| {
        for format in INTEGERS {
            let spec = QuantizeSpec::new(DType::Bf16).with_output(format).with_smoothing();
            for spec in [spec.clone().with_hadamard(64), spec.with_outlier_columns(8)] {
                native(cpu.quantize_supports(&spec), spec);
            }
        }
        for dtype in FLOATS {
            let spec = RotateSpec::hadamard(64).with_dtype(dtype);
            native(cpu.rotate_supports(&spec), spec);
        }
    })
}

#[test]
fn norm_and_activation() -> Verdict {
    in_every_tier(|cpu| {
        for dtype in FLOATS {
            for spec in [
                ActivationSpec::new(Activation::ReluSquared),
                ActivationSpec::glu(Glu::Plain(Activation::Silu), GateLayout::Split),
                ActivationSpec::glu(Glu::CLAMPED_SWIGLU, GateLayout::Interleaved),
            ] {
                let spec = spec.with_dtype(dtype);
                native(cpu.activation_supports(&spec), spec);
            }
            for spec in [NormSpec::rms(1e-6).with_weight_offset(1.0), NormSpec::layer(1e-5)] {
                let spec = spec.with_dtype(dtype);
                native(cpu.norm_supports(&spec), spec);
            }
        }
    })
}

#[test]
fn norm_and_activation_to_integers() -> Verdict {
    in_every_tier(|cpu| {
        for (dtype, format) in FLOATS.iter().flat_map(|&dtype| {
            [
                ActivationFormat::Int8PerGroup { group_size: 128 },
                ActivationFormat::AsymmetricPerToken(DType::U8),
            ]
            .map(|format| (dtype, format))
        }) {
            let quantize = QuantizeSpec::INT8_PER_TOKEN.with_output(format).with_smoothing();
            let quantize = quantize.with_hadamard(64);
            for spec in [NormSpec::rms(1e-6).with_weight_offset(1.0), NormSpec::layer(1e-5)] {
                let spec = spec.with_dtype(dtype);
                native(cpu.norm_quantize_supports(&spec, &quantize), (spec, &quantize));
            }
            let spec = ActivationSpec::new(Activation::Silu).with_dtype(dtype);
            native(cpu.activation_quantize_supports(&spec, &quantize), (spec, &quantize));
        }
    })
}

#[test]
fn embedding() -> Verdict {
    in_every_tier(|cpu| {
        for dtype in FLOATS {
            for table in
                [TableFormat::Float(dtype), TableFormat::Q4K, TableFormat::Int4PerGroup { group_size: 32 }]
            {
                let spec = EmbeddingSpec::new(table).with_output(dtype);
                native(cpu.embedding_supports(&spec), spec);
            }
            let pooling = PoolingSpec::new(Pooling::Mean).with_input(dtype);
            native(cpu.pooling_supports(&pooling), pooling);
            let normalize = L2NormalizeSpec::new(1e-12).with_dtype(dtype);
            native(cpu.l2_normalize_supports(&normalize), normalize);
        }
    })
}

#[test]
fn rope() -> Verdict {
    in_every_tier(|cpu| {
        for dtype in FLOATS {
            let spec = RopeSpec::new(128, RopeStyle::Interleaved, 131_072).with_sections(&[16, 24, 24]);
            let spec = spec.with_scaling(RopeScaling::Yarn(Yarn::new(32.0, 4096))).with_dtype(dtype);
            native(cpu.rope_supports(&spec), spec);
        }
    })
}

#[test]
fn logits_and_top_k() -> Verdict {
    in_every_tier(|cpu| {
        native(cpu.logits_supports(&LogitsSpec::new(150_000)), "logits");
        for dtype in FLOATS {
            for spec in [TopKSpec::largest(50), TopKSpec::smallest(1)] {
                let spec = spec.with_dtype(dtype);
                native(cpu.top_k_supports(&spec), spec);
            }
        }
    })
}

#[test]
fn collectives() -> Verdict {
    in_every_tier(|cpu| {
        for collective in [
            Collective::AllReduce(Reduction::Sum),
            Collective::ReduceScatter(Reduction::Max),
            Collective::AllGather,
            Collective::AllToAll,
        ] {
            for dtype in [DType::F32, DType::F16, DType::Bf16, DType::I32] {
                let spec = CollectiveSpec::new(collective, 8).with_dtype(dtype);
                native(cpu.collectives_supports(&spec), spec);
            }
        }
    })
}

#[test]
fn cache_and_attention() -> Verdict {
    in_every_tier(|cpu| {
        for format in [
            KvFormat::Float(DType::F32),
            KvFormat::Float(DType::F16),
            KvFormat::Float(DType::Bf16),
            KvFormat::Int8PerTokenHead,
        ] {
            for (head_dim, block_size) in [(1, 1), (32, 7), (64, 16), (80, 32), (256, 128), (576, 256)] {
                let kv = KvSpec::new(2, 3, head_dim).with_format(format).with_block_size(block_size);
                native(cpu.cache_supports(&kv), &kv);
                let spec = AttentionSpec::causal(9, kv);
                native(cpu.attention_supports(&spec), &spec);
                for mask in [
                    Mask::Bidirectional,
                    Mask::Sliding { window: 4096 },
                    Mask::Chunked { chunk: 8192 },
                    Mask::Tree,
                ] {
                    let spec = spec.clone().with_soft_cap(50.0).with_mask(mask).with_sinks(Sinks::PerHead);
                    native(cpu.attention_supports(&spec), spec);
                }
                let spec = spec.with_alibi_slopes(alibi_slopes(9));
                native(cpu.attention_supports(&spec), spec);
            }
        }
    })
}

#[test]
fn attention_in_int8() -> Verdict {
    in_every_tier(|cpu| {
        for (head_dim, block_size) in [(1, 1), (32, 7), (64, 16), (80, 32), (256, 128), (576, 256)] {
            let format = KvFormat::Int8PerTokenHead;
            let kv = KvSpec::new(2, 3, head_dim).with_format(format).with_block_size(block_size);
            for values in [ValueProducts::Float, ValueProducts::Int8] {
                let spec =
                    AttentionSpec::causal(9, kv.clone()).with_compute(AttentionCompute::Int8 { values });
                let spec = spec.with_dtype(DType::Bf16);
                native(cpu.attention_supports(&spec), spec);
            }
        }
    })
}

#[test]
fn attention_merge() -> Verdict {
    in_every_tier(|cpu| {
        for dtype in FLOATS {
            let spec = AttentionMergeSpec::new().with_dtype(dtype);
            native(cpu.attention_merge_supports(&spec), spec);
        }
    })
}

#[test]
fn mla() -> Verdict {
    in_every_tier(|cpu| {
        for dtype in FLOATS {
            let kv = KvSpec::latent(61, 512, 64).with_dtype(dtype);
            native(cpu.cache_supports(&kv), &kv);
            for queries in FLOATS {
                let spec = AttentionSpec::causal(128, kv.clone()).with_dtype(queries);
                native(cpu.attention_supports(&spec), spec);
            }
            for form in [MlaForm::Absorbed, MlaForm::Expanded] {
                for weights in [WeightFormat::F32, WeightFormat::F16, WeightFormat::Bf16] {
                    let spec = MlaSpec::new(128, kv.clone(), 128, 128, form).with_weights(weights);
                    let spec = spec.with_attention(|attention| attention.with_dtype(dtype));
                    native(cpu.mla_supports(&spec), spec);
                }
            }
        }
    })
}

/// Every router.
#[test]
fn moe_routing() -> Verdict {
    in_every_tier(|cpu| {
        for scoring in [Scoring::Softmax, Scoring::SoftmaxOfChosen, Scoring::Sigmoid] {
            for score in [GroupScore::Best, GroupScore::TopTwo] {
                let spec = RoutingSpec::new(256, 8, scoring).with_groups(8, 4, score);
                native(cpu.routing_supports(&spec), spec);
            }
        }
    })
}

#[test]
fn moe_permutation() -> Verdict {
    in_every_tier(|cpu| {
        for format in FLOATS.map(ActivationFormat::Float).into_iter().chain([ActivationFormat::Int8PerToken])
        {
            native(cpu.permutation_supports(format), format);
        }
    })
}

/// Every function.
#[test]
fn moe_experts() -> Verdict {
    in_every_tier(|cpu| {
        let layers = |layer: fn(usize, usize) -> LinearSpec| (layer(64, 32), layer(32, 64));
        for (gate_up, down) in [
            layers(|k, n| LinearSpec::float(k, n, WeightFormat::F32)),
            layers(|k, n| LinearSpec::float(k, n, WeightFormat::Bf16)),
            layers(LinearSpec::w8a8),
            layers(|k, n| LinearSpec::w8a8(k, n).with_weights(WeightFormat::Q4_0)),
        ] {
            native(cpu.grouped_supports(&gate_up), &gate_up);
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
                native(cpu.moe_supports(&spec), spec);
            }
        }
    })
}

/// Every format.
#[test]
fn moe_experts_of_integers() -> Verdict {
    in_every_tier(|cpu| {
        for format in INTEGERS {
            for weights in integer_weights() {
                let layer =
                    |k, n| LinearSpec::w8a8(k, n).with_weights(weights).with_activation_format(format);
                let [gate_up, down] = [layer(512, 256).gated(Activation::Silu), layer(256, 512)]
                    .map(|layer| layer.with_outliers(4, DType::F32));
                let network = FeedForward::new(gate_up, down);
                // Zero points do not go with weights of groups.
                if network.gate_up.check().is_ok() {
                    let spec = ExpertsSpec::new(LocalExperts::range(4, 4), 2, network.clone());
                    let spec = spec.with_shared(network);
                    native(cpu.moe_supports(&spec), spec);
                }
            }
        }
    })
}
