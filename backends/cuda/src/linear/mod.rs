//! Linear layers.

pub mod int8;

use crate::compile::Program;

/// Every program of the family.
pub(crate) fn programs() -> Vec<Program> {
    int8::programs()
}
