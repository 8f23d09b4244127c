//! Weights that do not fit their layer.

use crate::{case::Verdict, judge::refused};
use halite_kernels::{
    DType,
    linear::{HostWeights, LinearSpec, WeightFormat},
};

pub(super) fn weights() -> Verdict {
    let (float, int8) = (LinearSpec::float(3, 2, WeightFormat::F32), LinearSpec::w8a8(3, 2));
    let q = &[1i8; 6];
    let asymmetric = int8.clone().with_weights(WeightFormat::Int8PerChannelAsymmetric);
    let with_outliers = int8.clone().with_outliers(2, DType::F32);
    let plain = HostWeights::Int8PerChannel { q, scales: &[1.0; 2] };
    fn asymmetric_of(zero_points: &[i8]) -> HostWeights<'_> {
        HostWeights::Int8PerChannelAsymmetric { q: &[1; 6], scales: &[1.0; 2], zero_points }
    }
    fn with<'a>(weights: &'a HostWeights<'a>, columns: &'a [u32], values: &'a [f32]) -> HostWeights<'a> {
        HostWeights::WithOutliers { weights, columns, values }
    }
    for (argument, weights, spec) in [
        ("weights", HostWeights::F32(&[0.0; 5]), &float),
        ("weights", HostWeights::F32(&[0.0; 7]), &float),
        ("weights", HostWeights::Bf16(&[half::bf16::ZERO; 6]), &float),
        ("weights", HostWeights::F32(&[0.0; 6]), &int8),
        ("weights", HostWeights::Int8PerChannel { q: &q[..5], scales: &[1.0; 2] }, &int8),
        ("weights", HostWeights::Int8PerChannel { q, scales: &[1.0; 2] }, &float),
        ("scales", HostWeights::Int8PerChannel { q, scales: &[1.0; 3] }, &int8),
        ("scales", HostWeights::Int8PerChannel { q, scales: &[1.0, f32::NAN] }, &int8),
        ("scales", HostWeights::Int8PerChannel { q, scales: &[f32::INFINITY, 1.0] }, &int8),
        ("scales", HostWeights::Int8PerChannel { q, scales: &[-1.0, 1.0] }, &int8),
        ("scales", HostWeights::Int8PerChannel { q, scales: &[1.0, 0.0] }, &int8),
        ("weights", HostWeights::Int8PerChannel { q, scales: &[1.0; 2] }, &asymmetric),
        ("weights", asymmetric_of(&[0; 2]), &int8),
        ("zero_points", asymmetric_of(&[0; 3]), &asymmetric),
        ("weights", plain, &with_outliers),
        ("weights", with(&plain, &[0, 2], &[0.0; 4]), &int8),
        ("weights", with(&asymmetric_of(&[0; 2]), &[0, 2], &[0.0; 4]), &with_outliers),
        ("weights", with(&with(&plain, &[0, 2], &[0.0; 4]), &[0, 2], &[0.0; 4]), &with_outliers),
        ("outliers", with(&plain, &[0], &[0.0; 2]), &with_outliers),
        ("outliers", with(&plain, &[2, 0], &[0.0; 4]), &with_outliers),
        ("outliers", with(&plain, &[1, 1], &[0.0; 4]), &with_outliers),
        ("outliers", with(&plain, &[0, 3], &[0.0; 4]), &with_outliers),
        ("outliers", with(&plain, &[0, 2], &[0.0; 3]), &with_outliers),
    ] {
        refused("linear", argument, weights.check(spec))?;
    }
    Ok(())
}
