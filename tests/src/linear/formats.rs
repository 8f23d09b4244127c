//! Every format of integers, F16 and BF16 activations, outlier columns, integer outputs.

use super::{Case, FLOAT_WEIGHTS, FLOATS, FUNCTIONS};
use crate::poison::LAYOUTS;
use halite_kernels::{
    DType,
    activation::Activation,
    linear::{ActivationFormat, LinearSpec, OutputScale, WeightFormat},
};

const ACTIVATIONS: [ActivationFormat; 8] = [
    ActivationFormat::Int8PerToken,
    ActivationFormat::Int8PerTensor,
    ActivationFormat::Int8PerGroup { group_size: 32 },
    ActivationFormat::Int8PerGroup { group_size: 128 },
    ActivationFormat::AsymmetricPerToken(DType::I8),
    ActivationFormat::AsymmetricPerToken(DType::U8),
    ActivationFormat::AsymmetricPerTensor(DType::I8),
    ActivationFormat::AsymmetricPerTensor(DType::U8),
];

/// Every format of integers but the usual one, INT8 per token with INT8 per channel.
pub(crate) fn integer_specs(k: usize, n: usize) -> Vec<LinearSpec> {
    let weights = [WeightFormat::Int8PerChannel, WeightFormat::Int8PerChannelAsymmetric];
    let of = |weights| {
        ACTIVATIONS.map(|format| LinearSpec::w8a8(k, n).with_weights(weights).with_activation_format(format))
    };
    weights.into_iter().flat_map(of).skip(1).collect()
}

pub(super) fn cases() -> Vec<Case> {
    let shapes = [
        (1, 1, 1),
        (3, 33, 17),
        (5, 64, 48),
        (13, 100, 35),
        (1, 130, 66),
        (2, 160, 33),
        (4, 288, 16),
        (7, 5, 70),
        (12, 31, 32),
    ];
    let mut cases = Vec::new();
    for (number, (rows, k, n)) in shapes.into_iter().enumerate() {
        let (layout, dtype) = (LAYOUTS[number % 3], FLOATS[number % 3]);
        for spec in integer_specs(k, n) {
            cases.extend(around(&Case { layout, ..Case::new(spec.clone(), rows) }));
            let outliers = spec.with_outliers(1 + number.min(k - 1), dtype);
            cases.push(Case { layout, ..Case::new(outliers.clone(), rows) });
            let gated = outliers.gated(FUNCTIONS[number % 3]).with_output(dtype);
            cases.push(Case { layout, bias: true, residual: true, ..Case::new(gated, rows) });
        }
        // All of the columns in float: the integers count for nothing.
        let all = LinearSpec::w8a8(k, n).with_outliers(k, dtype);
        cases.push(Case { layout, ..Case::new(all, rows) });
        for weights in FLOAT_WEIGHTS {
            for dtype in FLOATS {
                let spec = LinearSpec::float(k, n, weights).with_activations(dtype);
                cases.push(Case { layout, ..Case::new(spec, rows) });
            }
            let spec = LinearSpec::float(k, n, weights);
            cases.extend(integer_outputs(&Case { layout, ..Case::new(spec, rows) }));
        }
        let usual = Case { layout, ..Case::new(LinearSpec::w8a8(k, n), rows) };
        cases.extend(integer_outputs(&usual));
    }
    cases
}

/// A case of integers, with F32, I32, I8 and U8 outputs.
fn around(case: &Case) -> Vec<Case> {
    let mut cases = vec![case.clone()];
    let bare = case.spec.clone().with_output(DType::I32);
    if bare.check().is_ok() {
        cases.push(Case { spec: bare, ..case.clone() });
    }
    cases.extend(integer_outputs(case));
    cases
}

/// Some results in the middle, some that saturate.
fn integer_outputs(case: &Case) -> [Case; 3] {
    let of = |output, scale: OutputScale| Case {
        spec: case.spec.clone().with_output(output),
        output_scale: Some(scale),
        bias: true,
        ..case.clone()
    };
    let mut gated = of(DType::I8, OutputScale::new(0.11).with_zero_point(-7));
    gated.spec = gated.spec.gated(Activation::GeluTanh);
    [
        of(DType::I8, OutputScale::new(0.02)),
        of(DType::U8, OutputScale::new(0.05).with_zero_point(128)),
        Case { soft_cap: Some(9.0), ..gated },
    ]
}
