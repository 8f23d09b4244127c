//! Which kernel multiplies a format: a layer's rows and groups' rows have the same.

use halite_hal::{DType, Result};
use halite_kernels::linear::LinearSpec;

use super::{call::Call, dot, float, group_wise, int8};
use crate::launch::Launch;

/// Formats choose among arithmetics, rows only among tiles of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Product {
    Float(DType),
    Int8,
    GroupWise,
    Dot,
}

impl Product {
    pub(super) fn of(spec: &LinearSpec) -> Self {
        match float::has(spec) {
            Some(dtype) => Product::Float(dtype),
            None if int8::has(spec) => Product::Int8,
            None if group_wise::has(spec) => Product::GroupWise,
            None => Product::Dot,
        }
    }

    /// What is multiplied: the kernel's `Operands`.
    pub(super) fn operands(self, launch: Launch, call: &Call<'_>) -> Result<Launch> {
        match self {
            Product::Float(dtype) => Ok(float::operands(launch, call, dtype)),
            Product::Int8 => Ok(int8::operands(launch, call)),
            Product::GroupWise => Ok(group_wise::operands(launch, call)),
            Product::Dot => dot::operands(launch, call),
        }
    }

    /// Bits of a weight in shared memory where one of a row of `x` has 8.
    pub(super) fn w_bits(self, spec: &LinearSpec) -> usize {
        if self == Product::GroupWise { group_wise::bits(spec) } else { 8 }
    }
}
