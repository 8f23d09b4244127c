//! The tensor cores' kernels against the dot products: integers the same to the last bit, rows the same in every tile.

use halite_hal::{DType, Device, Result};
use halite_kernels::{
    activation::Activation,
    linear::{ActivationFormat, GroupOffset, LinearSpec, WeightFormat},
};

use super::{dot, float, group_wise, int8, testing::Layer};
use crate::testing;

/// Rows for each tile.
const ROWS: [usize; 3] = [3, 40, 70];

pub(super) fn formats() -> Vec<LinearSpec> {
    let of = |weights, activations| {
        LinearSpec::w8a8(160, 75).with_weights(weights).with_activation_format(activations)
    };
    let int4 = |group_size, offset| WeightFormat::Int4PerGroup { group_size, offset };
    let group = |group_size| ActivationFormat::Int8PerGroup { group_size };
    let (token, channel) = (ActivationFormat::Int8PerToken, WeightFormat::Int8PerChannel);
    let zeros = WeightFormat::Int8PerChannelAsymmetric;
    vec![
        of(channel, token),
        of(WeightFormat::Int8PerTensor, ActivationFormat::Int8PerTensor),
        of(zeros, token),
        of(channel, ActivationFormat::AsymmetricPerToken(DType::I8)),
        of(zeros, ActivationFormat::AsymmetricPerToken(DType::U8)),
        of(zeros, ActivationFormat::AsymmetricPerTensor(DType::U8)),
        of(channel, group(64)),
        of(WeightFormat::Int8PerGroup { group_size: 32 }, group(64)),
        of(WeightFormat::Int8PerGroup { group_size: 128 }, token),
        of(int4(32, GroupOffset::Symmetric), token),
        of(int4(64, GroupOffset::ZeroPoint), ActivationFormat::Int8PerTensor),
        of(int4(128, GroupOffset::Min), group(32)),
        of(int4(32, GroupOffset::Min), token),
    ]
}

/// Forms of a format: as it is, gated, with columns in float, and every type of result.
pub(super) fn forms(spec: &LinearSpec) -> Vec<LinearSpec> {
    let outliers = spec.clone().with_outliers(7, DType::Bf16);
    let mut forms = vec![
        spec.clone(),
        outliers.clone().with_output(DType::F16),
        outliers.gated(Activation::GeluErf).with_output(DType::Bf16),
        spec.clone().gated(Activation::Silu).with_output(DType::U8),
        spec.clone().with_output(DType::I8),
    ];
    forms.extend(Some(spec.clone().with_output(DType::I32)).filter(|spec| spec.check().is_ok()));
    forms
}

#[test]
fn integers_have_the_bits_of_dot_products() -> Result<()> {
    let Some(cuda) = testing::cuda("integers by the tensor cores") else { return Ok(()) };
    let stream = &mut cuda.stream()?;
    for (number, format) in formats().iter().enumerate() {
        for (form, spec) in forms(format).iter().enumerate() {
            let rows = ROWS[(number + form) % ROWS.len()];
            let layer = Layer::new(&cuda, stream, spec, rows)?.soft_cap(30.0);
            let layer = if spec.gate.is_none() { layer.activation(Activation::GeluTanh) } else { layer };
            let expected = layer.run(stream, dot::run)?;
            assert!(int8::has(spec) != group_wise::has(spec), "{spec:?}");
            let got = layer.run(stream, if int8::has(spec) { int8::run } else { group_wise::run })?;
            assert!(got == expected, "{spec:?}, {rows} rows");
        }
    }
    Ok(())
}

#[test]
fn formats_that_products_of_32_columns_cannot_have_stay_with_dot_products() {
    let of = |weights, activations| {
        LinearSpec::w8a8(160, 75).with_weights(weights).with_activation_format(activations)
    };
    let (token, group) = (ActivationFormat::Int8PerToken, ActivationFormat::Int8PerGroup { group_size: 32 });
    for spec in [
        of(WeightFormat::Int8PerGroup { group_size: 48 }, token),
        of(WeightFormat::Int8PerChannelAsymmetric, group),
        of(WeightFormat::Bf16, ActivationFormat::Float(DType::F16)),
        of(WeightFormat::F32, ActivationFormat::Float(DType::F32)),
    ] {
        assert!(!int8::has(&spec) && !group_wise::has(&spec) && float::has(&spec).is_none(), "{spec:?}");
    }
    // One group of all columns changes nothing within.
    assert!(group_wise::has(
        &LinearSpec::w8a8(40, 1).with_weights(WeightFormat::Int8PerGroup { group_size: 48 })
    ));
}

#[test]
fn a_row_of_floats_has_the_same_bits_in_every_tile() -> Result<()> {
    let Some(cuda) = testing::cuda("floats by the tensor cores") else { return Ok(()) };
    let stream = &mut cuda.stream()?;
    for (weights, dtype) in [(WeightFormat::F16, DType::F16), (WeightFormat::Bf16, DType::Bf16)] {
        let spec = LinearSpec::float(200, 70, weights).with_activations(dtype);
        assert_eq!(float::has(&spec), Some(dtype));
        let mut layer = Layer::new(&cuda, stream, &spec, ROWS[2])?;
        let mut run = |layer: &Layer| layer.run(stream, |stream, call| float::run(stream, call, dtype));
        let all = run(&layer)?;
        for rows in [ROWS[1], ROWS[0]] {
            layer = layer.first_rows(rows)?;
            let got = run(&layer)?;
            assert!(got == all[..got.len()], "{spec:?}, {rows} rows");
        }
    }
    Ok(())
}
