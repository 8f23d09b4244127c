//! Bad arguments of linear layers.

mod args;
mod spec;
mod weights;

use crate::case::Shown;
use halite_kernels::Backend;

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("specs that make no sense", |_| spec::specs()),
        ("weights that do not fit", |_| weights::weights()),
        ("float arguments", args::floats),
        ("INT8 arguments", args::int8),
        ("arguments of other formats of integers", args::quantized),
        ("scales of integer outputs", args::output_scales),
        ("low-rank adapters", super::lora::errors),
    ]
}
