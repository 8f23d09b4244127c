//! Linear layers.

mod form;
mod groups;
pub mod int8;
mod layer;
mod lora;
mod packed;

pub(crate) use groups::{Groups, RowGroups};
pub use lora::CudaLoraPlan;
pub use packed::CudaPacked;

use crate::compile::Program;

/// Every program of the family.
pub(crate) fn programs() -> Vec<Program> {
    let mut programs = int8::programs();
    programs.push(layer::program());
    programs
}
