//! Groups of integer weights, read alike whatever form they came in.

use super::{GroupOffsets, HostWeights};

/// What a group has beside its integers: `w = scale · (q - zero_point) + min`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct GroupFactors {
    /// The scale.
    pub scale: f32,
    /// 0 where there are none; from 0 to 15 of 4-bit integers, any of INT8.
    pub zero_point: i8,
    /// 0 where there are none.
    pub min: f32,
}

impl HostWeights<'_> {
    /// Reads group `group` of row `row`, whose values are `[.., in_features]`: its integers, as many as it has, to the
    /// beginning of `q`, and its factors. None for floats, where there is no such group, or where `q` is too short.
    ///
    /// It is how backends pack: scales a channel or for all come as one group of all of K.
    pub fn read_group(
        self,
        in_features: usize,
        row: usize,
        group: usize,
        q: &mut [i8],
    ) -> Option<GroupFactors> {
        let format = self.format();
        let values = format.group_size(in_features).filter(|&values| values > 0)?;
        let start = group.checked_mul(values).filter(|&start| start < in_features)?;
        let to = q.get_mut(..values.min(in_features - start))?;
        let place = row.checked_mul(in_features.div_ceil(values))?.checked_add(group)?;
        let mut copy = |from: &[i8]| -> Option<()> {
            let first = row.checked_mul(in_features)?.checked_add(start)?;
            to.copy_from_slice(from.get(first..)?.get(..to.len())?);
            Some(())
        };
        let plain = |scale| GroupFactors { scale, zero_point: 0, min: 0.0 };
        match self {
            HostWeights::F32(_) | HostWeights::F16(_) | HostWeights::Bf16(_) => None,
            HostWeights::WithOutliers { weights, .. } => weights.read_group(in_features, row, group, q),
            HostWeights::Int8PerTensor { q, scale } => copy(q).map(|()| plain(scale)),
            HostWeights::Int8PerChannel { q, scales } | HostWeights::Int8PerGroup { q, scales, .. } => {
                copy(q)?;
                Some(plain(*scales.get(place)?))
            }
            HostWeights::Int8PerChannelAsymmetric { q, scales, zero_points } => {
                copy(q)?;
                let zero_point = *zero_points.get(place)?;
                Some(GroupFactors { zero_point, ..plain(*scales.get(place)?) })
            }
            HostWeights::Int4PerGroup { q, scales, offsets, .. } => {
                copy(q)?;
                let factors = plain(*scales.get(place)?);
                Some(match offsets {
                    GroupOffsets::Symmetric => factors,
                    GroupOffsets::ZeroPoints(zeros) => {
                        // The check has found none above 15.
                        GroupFactors { zero_point: *zeros.get(place)? as i8, ..factors }
                    }
                    GroupOffsets::Mins(mins) => GroupFactors { min: *mins.get(place)?, ..factors },
                })
            }
            HostWeights::Q4_0(blocks) | HostWeights::Q4_1(blocks) | HostWeights::Q4K(blocks) => {
                let values = format.block_values(blocks, place)?;
                to.copy_from_slice(values.q.get(..to.len())?);
                Some(GroupFactors { min: values.min, ..plain(values.scale) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_cut_from_rows_and_the_last_is_short() {
        let q: Vec<i8> = (0..80).collect();
        let scales: Vec<f32> = (0..6).map(|i| i as f32).collect();
        let weights = HostWeights::Int8PerGroup { q: &q, scales: &scales, group_size: 16 };
        let mut out = [0; 16];
        let factors = weights.read_group(40, 1, 2, &mut out).unwrap();
        assert_eq!(factors, GroupFactors { scale: 5.0, zero_point: 0, min: 0.0 });
        assert_eq!(out[..8], [72, 73, 74, 75, 76, 77, 78, 79]);
        assert!(weights.read_group(40, 1, 3, &mut out).is_none(), "the row ends before it");
        assert!(weights.read_group(40, 2, 0, &mut out).is_none(), "the weights end before it");
        assert!(weights.read_group(40, 0, 0, &mut out[..15]).is_none(), "no room");
        let none = HostWeights::Int8PerGroup { q: &q, scales: &scales, group_size: 0 };
        assert!(none.read_group(40, 0, 0, &mut out).is_none(), "groups of nothing");
    }

    #[test]
    fn a_channels_scale_is_a_group_of_its_own() {
        let (q, scales) = ([1i8, 2, 3, 4, 5, 6], [0.5, 0.25]);
        let mut out = [0; 3];
        let of = |weights: HostWeights<'_>, out: &mut [i8]| weights.read_group(3, 1, 0, out).map(|f| f.scale);
        assert_eq!(of(HostWeights::Int8PerChannel { q: &q, scales: &scales }, &mut out), Some(0.25));
        assert_eq!(out, [4, 5, 6]);
        assert_eq!(of(HostWeights::Int8PerTensor { q: &q, scale: 2.0 }, &mut out), Some(2.0));
        let zeros = HostWeights::Int8PerChannelAsymmetric { q: &q, scales: &scales, zero_points: &[7, -128] };
        let factors = GroupFactors { scale: 0.25, zero_point: -128, min: 0.0 };
        assert_eq!(zeros.read_group(3, 1, 0, &mut out), Some(factors));
        assert_eq!(of(HostWeights::F32(&[0.0; 6]), &mut out), None);
    }
}
