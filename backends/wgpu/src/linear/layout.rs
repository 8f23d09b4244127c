//! How packed weights lie in memory: one layout for every kernel, every number of rows and every adapter.
//!
//! 16 weight rows, the channels, are a panel. It has everything that its results need, so any range of panels can be cut
//! off and multiplied alone; all panels of a layer have one size. In units of 16 bytes:
//!
//! | part | units | content |
//! |---|---|---|
//! | weights | `K' · bytes / 16`, times 16 channels | unit `u` of channel `c` at `16 u + c`: successive values of K |
//! | scales | 4 a group | F32 of the 16 channels |
//! | offsets | 4 a group | zero points, I32, or minima, F32 |
//! | sums | 4 | I32 of the 16 channels: `Σ (q - zero point)` modulo 2^32 |
//! | outliers | 16 for 4 columns | as F32 weights |
//! | kept | one for 128 values of K | a bit each, 0 for outlier columns |
//!
//! K' is K filled up to a multiple of 32 with what counts for nothing. A unit of INT4 holds 32 values: byte `b` has value
//! `b` in its low half and value `b + 16` in its high half, of symmetric groups 8 more. So neighbouring invocations, a
//! channel each, read neighbouring units.
//!
//! A gated layer's panels come in pairs: 16 gates, and the 16 ups that go with them.

use halite_kernels::linear::{GroupOffset, LinearSpec, WeightFormat};

/// Channels of a panel.
pub(crate) const PANEL: usize = 16;
/// Bytes of what a channel reads at once.
pub(crate) const UNIT: usize = 16;
/// K is filled up to a multiple of this.
const FILL: usize = 32;
/// Units that have a word for each channel of a panel.
const WORDS: usize = PANEL * 4 / UNIT;

/// Where the parts of a panel begin, in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Scales along K; 0 of floats.
    pub(crate) groups: usize,
    pub(crate) scales: usize,
    pub(crate) offsets: usize,
    pub(crate) sums: usize,
    pub(crate) outliers: usize,
    pub(crate) kept: usize,
    /// Units of a panel.
    pub(crate) len: usize,
}

impl Layout {
    /// None where a panel has more bytes than can be counted.
    pub(crate) fn of(spec: &LinearSpec) -> Option<Self> {
        let k = filled(spec.in_features)?;
        let weights = units(spec.weights, k)?.checked_mul(PANEL)?;
        let groups =
            spec.weights.group_size(spec.in_features).map_or(0, |size| spec.in_features.div_ceil(size));
        let factors = groups.checked_mul(WORDS)?;
        let has_offsets = spec.weights.offset() != GroupOffset::Symmetric;
        let columns = spec.outliers.map_or(0, |outliers| outliers.columns);
        let (scales, offsets) = (weights, weights.checked_add(factors)?);
        let sums = offsets.checked_add(if has_offsets { factors } else { 0 })?;
        let outliers = sums.checked_add(if has_sums(spec) { WORDS } else { 0 })?;
        let kept = outliers.checked_add(columns.div_ceil(4).checked_mul(PANEL)?)?;
        let len = kept.checked_add(if has_kept(spec) { k.div_ceil(128) } else { 0 })?;
        len.checked_mul(UNIT)?;
        Some(Layout { groups, scales, offsets, sums, outliers, kept, len })
    }

    /// Bytes of a panel.
    pub(crate) fn bytes(&self) -> usize {
        self.len * UNIT
    }
}

/// K filled up.
pub(crate) fn filled(in_features: usize) -> Option<usize> {
    in_features.checked_next_multiple_of(FILL)
}

/// Units of a channel's weights.
fn units(format: WeightFormat, k: usize) -> Option<usize> {
    let bits: usize = match format.float_type() {
        Some(dtype) => 8 * dtype.size(),
        None if format.is_int4() => 4,
        None => 8,
    };
    // Whole units, since K is filled up.
    (k / FILL).checked_mul(FILL * bits / 8 / UNIT)
}

/// Whether sums of channels are kept: what zero points of activations are multiplied with.
pub(crate) fn has_sums(spec: &LinearSpec) -> bool {
    spec.activations.has_zero_points()
}

/// Whether it is kept which columns count: minima are multiplied with the sum of the activations of those alone.
pub(crate) fn has_kept(spec: &LinearSpec) -> bool {
    spec.outliers.is_some() && spec.weights.offset() == GroupOffset::Min
}

/// Panels that belong together: a gate's and its up's.
pub(crate) fn panels_a_result(spec: &LinearSpec) -> usize {
    if spec.gate.is_some() { 2 } else { 1 }
}

/// Panels of a layer.
pub(crate) fn panels(spec: &LinearSpec) -> Option<usize> {
    spec.out_features.div_ceil(PANEL).checked_mul(panels_a_result(spec))
}

/// The weight row of a panel's channel; none where there are no more.
pub(crate) fn weight_row(spec: &LinearSpec, panel: usize, channel: usize) -> Option<usize> {
    let pair = panels_a_result(spec);
    let result = panel / pair * PANEL + channel;
    (result < spec.out_features).then(|| result + panel % pair * spec.out_features)
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_kernels::{DType, activation::Activation, linear::ActivationFormat};

    #[test]
    fn parts_follow_one_another() {
        let spec = LinearSpec::w8a8(33, 17);
        let layout = Layout::of(&spec).unwrap();
        // 64 values of K in 4 units, 16 channels; then the scales.
        assert_eq!((layout.groups, layout.scales, layout.offsets, layout.len), (1, 64, 68, 68));
        assert_eq!(
            (panels(&spec), weight_row(&spec, 1, 0), weight_row(&spec, 1, 1)),
            (Some(2), Some(16), None)
        );
        let zeros = spec
            .with_weights(WeightFormat::Int8PerChannelAsymmetric)
            .with_activation_format(ActivationFormat::AsymmetricPerToken(DType::U8))
            .with_outliers(5, DType::F32);
        let layout = Layout::of(&zeros).unwrap();
        assert_eq!(
            (layout.offsets, layout.sums, layout.outliers, layout.kept, layout.len),
            (68, 72, 76, 108, 108)
        );
        let blocks = LinearSpec::w8a8(256, 4).with_weights(WeightFormat::Q4K).with_outliers(1, DType::F32);
        let layout = Layout::of(&blocks).unwrap();
        assert_eq!(
            (layout.scales, layout.offsets, layout.outliers, layout.kept, layout.len),
            (128, 160, 192, 208, 210)
        );
    }

    #[test]
    fn gates_and_ups_come_in_pairs() {
        let spec = LinearSpec::float(8, 20, WeightFormat::F32).gated(Activation::Silu);
        assert_eq!(panels(&spec), Some(4));
        let row = |panel, channel| weight_row(&spec, panel, channel);
        assert_eq!((row(0, 3), row(1, 3), row(2, 3), row(3, 3)), (Some(3), Some(23), Some(19), Some(39)));
        assert_eq!((row(2, 4), row(3, 4)), (None, None));
    }

    #[test]
    fn sizes_beyond_counting_are_none() {
        for spec in [
            LinearSpec::float(1 << 60, 1, WeightFormat::F32),
            LinearSpec::w8a8(8, 1).with_outliers(usize::MAX, DType::F32),
            LinearSpec::float(usize::MAX, 1, WeightFormat::Q4K),
        ] {
            assert_eq!(Layout::of(&spec), None, "{spec:?}");
        }
    }
}
