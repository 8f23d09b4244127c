//! Weights as the host has them.

use super::{BlockValues, CHECK, GroupOffset, LinearSpec, WeightFormat};
use crate::Checked;
use half::{bf16, f16};
use halite_hal::Result;

/// Weights on the host, row-major `[weight_rows, in_features]`; scales, zero points and minima of groups are
/// `[weight_rows, ceil(in_features / group)]`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum HostWeights<'a> {
    /// F32 elements.
    F32(&'a [f32]),
    /// F16 elements.
    F16(&'a [f16]),
    /// BF16 elements.
    Bf16(&'a [bf16]),
    /// INT8 elements with a scale a row.
    Int8PerChannel {
        /// `[weight_rows, in_features]`.
        q: &'a [i8],
        /// `[weight_rows]`.
        scales: &'a [f32],
    },
    /// INT8 elements with a scale and a zero point a row: `w = (q - zero_point) · scale`. U8 elements become these by
    /// taking 128 off both.
    Int8PerChannelAsymmetric {
        /// `[weight_rows, in_features]`.
        q: &'a [i8],
        /// `[weight_rows]`.
        scales: &'a [f32],
        /// `[weight_rows]`.
        zero_points: &'a [i8],
    },
    /// INT8 elements with one scale.
    Int8PerTensor {
        /// `[weight_rows, in_features]`.
        q: &'a [i8],
        /// Of all.
        scale: f32,
    },
    /// INT8 elements with a scale a group.
    Int8PerGroup {
        /// `[weight_rows, in_features]`.
        q: &'a [i8],
        /// One a group.
        scales: &'a [f32],
        /// Values of a group.
        group_size: usize,
    },
    /// 4-bit elements with a scale a group. Each has a byte of its own here, since files pack them in many orders.
    Int4PerGroup {
        /// `[weight_rows, in_features]`: from -8 to 7 where symmetric, else from 0 to 15.
        q: &'a [i8],
        /// One a group.
        scales: &'a [f32],
        /// What goes with the scales.
        offsets: GroupOffsets<'a>,
        /// Values of a group.
        group_size: usize,
    },
    /// Blocks of [`WeightFormat::Q4_0`].
    Q4_0(&'a [u8]),
    /// Blocks of [`WeightFormat::Q4_1`].
    Q4_1(&'a [u8]),
    /// Blocks of [`WeightFormat::Q4K`].
    Q4K(&'a [u8]),
    /// Integer weights, with some columns in float beside them.
    WithOutliers {
        /// All columns; what these have in the outlier columns does not matter, for it counts as zero.
        weights: &'a HostWeights<'a>,
        /// The outlier columns, ascending.
        columns: &'a [u32],
        /// `[weight_rows, columns]`.
        values: &'a [f32],
    },
}

/// What goes with the scales of 4-bit groups.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum GroupOffsets<'a> {
    /// Nothing.
    Symmetric,
    /// Zero points from 0 to 15, one a group.
    ZeroPoints(&'a [u8]),
    /// Minima, one a group.
    Mins(&'a [f32]),
}

impl GroupOffsets<'_> {
    fn format(self) -> GroupOffset {
        match self {
            GroupOffsets::Symmetric => GroupOffset::Symmetric,
            GroupOffsets::ZeroPoints(_) => GroupOffset::ZeroPoint,
            GroupOffsets::Mins(_) => GroupOffset::Min,
        }
    }
}

impl HostWeights<'_> {
    /// How these weights are stored, columns in float apart.
    pub fn format(self) -> WeightFormat {
        match self {
            HostWeights::F32(_) => WeightFormat::F32,
            HostWeights::F16(_) => WeightFormat::F16,
            HostWeights::Bf16(_) => WeightFormat::Bf16,
            HostWeights::Int8PerChannel { .. } => WeightFormat::Int8PerChannel,
            HostWeights::Int8PerChannelAsymmetric { .. } => WeightFormat::Int8PerChannelAsymmetric,
            HostWeights::Int8PerTensor { .. } => WeightFormat::Int8PerTensor,
            HostWeights::Int8PerGroup { group_size, .. } => WeightFormat::Int8PerGroup { group_size },
            HostWeights::Int4PerGroup { group_size, offsets, .. } => {
                WeightFormat::Int4PerGroup { group_size, offset: offsets.format() }
            }
            HostWeights::Q4_0(_) => WeightFormat::Q4_0,
            HostWeights::Q4_1(_) => WeightFormat::Q4_1,
            HostWeights::Q4K(_) => WeightFormat::Q4K,
            HostWeights::WithOutliers { weights, .. } => weights.format(),
        }
    }

    /// Checks format and sizes against the spec, and the spec itself.
    ///
    /// # Errors
    /// Another format, another number of elements, values beyond 4 bits, scales that are not finite and positive, or
    /// blocks whose numbers are not finite.
    pub fn check(self, spec: &LinearSpec) -> Result<Checked<Self, &LinearSpec>> {
        spec.check()?;
        self.check_outliers(spec)?;
        let weights = self.all_columns();
        if let HostWeights::WithOutliers { .. } = weights {
            return Err(CHECK.wrong("weights", "outliers once", "outliers of weights with outliers"));
        }
        let format = weights.format();
        CHECK.that(format == spec.weights, "weights", format!("{:?}", spec.weights), format)?;
        weights.check_elements(spec)?;
        Ok(Checked::with_context(self, spec))
    }

    /// Numbers of elements and factors, and what each may be.
    fn check_elements(self, spec: &LinearSpec) -> Result<()> {
        let (format, rows) = (spec.weights, spec.weight_rows());
        // The spec's own check bounds both products.
        let elements = rows * spec.in_features;
        let a_row = format.group_size(spec.in_features).map_or(0, |size| spec.in_features.div_ceil(size));
        let groups = rows * a_row;
        match self {
            HostWeights::F32(data) => count("weights", data.len(), elements),
            HostWeights::F16(data) => count("weights", data.len(), elements),
            HostWeights::Bf16(data) => count("weights", data.len(), elements),
            HostWeights::Int8PerChannel { q, scales } | HostWeights::Int8PerGroup { q, scales, .. } => {
                count("weights", q.len(), elements)?;
                positive(scales, groups, a_row)
            }
            HostWeights::Int8PerChannelAsymmetric { q, scales, zero_points } => {
                count("weights", q.len(), elements)?;
                positive(scales, groups, a_row)?;
                count("zero_points", zero_points.len(), rows)
            }
            HostWeights::Int8PerTensor { q, scale } => {
                count("weights", q.len(), elements)?;
                positive(&[scale], 1, 1)
            }
            HostWeights::Int4PerGroup { q, scales, offsets, .. } => {
                count("weights", q.len(), elements)?;
                positive(scales, groups, a_row)?;
                let range = if let GroupOffsets::Symmetric = offsets { -8..=7 } else { 0..=15 };
                let beyond = q.iter().find(|q| !range.contains(*q));
                CHECK.none("weights", format!("values in {range:?}"), beyond)?;
                check_offsets(offsets, groups)
            }
            HostWeights::Q4_0(blocks) | HostWeights::Q4_1(blocks) | HostWeights::Q4K(blocks) => {
                let bytes = format.block().map_or(0, |block| elements / block.values * block.bytes);
                CHECK.that(blocks.len() == bytes, "weights", format!("{bytes} bytes"), blocks.len())?;
                let finite = |values: BlockValues| values.scale.is_finite() && values.min.is_finite();
                let bad = (0..groups).find(|&group| !format.block_values(blocks, group).is_some_and(finite));
                CHECK.none("weights", "finite numbers in every block", bad)
            }
            HostWeights::WithOutliers { .. } => Ok(()),
        }
    }

    /// The weights of all columns, without what is kept in float beside them.
    pub fn all_columns(&self) -> HostWeights<'_> {
        match self {
            HostWeights::WithOutliers { weights, .. } => **weights,
            other => *other,
        }
    }

    fn check_outliers(&self, spec: &LinearSpec) -> Result<()> {
        let HostWeights::WithOutliers { columns, values, .. } = self else {
            return CHECK.that(spec.outliers.is_none(), "weights", "weights with outliers", "without");
        };
        let Some(outliers) = spec.outliers else {
            return Err(CHECK.wrong("weights", "no outliers", "outliers"));
        };
        let expected = format!("{} ascending columns below {}", outliers.columns, spec.in_features);
        let ascending = columns.windows(2).all(|pair| pair[0] < pair[1]);
        let inside = columns.last().is_some_and(|&last| (last as usize) < spec.in_features);
        let right = columns.len() == outliers.columns && ascending && inside;
        CHECK.that(right, "outliers", expected, columns)?;
        let expected = spec.weight_rows().saturating_mul(outliers.columns);
        CHECK.that(values.len() == expected, "outliers", format!("{expected} values"), values.len())
    }
}

fn check_offsets(offsets: GroupOffsets<'_>, groups: usize) -> Result<()> {
    match offsets {
        GroupOffsets::Symmetric => Ok(()),
        GroupOffsets::ZeroPoints(zeros) => {
            count("zero_points", zeros.len(), groups)?;
            let beyond = zeros.iter().find(|zero| **zero > 15);
            CHECK.none("zero_points", "values in 0..=15", beyond)
        }
        GroupOffsets::Mins(mins) => {
            count("mins", mins.len(), groups)?;
            let bad = mins.iter().find(|min| !min.is_finite());
            CHECK.none("mins", "finite minima", bad)
        }
    }
}

fn count(argument: &'static str, got: usize, expected: usize) -> Result<()> {
    CHECK.that(got == expected, argument, format!("{expected} elements"), got)
}

/// `expected` scales, `a_row` of them a row.
fn positive(scales: &[f32], expected: usize, a_row: usize) -> Result<()> {
    CHECK.that(scales.len() == expected, "scales", format!("{expected} scales"), scales.len())?;
    // Zero is left out too: zeros have a scale like any others, and 0 hides a mistake.
    match scales.iter().enumerate().find(|(_, scale)| !(scale.is_finite() && **scale > 0.0)) {
        Some((place, scale)) => {
            let got = format!("{scale} in row {}", place / a_row.max(1));
            Err(CHECK.wrong("scales", "finite, positive scales", got))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
#[path = "weights_tests.rs"]
mod tests;
