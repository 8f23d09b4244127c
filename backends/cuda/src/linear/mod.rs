//! Linear layers: integers and floats by the tensor cores, all other forms by dot products.

#[cfg(all(test, feature = "interpreter"))]
mod bits_tests;
mod call;
mod dot;
#[cfg(all(test, feature = "interpreter"))]
mod fault_tests;
mod float;
mod group_wise;
mod groups;
mod int8;
mod layer;
mod lora;
mod packed;
mod product;
mod steps;
#[cfg(all(test, feature = "interpreter"))]
mod testing;
mod tile;

pub(crate) use groups::{Groups, RowGroups};
pub use lora::CudaLoraPlan;
pub use packed::CudaPacked;

use crate::compile::Program;

/// Every program of the family.
pub(crate) fn programs() -> Vec<Program> {
    [int8::programs(), group_wise::programs(), float::programs(), vec![dot::program(), groups::program()]]
        .concat()
}
