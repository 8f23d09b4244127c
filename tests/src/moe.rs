//! Mixture of experts, judged.

mod errors;
pub(crate) mod routing;

use crate::case::Group;
use halite_kernels::Backend;

/// All groups of this family.
pub fn groups<B: Backend>() -> Vec<Group<B>> {
    vec![
        Group::listed("moe", "routing", routing::edges(), routing::body),
        Group::listed("moe", "routing_groups", routing::grouped(), routing::body),
        Group::listed("moe", "routing_extremes", routing::extremes(), routing::body),
        Group::seeded("moe", "routing_random", 60, routing::random, routing::body),
        Group::bodies("moe", "errors", errors::bodies()),
    ]
}
