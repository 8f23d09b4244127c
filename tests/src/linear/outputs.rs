//! Integers as the output of every pair of formats, behind every epilogue: bias, activation or gate, soft-cap, I8 or U8.

use super::{Case, FLOAT_WEIGHTS, FLOATS, FUNCTIONS, group_wise, integer_specs};
use crate::poison::LAYOUTS;
use halite_kernels::{
    DType,
    linear::{ActivationFormat, LinearSpec, OutputScale},
};

/// Every pair of formats of activations and weights.
fn pairs(k: usize, n: usize) -> Vec<LinearSpec> {
    let floats = FLOAT_WEIGHTS.into_iter().chain(group_wise::integer_weights(k)).flat_map(|weights| {
        FLOATS.map(move |dtype| LinearSpec::float(k, n, weights).with_activations(dtype))
    });
    let usual = LinearSpec::w8a8(k, n);
    let groups = group_wise::specs(k, n).into_iter().filter(|spec| spec.activations.is_quantized());
    let groups = groups.flat_map(|spec| {
        let formats = [ActivationFormat::Int8PerTensor, ActivationFormat::Int8PerGroup { group_size: 64 }];
        let others = formats.map(|format| spec.clone().with_activation_format(format));
        let kept = spec.clone().with_outliers(3, DType::F32);
        [spec, kept].into_iter().chain(others)
    });
    floats
        .chain([usual])
        .chain(integer_specs(k, n))
        .chain(groups)
        .filter(|spec| spec.check().is_ok())
        .collect()
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (k, n, rows) in [(64, 17, 3), (256, 5, 2)] {
        // Blocks of 256 only in the second shape; the rest of the formats in the first.
        let pairs = pairs(k, n).into_iter().filter(|spec| (k == 256) == spec.weights.block().is_some());
        for (number, spec) in pairs.enumerate() {
            let mut add = |case: Case| {
                let number = cases.len();
                for bias in [false, true] {
                    for soft_cap in [None, Some(3.0)] {
                        cases.push(Case { bias, soft_cap, layout: LAYOUTS[number % 3], ..case.clone() });
                    }
                }
            };
            for (output, scale) in [
                (DType::I8, OutputScale::new(0.03).with_zero_point(-9)),
                (DType::U8, OutputScale::new(0.04).with_zero_point(117)),
            ] {
                let function = FUNCTIONS[number % FUNCTIONS.len()];
                let spec = spec.clone().with_output(output);
                let plain = Case { output_scale: Some(scale), ..Case::new(spec.clone(), rows) };
                add(plain.clone());
                add(Case { activation: Some(function), ..plain.clone() });
                add(Case { spec: spec.gated(function), ..plain });
            }
        }
    }
    cases
}
