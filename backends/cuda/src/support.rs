//! What this backend says of specifications that it does not run.

use std::fmt::Debug;

use halite_hal::Error;

use crate::device::NAME;

pub(crate) use halite_kernels::float_only;

/// The error of a form that the contract has and this backend does not.
pub(crate) fn unsupported(operator: &'static str, form: &str, spec: &dyn Debug) -> Error {
    Error::Unsupported {
        operator,
        backend: NAME.to_owned(),
        reason: format!("{form} is not implemented on CUDA yet"),
        spec: format!("{spec:?}"),
    }
}
