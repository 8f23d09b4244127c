//! Where scales change along K.

use halite_kernels::linear::{ActivationFormat, LinearSpec};

/// Columns that have one scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steps {
    /// Of the activations; 0 where a row has one.
    pub(super) x_group: usize,
    /// Of the weights; 1 of floats.
    pub(super) w_group: usize,
    /// Of integers times integers; 0 where no scale changes along K.
    pub(super) step: usize,
}

impl Steps {
    pub(super) fn of(spec: &LinearSpec) -> Self {
        let x_group = match spec.activations {
            ActivationFormat::Int8PerGroup { group_size } => group_size.min(spec.in_features),
            _ => 0,
        };
        let w_group = spec.weights.group_size(spec.in_features).map_or(1, |size| size.min(spec.in_features));
        // One of them is a multiple of the other, or the weights' is all of K.
        let step = match (spec.activations.is_quantized(), x_group) {
            (true, 0) if spec.weights.is_group_wise() => w_group,
            (true, x_group) if x_group > 0 => x_group.min(w_group),
            _ => 0,
        };
        Steps { x_group, w_group, step }
    }
}
