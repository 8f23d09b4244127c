//! Which quantisation.

use super::CHECK;
use crate::{check::Check, linear::ActivationFormat};
use halite_hal::{DType, Result};

/// The largest block of a rotation.
pub const MAX_ROTATION_BLOCK: usize = 8192;

/// Where scales and zero points come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScaleSource {
    /// From the values: the operator writes them.
    #[default]
    Dynamic,
    /// Given, from calibration: the operator reads them. For formats with one scale for all rows.
    Static,
}

/// What columns are divided by before they are quantised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Smoothing {
    /// Nothing.
    #[default]
    None,
    /// A factor a column (SmoothQuant).
    PerColumn,
}

/// What rows are multiplied with before they are quantised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rotation {
    /// Nothing.
    #[default]
    None,
    /// Each block of columns with a normalised Walsh-Hadamard matrix (QuaRot).
    Hadamard {
        /// Columns of a block: a power of two that divides the columns.
        block: usize,
    },
}

/// From which type to which format, and what happens before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct QuantizeSpec {
    /// Type of the input.
    pub input: DType,
    /// Format of the result: one of integers.
    pub output: ActivationFormat,
    /// Where scales and zero points come from.
    pub scales: ScaleSource,
    /// What columns are divided by first.
    pub smoothing: Smoothing,
    /// What rows are multiplied with then.
    pub rotation: Rotation,
    /// Columns that are kept in float: they take no part in the scale, and are 0 in the integers. None for 0.
    pub outlier_columns: usize,
}

impl QuantizeSpec {
    /// From F32 to INT8 per token, what most callers that quantise in the same pass as something else want.
    pub const INT8_PER_TOKEN: QuantizeSpec = QuantizeSpec::new(DType::F32);

    /// From `input` to INT8 per token.
    pub const fn new(input: DType) -> Self {
        QuantizeSpec {
            input,
            output: ActivationFormat::Int8PerToken,
            scales: ScaleSource::Dynamic,
            smoothing: Smoothing::None,
            rotation: Rotation::None,
            outlier_columns: 0,
        }
    }

    /// To another format of integers.
    pub fn with_output(mut self, output: ActivationFormat) -> Self {
        self.output = output;
        self
    }

    /// With scales, and zero points where the format has them, that are given.
    pub fn with_static_scales(mut self) -> Self {
        self.scales = ScaleSource::Static;
        self
    }

    /// With a factor a column that divides it.
    pub fn with_smoothing(mut self) -> Self {
        self.smoothing = Smoothing::PerColumn;
        self
    }

    /// With blocks of so many columns rotated.
    pub fn with_hadamard(mut self, block: usize) -> Self {
        self.rotation = Rotation::Hadamard { block };
        self
    }

    /// With so many columns kept in float.
    pub fn with_outlier_columns(mut self, columns: usize) -> Self {
        self.outlier_columns = columns;
        self
    }

    /// Whether one scale is found for all rows, which is known after the last of them.
    pub fn finds_one_scale(&self) -> bool {
        self.output.is_per_tensor() && self.scales == ScaleSource::Dynamic
    }

    /// Checks that the specification makes sense.
    ///
    /// # Errors
    /// A format that is not of integers, static scales for rows that are not known yet, or a rotation of another size.
    pub fn check(&self) -> Result<()> {
        self.check_for(CHECK)
    }

    /// The same, on behalf of an operator.
    pub(super) fn check_for(&self, check: Check) -> Result<()> {
        check.that(self.output.is_quantized(), "output", "a format of integers", self.output)?;
        self.output.check(check, "output")?;
        let given = self.scales == ScaleSource::Static;
        let one = self.output.is_per_tensor();
        check.that(one || !given, "output", "one scale for all rows where it is static", self.output)?;
        if let Rotation::Hadamard { block } = self.rotation {
            check_block(check, "rotation", block)?;
            let none = self.outlier_columns == 0;
            check.that(none, "outliers", "none of rotated columns", self.outlier_columns)?;
        }
        Ok(())
    }

    /// The same for an operator that quantises its result in the same pass.
    pub(super) fn check_fused(&self, check: Check) -> Result<()> {
        self.check_for(check)?;
        let wide = self.input == DType::F32;
        check.that(wide, "input", "F32: the result is quantised before it is rounded", self.input)?;
        let instead = "a scale that is static or a row's own: one scale of all rows is known after the last of them; \
                       call `quantize` on the float result";
        check.that(!self.finds_one_scale(), "output", instead, self.output)
    }
}

/// A size that a Walsh-Hadamard matrix has.
pub(super) fn check_block(check: Check, argument: &'static str, block: usize) -> Result<()> {
    let power = block.is_power_of_two() && block <= MAX_ROTATION_BLOCK;
    check.that(power, argument, format!("a power of two up to {MAX_ROTATION_BLOCK}"), block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn one_scale_is_found_where_it_is_neither_given_nor_a_rows_own() {
        let spec = QuantizeSpec::new(DType::F32);
        assert!(!spec.finds_one_scale());
        for output in [ActivationFormat::Int8PerTensor, ActivationFormat::AsymmetricPerTensor(DType::U8)] {
            let one = spec.clone().with_output(output);
            assert!(one.finds_one_scale() && !one.with_static_scales().finds_one_scale(), "{output:?}");
        }
    }

    #[test]
    fn specs_that_make_no_sense_are_refused() {
        let spec = QuantizeSpec::new(DType::F32);
        assert!(spec.clone().with_hadamard(1).check().is_ok());
        for (bad, argument) in [
            (spec.clone().with_output(ActivationFormat::Float(DType::F32)), "output"),
            (spec.clone().with_output(ActivationFormat::Int8PerGroup { group_size: 31 }), "output"),
            (spec.clone().with_output(ActivationFormat::AsymmetricPerToken(DType::F16)), "output"),
            (spec.clone().with_static_scales(), "output"),
            (spec.clone().with_hadamard(0), "rotation"),
            (spec.clone().with_hadamard(48), "rotation"),
            (spec.clone().with_hadamard(2 * MAX_ROTATION_BLOCK), "rotation"),
            (spec.clone().with_hadamard(4).with_outlier_columns(1), "outliers"),
        ] {
            match bad.check().unwrap_err() {
                Error::Argument { argument: found, .. } => assert_eq!(found, argument, "{bad:?}"),
                other => panic!("{bad:?}: {other}"),
            }
        }
    }
}
