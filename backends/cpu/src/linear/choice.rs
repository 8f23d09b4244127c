//! Which product a layer is, and what follows it: by the formats of its operands alone. Neither rows nor tier nor threads
//! choose between two arithmetics, so a row has the same bits whatever they are; what they do choose is the tile
//! ([`Tiling`](super::blocks::Tiling)) and how many panels a task has.

use super::pack_groups::is_group_wise;
use halite_hal::DType;
use halite_kernels::linear::{ActivationFormat, LinearSpec};

/// What multiplies float activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FloatKernel {
    /// [`FloatProduct`](super::float::FloatProduct), of weights stored as this type.
    Stored(DType),
    /// [`DequantizedProduct`](super::dequantized::DequantizedProduct): all integers, whatever their scales.
    Dequantized,
}

impl FloatKernel {
    pub(super) fn of(spec: &LinearSpec) -> Self {
        spec.weights.float_type().map_or(FloatKernel::Dequantized, FloatKernel::Stored)
    }
}

/// What multiplies quantised activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IntegerKernel {
    /// [`GroupWiseProduct`](super::group_wise::GroupWiseProduct): weights whose scales change along K.
    GroupWise,
    /// [`Int8Product`](super::int8::Int8Product), whose sums are the result.
    Sums,
    /// [`Scaled`](super::scaled::Scaled): the same sums, times their scales.
    Scaled,
}

impl IntegerKernel {
    pub(super) fn of(spec: &LinearSpec) -> Self {
        if is_group_wise(spec) {
            IntegerKernel::GroupWise
        } else if spec.output == DType::I32 {
            IntegerKernel::Sums
        } else {
            IntegerKernel::Scaled
        }
    }
}

/// What scales of activations go with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScaleKind {
    /// A row.
    Row,
    /// All rows.
    All,
    /// So many columns of a row.
    Group(usize),
}

impl ScaleKind {
    pub(super) fn of(activations: ActivationFormat) -> Self {
        match activations {
            ActivationFormat::Int8PerGroup { group_size } => ScaleKind::Group(group_size),
            ActivationFormat::Int8PerTensor | ActivationFormat::AsymmetricPerTensor(_) => ScaleKind::All,
            _ => ScaleKind::Row,
        }
    }
}

/// What follows a product that is a float.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// [`Requantize`](super::requantize::Requantize).
    Requantize,
    /// [`Finish`](super::finish::Finish), rounded to this type.
    Finish(DType),
}

impl Ending {
    pub(super) fn of(output: DType) -> Self {
        match output {
            DType::I8 | DType::U8 => Ending::Requantize,
            float => Ending::Finish(float),
        }
    }
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
