//! Bad arguments of the family.

mod experts;
mod permutation;
mod routing;

use crate::case::Shown;
use halite_kernels::Backend;

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("routing specs that make no sense", |_| routing::specs()),
        ("arguments of routing", routing::args),
        ("arguments of dispatch and combine", permutation::args),
        ("layers that do not fit each other", |_| experts::specs()),
        ("arguments of experts", experts::args),
        ("what rows of experts are quantised with", experts::layer_inputs),
    ]
}
