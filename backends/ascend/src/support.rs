//! What this backend says of specifications that it does not run.

use std::fmt::Debug;

use halite_hal::{DType, Error, Result};
use halite_kernels::Support;

use crate::{
    device::{Ascend, NAME},
    runtime::Operator,
};

/// Why nothing of a family runs.
const NOT_YET: &str = "the Ascend backend does not call CANN's operators for it yet";

/// The answer of a family that is not begun.
pub(crate) fn not_yet() -> Support {
    Support::No(NOT_YET.to_owned())
}

/// The error of a call of it.
pub(crate) fn refused<T>(operator: &'static str, spec: &dyn Debug) -> Result<T> {
    Err(unsupported(operator, NOT_YET, spec))
}

/// The error of a form that the contract has and this backend does not.
pub(crate) fn unsupported(operator: &'static str, reason: &str, spec: &dyn Debug) -> Error {
    let (backend, spec) = (NAME.to_owned(), format!("{spec:?}"));
    Error::Unsupported { operator, backend, reason: reason.to_owned(), spec }
}

/// The answer of what some of CANN's operators do, where this release has them all.
pub(crate) fn by(device: &Ascend, operators: &[Operator]) -> Support {
    match operators.iter().find(|operator| !device.runtime().has_operator(**operator)) {
        None => Support::Native,
        Some(missing) => Support::No(format!("this release of CANN has no {}", missing.name())),
    }
}

/// Whether CANN's operators take a floating-point type.
pub(crate) fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F16 | DType::Bf16)
}
