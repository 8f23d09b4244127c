//! Filling panels with weights; [`layout`](super::layout) has where everything lies.

use super::layout::{Layout, PANEL, UNIT, has_kept, has_sums, weight_row};
use halite_hal::{Error, Result};
use halite_kernels::linear::{GroupOffset, HostWeights, LinearSpec};

/// Weights on their way into panels.
pub(super) struct Packer<'a> {
    spec: &'a LinearSpec,
    layout: Layout,
    weights: HostWeights<'a>,
    outlier_columns: &'a [u32],
    outliers: &'a [f32],
    /// The integers of one channel.
    q: Vec<i8>,
}

impl<'a> Packer<'a> {
    pub(super) fn new(spec: &'a LinearSpec, layout: Layout, weights: &'a HostWeights<'a>) -> Self {
        let (outlier_columns, outliers): (&[u32], &[f32]) = match *weights {
            HostWeights::WithOutliers { columns, values, .. } => (columns, values),
            _ => (&[], &[]),
        };
        let q = if spec.weights.is_integer() { vec![0; spec.in_features] } else { Vec::new() };
        Packer { spec, layout, weights: weights.all_columns(), outlier_columns, outliers, q }
    }

    /// Fills a panel, which is all zeros.
    pub(super) fn fill(&mut self, panel: usize, to: &mut [u8]) -> Result<()> {
        for channel in 0..PANEL {
            let Some(row) = weight_row(self.spec, panel, channel) else { continue };
            let k = self.spec.in_features;
            match self.weights {
                HostWeights::F32(data) => units(bytemuck::cast_slice(row_of(data, row, k)), channel, to),
                HostWeights::F16(data) => units(bytemuck::cast_slice(row_of(data, row, k)), channel, to),
                HostWeights::Bf16(data) => units(bytemuck::cast_slice(row_of(data, row, k)), channel, to),
                _ => self.integers(row, channel, to)?,
            }
            let columns = self.outlier_columns.len();
            for (place, value) in row_of(self.outliers, row, columns).iter().enumerate() {
                let unit = self.layout.outliers + place / 4 * PANEL + channel;
                word(to, unit, place % 4, value.to_bits());
            }
        }
        if has_kept(self.spec) {
            let kept = &mut to[self.layout.kept * UNIT..];
            kept.fill(0xFF);
            self.outlier_columns.iter().for_each(|&column| kept[column as usize / 8] &= !(1 << (column % 8)));
        }
        Ok(())
    }

    fn integers(&mut self, row: usize, channel: usize, to: &mut [u8]) -> Result<()> {
        let (spec, layout, k) = (self.spec, self.layout, self.spec.in_features);
        let size = spec.weights.group_size(k).unwrap_or(k).min(k);
        let symmetric = spec.weights.offset() == GroupOffset::Symmetric;
        let mut sum = 0i32;
        for group in 0..layout.groups {
            let (start, q) = (group * size, &mut self.q[group * size..]);
            let Some(factors) = self.weights.read_group(k, row, group, q) else {
                // The shared checks have counted groups and values.
                return Err(Error::Argument {
                    operator: "linear",
                    argument: "weights",
                    expected: format!("{} groups of integers a row", layout.groups),
                    got: format!("{:?}", self.weights.format()),
                });
            };
            let q = &mut q[..size.min(k - start)];
            for &column in self.outlier_columns {
                if let Some(q) = (column as usize).checked_sub(start).and_then(|place| q.get_mut(place)) {
                    *q = factors.zero_point;
                }
            }
            sum =
                q.iter().fold(sum, |sum, &q| sum.wrapping_add(i32::from(q) - i32::from(factors.zero_point)));
            let at = group * PANEL / 4 + channel / 4;
            word(to, layout.scales + at, channel % 4, factors.scale.to_bits());
            match spec.weights.offset() {
                GroupOffset::ZeroPoint => {
                    word(to, layout.offsets + at, channel % 4, i32::from(factors.zero_point) as u32);
                }
                GroupOffset::Min => word(to, layout.offsets + at, channel % 4, factors.min.to_bits()),
                _ => {}
            }
        }
        if has_sums(spec) {
            word(to, layout.sums + channel / 4, channel % 4, sum as u32);
        }
        if !spec.weights.is_int4() {
            units(bytemuck::cast_slice(&self.q), channel, to);
            return Ok(());
        }
        let code = |q: &i8| if symmetric { q + 8 } else { *q } as u8;
        for (unit, values) in self.q.chunks(2 * UNIT).enumerate() {
            let to = &mut to[(unit * PANEL + channel) * UNIT..][..UNIT];
            for (place, value) in values.iter().enumerate() {
                to[place % UNIT] |= code(value) << (place / UNIT * 4);
            }
        }
        Ok(())
    }
}

fn row_of<T>(data: &[T], row: usize, k: usize) -> &[T] {
    &data[row * k..][..k]
}

/// A channel's bytes, as its units.
fn units(row: &[u8], channel: usize, to: &mut [u8]) {
    for (unit, bytes) in row.chunks(UNIT).enumerate() {
        to[(unit * PANEL + channel) * UNIT..][..bytes.len()].copy_from_slice(bytes);
    }
}

fn word(to: &mut [u8], unit: usize, place: usize, bits: u32) {
    to[unit * UNIT + place * 4..][..4].copy_from_slice(&bits.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_kernels::linear::{GroupOffsets, WeightFormat};

    #[test]
    fn codes_of_four_bits_lie_in_both_halves_of_bytes() {
        let format = WeightFormat::Int4PerGroup { group_size: 16, offset: GroupOffset::Symmetric };
        let spec = LinearSpec::float(33, 1, format);
        let q: Vec<i8> = (0..33).map(|k| (k % 16) as i8 - 8).collect();
        let offsets = GroupOffsets::Symmetric;
        let weights = HostWeights::Int4PerGroup { q: &q, scales: &[1.0, 2.0, 4.0], offsets, group_size: 16 };
        let layout = Layout::of(&spec).unwrap();
        let mut panel = vec![0; layout.bytes()];
        Packer::new(&spec, layout, &weights).fill(0, &mut panel).unwrap();
        // Values 3 and 19 of channel 0; 32 begins its second unit.
        assert_eq!((panel[3], panel[PANEL * UNIT], panel[UNIT]), (0x33, 0, 0));
        let scale = |group: usize| &panel[(layout.scales + group * PANEL / 4) * UNIT..][..4];
        assert_eq!((scale(0), scale(2)), (&1f32.to_le_bytes()[..], &4f32.to_le_bytes()[..]));
    }
}
