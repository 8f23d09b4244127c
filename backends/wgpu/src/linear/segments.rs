//! How K is cut: by the layer alone, so that a row's bits do not depend on the kernel.

use super::{layout::filled, shaders::Arithmetic};
use halite_kernels::linear::{ActivationFormat, LinearSpec};

/// Segments of K at most: invocations that share a channel where there are few rows.
const SEGMENTS: usize = 16;

/// Lengths in quads, what is multiplied at once (see [`Arithmetic::values`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segments {
    /// All of K, filled up.
    pub(super) quads: usize,
    /// A group of weights with one scale.
    pub(super) weight_group: usize,
    /// A group of activations with one scale.
    pub(super) x_group: usize,
    /// What one invocation sums where there are few rows: whole pairs of quads, and whole steps.
    pub(super) segment: usize,
}

impl Segments {
    pub(super) fn of(spec: &LinearSpec, arithmetic: Arithmetic) -> Self {
        let values = arithmetic.values();
        let k = spec.in_features;
        // A layer that was packed has a K that can be filled up.
        let quads = filled(k).unwrap_or(k) / values;
        let quads_of = |size: usize| size.div_ceil(values).clamp(1, quads);
        let weight_group = quads_of(spec.weights.group_size(k).unwrap_or(k));
        let x_group = match spec.activations {
            ActivationFormat::Int8PerGroup { group_size } => quads_of(group_size),
            _ => quads,
        };
        // One is a multiple of the other; no scale changes within the shorter.
        let step = weight_group.min(x_group);
        let whole = match arithmetic {
            Arithmetic::Steps => step * (1 + step % 2),
            _ => 2,
        };
        let segment = quads.div_ceil(SEGMENTS).next_multiple_of(whole);
        Segments { quads, weight_group, x_group, segment }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_kernels::linear::WeightFormat;

    #[test]
    fn segments_are_whole_steps_and_pairs() {
        let of = |k, group_size| {
            let spec = LinearSpec::w8a8(k, 1).with_weights(WeightFormat::Int8PerGroup { group_size });
            let segments = Segments::of(&spec, Arithmetic::Steps);
            (segments.quads, segments.weight_group, segments.segment)
        };
        assert_eq!(of(576, 32), (36, 2, 4));
        assert_eq!(of(576, 48), (36, 3, 6));
        assert_eq!(of(4096, 128), (256, 8, 16));
        assert_eq!(of(40, 48), (4, 3, 6));
        let float = Segments::of(&LinearSpec::float(576, 1, WeightFormat::F32), Arithmetic::Floats);
        assert_eq!((float.quads, float.segment), (144, 10));
    }
}
