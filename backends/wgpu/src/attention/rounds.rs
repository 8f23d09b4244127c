//! Rounds of loops: software adapters end all loops of an invocation after so many, whatever was still to do.

use super::shape;
use crate::launch::SOFTWARE_ROUNDS;
use halite_kernels::attention::{AttentionSpec, cut::RowTile};

/// How many parts a workgroup may walk there. Loops within loops count, those of a constant length do not: compilers
/// unroll them. Some more than these would do.
pub(super) fn parts_at_most(spec: &AttentionSpec, tile: RowTile) -> usize {
    let rows = shape::room(tile, spec).rows as usize;
    let (keys, values) = (spec.kv.head_dim.div_ceil(4), spec.kv.value_head_dim.div_ceil(4).max(1));
    let chains = (256 / values).clamp(1, 16);
    // Of `attend.wgsl`: scores of an invocation's positions, weights, values, and sums of the chains.
    let scores = spec.kv_split.div_ceil(256).saturating_mul(2 + keys + rows);
    let weights = 4 * spec.kv_split.div_ceil(32) + 96;
    let sums = spec.kv_split.div_ceil(chains) + rows * (2 + chains);
    (SOFTWARE_ROUNDS / scores.saturating_add(weights).saturating_add(sums)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_kernels::cache::KvSpec;

    #[test]
    fn usual_contexts_are_far_from_the_limit_and_small_parts_are_near() {
        let positions = |head_dim, kv_split| {
            let spec = AttentionSpec::causal(9, KvSpec::new(1, 3, head_dim)).with_kv_split(kv_split);
            kv_split * parts_at_most(&spec, shape::fitting(&spec, 512).unwrap())
        };
        assert!(positions(64, 256) > 40_000, "{}", positions(64, 256));
        assert!(positions(128, 256) > 40_000, "{}", positions(128, 256));
        assert!(positions(64, 16) < positions(64, 256));
    }
}
