//! Linear layers.

pub mod int8;
mod layer;
mod lora;

pub use layer::CudaPacked;
pub use lora::CudaLoraPlan;

use crate::compile::Program;

/// Every program of the family.
pub(crate) fn programs() -> Vec<Program> {
    int8::programs()
}
