//! Mixture of experts, judged.

mod errors;
pub(crate) mod experts;
pub(crate) mod formats;
mod large;
mod large_weights;
pub(crate) mod layers;
pub(crate) mod permutation;
pub(crate) mod routing;

pub use large::beyond_i32;
pub use large_weights::weights_beyond_i32;

use crate::case::Group;
use halite_kernels::Backend;

/// All groups of this family.
pub(crate) fn groups<B: Backend>() -> Vec<Group<B>> {
    vec![
        Group::listed("moe", "routing", routing::edges(), routing::body),
        Group::listed("moe", "routing_groups", routing::grouped(), routing::body),
        Group::listed("moe", "routing_extremes", routing::extremes(), routing::body),
        Group::seeded("moe", "routing_random", 60, routing::random, routing::body),
        Group::listed("moe", "dispatch", permutation::edges(), permutation::dispatch),
        Group::seeded("moe", "dispatch_random", 30, permutation::random, permutation::dispatch),
        Group::listed("moe", "combine", permutation::edges(), permutation::combine),
        Group::seeded("moe", "combine_random", 30, permutation::random, permutation::combine),
        Group::listed("moe", "experts", layers::edges(), experts::body),
        Group::listed("moe", "formats", formats::cases(), experts::body),
        Group::listed("moe", "functions", layers::functions(), experts::body),
        Group::listed("moe", "local_ranges", layers::local_ranges(), experts::body),
        Group::listed("moe", "sums", layers::sums(), experts::body),
        Group::listed("moe", "supports", layers::supports(), experts::body),
        Group::seeded("moe", "random", 40, layers::random, experts::body),
        Group::bodies("moe", "errors", errors::bodies()),
    ]
}
