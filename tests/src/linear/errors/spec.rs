//! Layers that make no sense.

use crate::{case::Verdict, judge::refused};
use halite_kernels::{
    DType,
    activation::Activation,
    linear::{ActivationFormat, HostWeights, LinearSpec, MAX_INT8_IN_FEATURES, WeightFormat},
};

pub(super) fn specs() -> Verdict {
    let float = |k, n| LinearSpec::float(k, n, WeightFormat::F32);
    let int8 = |format| LinearSpec::w8a8(3, 2).with_activation_format(format);
    let group = |group_size| LinearSpec::w8a8(64, 2).with_weights(WeightFormat::Int8PerGroup { group_size });
    let activations = |format| group(96).with_activation_format(format);
    let mut reversed = LinearSpec::w8a8(3, 2);
    reversed.weights = WeightFormat::F32;
    let mut integers = float(3, 2);
    integers.activations = ActivationFormat::Float(DType::I32);
    for (argument, spec) in [
        ("in_features", float(0, 2)),
        ("out_features", float(3, 0)),
        ("group_size", group(0)),
        ("group_size", group(24)),
        ("in_features", float(40, 2).with_weights(WeightFormat::Q4_0)),
        ("in_features", float(128, 2).with_weights(WeightFormat::Q4K)),
        ("activations", activations(ActivationFormat::Int8PerGroup { group_size: 64 })),
        ("activations", activations(ActivationFormat::AsymmetricPerToken(DType::I8))),
        ("outliers", group(32).with_outliers(65, DType::F32)),
        ("output", group(32).with_outliers(1, DType::F32).with_output(DType::I32)),
        ("outliers", float(3, 2).with_weights(WeightFormat::Int8PerChannel).with_outliers(1, DType::F32)),
        ("output", group(32).with_output(DType::I32)),
        ("output", float(3, 2).with_weights(WeightFormat::Int8PerChannel).with_output(DType::I32)),
        ("activations", reversed),
        ("activations", integers),
        ("in_features", LinearSpec::w8a8(MAX_INT8_IN_FEATURES + 1, 2)),
        // 127 · 127 and 255 · 128 leave i32 beyond these.
        ("in_features", LinearSpec::w8a8(133_144, 2)),
        ("output", float(3, 2).with_output(DType::I32)),
        ("activations", int8(ActivationFormat::Int8PerGroup { group_size: 0 })),
        ("activations", int8(ActivationFormat::Int8PerGroup { group_size: 33 })),
        ("activations", int8(ActivationFormat::AsymmetricPerToken(DType::F32))),
        ("output", int8(ActivationFormat::Int8PerGroup { group_size: 32 }).with_output(DType::I32)),
        ("in_features", {
            let mut spec = int8(ActivationFormat::AsymmetricPerTensor(DType::I8));
            spec.in_features = 65_794;
            spec
        }),
        ("outliers", LinearSpec::w8a8(3, 2).with_outliers(0, DType::F32)),
        ("outliers", LinearSpec::w8a8(3, 2).with_outliers(4, DType::F32)),
        ("outliers", LinearSpec::w8a8(3, 2).with_outliers(1, DType::U8)),
        ("outliers", float(3, 2).with_outliers(1, DType::F32)),
        ("output", LinearSpec::w8a8(3, 2).with_outliers(1, DType::F32).with_output(DType::I32)),
        ("output", LinearSpec::w8a8(3, 2).gated(Activation::Silu).with_output(DType::I32)),
        ("weight bytes", float(usize::MAX / 2, 2)),
        ("weight bytes", float(1 << 31, 1 << 31)),
        ("weight bytes", float(3, usize::MAX).gated(Activation::Silu)),
    ] {
        refused("linear", argument, spec.check())?;
        refused("linear", argument, HostWeights::F32(&[0.0; 6]).check(&spec))?;
    }
    Ok(())
}
