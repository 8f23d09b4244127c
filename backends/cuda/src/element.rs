//! Types that kernels are told at run time.

use halite_hal::DType;

/// The number that `element.cuh` knows a type by.
pub(crate) fn code(dtype: DType) -> i32 {
    match dtype {
        DType::F32 => 0,
        DType::F16 => 1,
        DType::Bf16 => 2,
        _ => 3,
    }
}
