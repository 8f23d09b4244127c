//! The Ascend backend, judged on the stand-in for CANN. Nothing of it has been judged on an NPU.

mod standin;

use halite_hal::{DType, Result};
use halite_kernels::{
    Support,
    activation::{Activation, ActivationOps, ActivationSpec, GateLayout, Glu},
    attention::{Attention, AttentionMergeSpec, AttentionSpec, Mask},
    cache::{KvCacheOps, KvSpec},
    collectives::{Collective, CollectiveSpec, Collectives},
    embedding::{Embedding, EmbeddingSpec, Pooling, PoolingSpec, TableFormat},
    grouped::Grouped,
    linear::{ActivationFormat, Linear, LinearSpec, WeightFormat},
    logits::{LogitOps, LogitsSpec},
    norm::{Norm, NormSpec},
    quantize::{Quantize, QuantizeSpec, RotateSpec},
    rope::{Rope, RopeSpec, RopeStyle},
    sampling::{Sampling, SamplingSpec},
    top_k::{TopK, TopKSpec},
};
use halite_parity::parity_tests;
use standin::device;

// Families that are not begun, as far as their cases take something of them for granted; cases of `attention` that take blocks
// of 4 for granted, of `rope` heads of 8 and 32, of `cache` latent caches.
parity_tests!(
    ascend,
    without [
        "attention/errors",
        "cache/errors",
        "collectives/errors",
        "collectives/mismatch",
        "collectives/sequences",
        "logits/draws",
        "logits/errors",
        "mla/errors",
        "rope/errors",
        "rope/views",
        "sampling/errors",
        "sampling/frequencies",
        "sampling/log_probs",
        "sampling/probabilities"
    ]
    if_present device().map(Some)
);

/// The plainest of each family that is not begun. Whoever writes one takes it off both lists.
#[test]
fn what_is_not_begun_is_refused() -> Result<()> {
    let ascend = device()?;
    for (family, support) in [
        ("attention's merge", ascend.attention_merge_supports(&AttentionMergeSpec::new())),
        ("latent caches", ascend.cache_supports(&KvSpec::latent(1, 32, 8))),
        ("collectives", ascend.collectives_supports(&CollectiveSpec::new(Collective::AllGather, 2))),
        ("pooling", ascend.pooling_supports(&PoolingSpec::new(Pooling::Mean))),
        ("groups of floats", ascend.grouped_supports(&LinearSpec::float(32, 32, WeightFormat::F32))),
        ("layer norms", ascend.norm_supports(&NormSpec::layer(1e-5))),
        ("logits", ascend.logits_supports(&LogitsSpec::new(32))),
        ("ReLU", ascend.activation_supports(&ActivationSpec::new(Activation::Relu))),
        ("rotations", ascend.rotate_supports(&RotateSpec::hadamard(32))),
        ("sampling", ascend.sampling_supports(&SamplingSpec::new(32))),
        ("top_k", ascend.top_k_supports(&TopKSpec::largest(1))),
    ] {
        assert!(matches!(support, Support::No(_)), "{family}: {support:?}");
    }
    Ok(())
}

/// The judge takes a refusal for an answer: this must not be one.
#[test]
fn what_is_begun_is_granted() -> Result<()> {
    let ascend = device()?;
    let glu = ActivationSpec::glu(Glu::Plain(Activation::Silu), GateLayout::Split);
    for dtype in [DType::F32, DType::F16, DType::Bf16] {
        assert_eq!(ascend.activation_supports(&glu.clone().with_dtype(dtype)), Support::Native, "{dtype}");
        assert_eq!(
            ascend.cache_supports(&KvSpec::new(1, 1, 32).with_dtype(dtype)),
            Support::Native,
            "{dtype}"
        );
        assert_eq!(ascend.norm_supports(&NormSpec::rms(1e-5).with_dtype(dtype)), Support::Native, "{dtype}");
        for function in [Activation::Silu, Activation::GeluErf, Activation::GeluTanh] {
            let spec = ActivationSpec::new(function).with_dtype(dtype);
            assert!(matches!(ascend.activation_supports(&spec), Support::Composed(_)), "{spec:?}");
            for weights in [WeightFormat::F32, WeightFormat::F16, WeightFormat::Bf16] {
                let spec = LinearSpec::float(32, 32, weights).with_output(dtype).gated(function);
                assert!(matches!(ascend.linear_supports(&spec), Support::Composed(_)), "{spec:?}");
            }
        }
        for table in [TableFormat::Float(dtype), TableFormat::Int8PerRow] {
            let spec = EmbeddingSpec::new(table).with_scale(8.0).with_output(dtype);
            assert!(matches!(ascend.embedding_supports(&spec), Support::Composed(_)), "{spec:?}");
        }
        for format in [ActivationFormat::Int8PerToken, ActivationFormat::Int8PerTensor] {
            let spec = QuantizeSpec::new(dtype).with_output(format).with_smoothing();
            assert!(matches!(ascend.quantize_supports(&spec), Support::Composed(_)), "{spec:?}");
        }
        for format in [ActivationFormat::Int8PerToken, ActivationFormat::Int8PerTensor] {
            let spec = LinearSpec::w8a8(32, 32).with_output(dtype).with_activation_format(format);
            for spec in [spec.clone(), spec.gated(Activation::Silu)] {
                assert!(matches!(ascend.linear_supports(&spec), Support::Composed(_)), "{spec:?}");
            }
        }
    }
    for spec in [LinearSpec::w8a8(32, 32), LinearSpec::w8a8(32, 32).with_output(DType::I32)] {
        assert!(matches!(ascend.grouped_supports(&spec), Support::Composed(_)), "{spec:?}");
    }
    for dtype in [DType::F16, DType::Bf16] {
        for (heads, head_dim) in [(1, 64), (64, 128), (2, 16), (8, 512)] {
            let kv = KvSpec::new(1, 1, head_dim).with_block_size(128).with_dtype(dtype);
            for mask in [Mask::Causal, Mask::Bidirectional] {
                let spec = AttentionSpec::causal(heads, kv.clone()).with_dtype(dtype).with_mask(mask);
                assert_eq!(ascend.attention_supports(&spec), Support::Native, "{spec:?}");
            }
        }
    }
    for dtype in [DType::F32, DType::F16, DType::Bf16] {
        for (head_dim, rotary_dim) in [(64, 64), (128, 128), (192, 64)] {
            let spec = RopeSpec::new(head_dim, RopeStyle::HalfSplit, 100).with_rotary_dim(rotary_dim);
            let support = ascend.rope_supports(&spec.with_dtype(dtype));
            assert!(matches!(support, Support::Composed(_)), "{head_dim}, {dtype}: {support:?}");
        }
    }
    let sums = LinearSpec::w8a8(65_535, 32).with_output(DType::I32);
    assert_eq!(ascend.linear_supports(&sums), Support::Native);
    assert_eq!(ascend.norm_supports(&NormSpec::rms(0.0).with_weight_offset(1.0)), Support::Native);
    Ok(())
}
