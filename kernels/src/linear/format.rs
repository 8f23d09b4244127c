//! How weights are stored.
//!
//! Integer weights stand for `w[n, k] = s[n, g] · (q[n, k] - z[n, g]) + m[n, g]`, with `g = k / group_size`. Zero points `z`
//! are integers, 0 where there are none; minima `m` are numbers, 0 where there are none. A group is `group_size` values of K
//! of one output channel; the last one is shorter where `in_features` is no multiple of it.

use super::CHECK;
use halite_hal::{DType, Result};

/// How weights are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WeightFormat {
    /// F32, as given.
    F32,
    /// F16, as given.
    F16,
    /// BF16, as given.
    Bf16,
    /// INT8, symmetric, with one F32 scale an output channel.
    Int8PerChannel,
    /// INT8 with one F32 scale and one zero point an output channel: `w = (q - zero_point) · scale`.
    Int8PerChannelAsymmetric,
    /// INT8, symmetric, with one F32 scale for all.
    Int8PerTensor,
    /// INT8, symmetric, with one F32 scale a group.
    Int8PerGroup {
        /// Values of a group: a multiple of [`GROUP_STEP`].
        group_size: usize,
    },
    /// 4 bits, with one F32 scale a group.
    Int4PerGroup {
        /// Values of a group: a multiple of [`GROUP_STEP`].
        group_size: usize,
        /// What goes with the scale.
        offset: GroupOffset,
    },
    /// 4 bits in blocks of 32 as GGUF files have them; see [`blocks`](super::blocks).
    Q4_0,
    /// 4 bits in blocks of 32 with minima; see [`blocks`](super::blocks).
    Q4_1,
    /// 4 bits in blocks of 256 with minima; see [`blocks`](super::blocks).
    Q4K,
}

/// Groups of weights are multiples of this: what vectors of every backend cut into whole pieces, and the finest groups that
/// files have. Activations are quantised here, not taken as a file has them, and keep to multiples of 32
/// ([`Int8PerGroup`](super::ActivationFormat::Int8PerGroup)).
pub const GROUP_STEP: usize = 16;

/// What a group of 4-bit weights has beside its scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GroupOffset {
    /// Nothing: `w = s · q`, `q` from -8 to 7.
    Symmetric,
    /// A zero point: `w = s · (q - z)`, `q` and `z` from 0 to 15. Integer sums are corrected by it exactly.
    ZeroPoint,
    /// A minimum in F32: `w = s · q + m`, `q` from 0 to 15.
    Min,
}

impl WeightFormat {
    /// The type of weights that are floats.
    pub fn float_type(self) -> Option<DType> {
        match self {
            WeightFormat::F32 => Some(DType::F32),
            WeightFormat::F16 => Some(DType::F16),
            WeightFormat::Bf16 => Some(DType::Bf16),
            _ => None,
        }
    }

    /// Whether weights are integers with scales.
    pub fn is_integer(self) -> bool {
        self.float_type().is_none()
    }

    /// Whether weights are INT8 whose scales do not change along K: a channel's, or one for all.
    pub fn is_channel_wise(self) -> bool {
        matches!(
            self,
            WeightFormat::Int8PerChannel
                | WeightFormat::Int8PerChannelAsymmetric
                | WeightFormat::Int8PerTensor
        )
    }

    /// Whether scales change along K.
    pub fn is_group_wise(self) -> bool {
        self.is_integer() && !self.is_channel_wise()
    }

    /// Values of K that have one scale: a group's, or all of them where a channel has one. None for floats.
    pub fn group_size(self, in_features: usize) -> Option<usize> {
        match self {
            WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 => None,
            WeightFormat::Int8PerChannel
            | WeightFormat::Int8PerChannelAsymmetric
            | WeightFormat::Int8PerTensor => Some(in_features),
            WeightFormat::Int8PerGroup { group_size } | WeightFormat::Int4PerGroup { group_size, .. } => {
                Some(group_size)
            }
            WeightFormat::Q4_0 | WeightFormat::Q4_1 | WeightFormat::Q4K => Some(32),
        }
    }

    /// What goes with the scales of groups.
    pub fn offset(self) -> GroupOffset {
        match self {
            WeightFormat::Int4PerGroup { offset, .. } => offset,
            WeightFormat::Int8PerChannelAsymmetric => GroupOffset::ZeroPoint,
            WeightFormat::Q4_1 | WeightFormat::Q4K => GroupOffset::Min,
            _ => GroupOffset::Symmetric,
        }
    }

    /// Whether an element has 4 bits.
    pub fn is_int4(self) -> bool {
        self.is_group_wise() && !matches!(self, WeightFormat::Int8PerGroup { .. })
    }

    /// Checks the group, and that blocks of a file fill a row.
    pub(super) fn check(self, in_features: usize) -> Result<()> {
        if let WeightFormat::Int8PerGroup { group_size } | WeightFormat::Int4PerGroup { group_size, .. } =
            self
        {
            let whole = group_size > 0 && group_size.is_multiple_of(GROUP_STEP);
            CHECK.that(whole, "group_size", format!("a multiple of {GROUP_STEP}"), group_size)?;
        }
        let Some(block) = self.block() else { return Ok(()) };
        CHECK.that(
            in_features.is_multiple_of(block.values),
            "in_features",
            format!("a multiple of {}, the values of a block", block.values),
            in_features,
        )
    }
}
