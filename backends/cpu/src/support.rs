//! What this backend says of specifications that it does not run.

use crate::buffer::DEVICE;
use halite_hal::Error;
use std::fmt::Debug;

pub(crate) use halite_kernels::float_only;

/// The error of a form that the contract has and this backend does not.
pub(crate) fn unsupported(operator: &'static str, form: &str, spec: &dyn Debug) -> Error {
    Error::Unsupported {
        operator,
        backend: DEVICE.to_owned(),
        reason: format!("{form} is not implemented"),
        spec: format!("{spec:?}"),
    }
}
