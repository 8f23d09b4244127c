//! Cases of every format, and of what happens before.

use super::{Case, FLOATS, ROWS, Row};
use crate::poison::LAYOUTS;
use halite_kernels::{DType, linear::ActivationFormat, quantize::QuantizeSpec};

pub(super) const FORMATS: [ActivationFormat; 8] = [
    ActivationFormat::Int8PerToken,
    ActivationFormat::Int8PerTensor,
    ActivationFormat::Int8PerGroup { group_size: 32 },
    ActivationFormat::Int8PerGroup { group_size: 128 },
    ActivationFormat::AsymmetricPerToken(DType::I8),
    ActivationFormat::AsymmetricPerToken(DType::U8),
    ActivationFormat::AsymmetricPerTensor(DType::I8),
    ActivationFormat::AsymmetricPerTensor(DType::U8),
];

/// Rows that have a scale.
const FINITE: [Row; 7] =
    [Row::Spread, Row::Zeros, Row::Tiny, Row::Subnormal, Row::Huge, Row::Constant, Row::Ties];

/// Rows that stay in their type when they are divided or rotated.
pub(super) const MODERATE: [Row; 8] =
    [Row::Spread, Row::Zeros, Row::Tiny, Row::Subnormal, Row::Constant, Row::Ties, Row::Nan, Row::Infinite];

/// Every quantisation that another operator can end with, for rows of so many columns.
pub(crate) fn fused(columns: usize) -> Vec<QuantizeSpec> {
    let block = 1 << columns.trailing_zeros().min(5);
    let each = FORMATS.into_iter().flat_map(|format| {
        let spec = QuantizeSpec::new(DType::F32).with_output(format);
        let spec = if format.is_per_tensor() { spec.with_static_scales() } else { spec };
        let smoothed = spec.clone().with_smoothing();
        [
            spec.clone().with_hadamard(block),
            smoothed.clone().with_hadamard(block),
            spec.clone().with_outlier_columns(3.min(columns)),
            smoothed.clone().with_outlier_columns(1.min(columns)),
            spec,
            smoothed,
        ]
    });
    each.collect()
}

pub(super) fn formats() -> Vec<Case> {
    let mut cases = Vec::new();
    for format in FORMATS {
        for (number, columns) in [0, 1, 16, 31, 33, 64, 129, 300].into_iter().enumerate() {
            let (input, layout) = (FLOATS[number % 3], LAYOUTS[number % 3]);
            let spec = QuantizeSpec::new(input).with_output(format);
            let case = |rows: &[Row]| Case {
                spec: spec.clone(),
                rows: rows.to_vec(),
                columns,
                layout,
                seed: number as u64,
            };
            cases.extend([case(&[]), case(&[Row::Spread]), case(&FINITE), case(&ROWS)]);
            // One row of each kind: where all rows share a scale, nothing hides it.
            cases.extend(ROWS.map(|kind| case(&[kind, kind])));
            let given = spec.clone().with_static_scales();
            if given.check().is_ok() {
                cases.push(Case { spec: given, ..case(&ROWS) });
            }
        }
    }
    cases
}

pub(super) fn prepared() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, format) in FORMATS.into_iter().enumerate() {
        for (columns, block) in [(1, 1), (32, 32), (48, 16), (160, 32), (256, 256), (96, 2)] {
            let (input, layout) = (FLOATS[number % 3], LAYOUTS[columns % 3]);
            let seed = (number * 1000 + columns) as u64;
            let spec = QuantizeSpec::new(input).with_output(format);
            let finite: Vec<Row> = MODERATE.into_iter().filter(|kind| FINITE.contains(kind)).collect();
            let case = |spec: &QuantizeSpec| {
                let each = [MODERATE.to_vec(), finite.clone(), vec![Row::Spread; 5]];
                each.map(|rows| Case { spec: spec.clone(), rows, columns, layout, seed })
            };
            let smoothed = spec.clone().with_smoothing();
            cases.extend(case(&smoothed));
            cases.extend(case(&smoothed.clone().with_hadamard(block)));
            cases.extend(case(&spec.clone().with_hadamard(block)));
            for outliers in [1, 3.min(columns), columns] {
                cases.extend(case(&spec.clone().with_outlier_columns(outliers)));
                cases.extend(case(&smoothed.clone().with_outlier_columns(outliers)));
            }
        }
    }
    let large = QuantizeSpec::new(DType::F32).with_hadamard(1024);
    cases.push(Case { spec: large, rows: MODERATE.to_vec(), columns: 2048, layout: LAYOUTS[0], seed: 1 });
    cases
}
