//! Integer weights with scales along K, packed, saved and restored.

use super::{
    groups::{Factors, panel_len},
    pack::{Columns, PANEL},
};
use crate::device::Cpu;
use halite_kernels::linear::{ActivationFormat, GroupOffset, HostWeights, LinearSpec};

/// Whether weights are packed with factors a group: those that have them along K, and all integers that meet floats.
pub(super) fn is_group_wise(spec: &LinearSpec) -> bool {
    let floats = matches!(spec.activations, ActivationFormat::Float(_));
    spec.weights.is_group_wise() || floats && spec.weights.is_integer()
}

/// Groups of a channel.
fn groups(spec: &LinearSpec) -> usize {
    let group_size = spec.weights.group_size(spec.in_features).unwrap_or(spec.in_features);
    spec.in_features.div_ceil(group_size.max(1))
}

impl Cpu {
    /// Writes all panels; they are zero to begin with.
    pub(super) fn pack_groups(
        &self,
        spec: &LinearSpec,
        columns: Columns,
        weights: HostWeights<'_>,
        panels: &mut [u8],
    ) {
        let k = spec.in_features;
        let group_size = spec.weights.group_size(k).unwrap_or(k).min(k);
        let symmetric = spec.weights.offset() == GroupOffset::Symmetric;
        let write: fn(&mut [u8], usize, usize, i8) = match (spec.weights.is_int4(), symmetric) {
            (false, _) => |panel, k, lane, q| panel[k / 4 * 4 * PANEL + 4 * lane + k % 4] = q as u8 ^ 0x80,
            (true, true) => |panel, k, lane, q| write_half(panel, k, lane, q + 8),
            (true, false) => write_half,
        };
        let panels = panels.chunks_mut(panel_len(spec).unwrap_or(1).max(1)).enumerate();
        self.team().each(panels, |(panel, out)| {
            let mut q = vec![0; group_size];
            // Values that no weight fills count as 0 in sums of bytes `q + 128`.
            if !spec.weights.is_int4() {
                out.fill(128);
            }
            for lane in 0..PANEL {
                let Some(channel) = columns.channel(spec.weight_rows(), panel, lane) else { continue };
                for (index, start) in (0..k).step_by(group_size).enumerate() {
                    // The check has counted the weights.
                    if weights.read_group(k, channel, index, &mut q).is_some() {
                        let values = &q[..group_size.min(k - start)];
                        values.iter().enumerate().for_each(|(i, &q)| write(out, start + i, lane, q));
                    }
                }
            }
        });
    }
}

/// Writes a 4-bit element.
fn write_half(panel: &mut [u8], k: usize, lane: usize, q: i8) {
    panel[k / 8 * 4 * PANEL + 4 * lane + k % 4] |= (q as u8 & 0xF) << (k / 4 % 2 * 4);
}

impl Factors {
    /// How many lanes of factors all panels have; none of weights without.
    fn lanes(spec: &LinearSpec, columns: Columns) -> Option<usize> {
        if !is_group_wise(spec) {
            return Some(0);
        }
        columns.panels(spec.weight_rows()).checked_mul(groups(spec))?.checked_mul(PANEL)
    }

    /// The factors of host weights.
    pub(super) fn pack(spec: &LinearSpec, columns: Columns, weights: HostWeights<'_>) -> Self {
        let (k, groups) = (spec.in_features, groups(spec));
        let offset = spec.weights.offset();
        let lanes = Self::lanes(spec, columns).unwrap_or(0);
        let filled = |wanted: bool| if wanted { lanes } else { 0 };
        let mut factors = Factors {
            scales: vec![0.0; lanes],
            zeros: vec![0; filled(offset == GroupOffset::ZeroPoint)],
            mins: vec![0.0; filled(offset == GroupOffset::Min)],
        };
        let mut q = vec![0; spec.weights.group_size(k).unwrap_or(k).min(k)];
        for panel in 0..columns.panels(spec.weight_rows()) {
            for lane in 0..PANEL {
                let Some(channel) = columns.channel(spec.weight_rows(), panel, lane) else { continue };
                for group in 0..groups {
                    let Some(read) = weights.read_group(k, channel, group, &mut q) else { continue };
                    let place = (panel * groups + group) * PANEL + lane;
                    factors.scales[place] = read.scale;
                    factors.zeros.get_mut(place).into_iter().for_each(|zero| *zero = read.zero_point as u8);
                    factors.mins.get_mut(place).into_iter().for_each(|min| *min = read.min);
                }
            }
        }
        factors
    }

    /// Bytes of [`Factors::save`].
    pub(super) fn saved_len(spec: &LinearSpec, columns: Columns) -> Option<usize> {
        let bytes = match spec.weights.offset() {
            GroupOffset::ZeroPoint => 5,
            GroupOffset::Min => 8,
            _ => 4,
        };
        Self::lanes(spec, columns)?.checked_mul(bytes)
    }

    /// Appends all of them.
    pub(super) fn save(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(bytemuck::cast_slice(&self.scales));
        bytes.extend_from_slice(&self.zeros);
        bytes.extend_from_slice(bytemuck::cast_slice(&self.mins));
    }

    /// Takes back what [`Factors::save`] gave, as long as [`Factors::saved_len`] says; none where they are no factors.
    pub(super) fn restore(spec: &LinearSpec, columns: Columns, saved: &[u8]) -> Option<Self> {
        let lanes = Self::lanes(spec, columns)?;
        let (scales, rest) = saved.split_at_checked(lanes.checked_mul(4)?)?;
        let (zeros, mins) =
            rest.split_at_checked(if spec.weights.offset() == GroupOffset::ZeroPoint { lanes } else { 0 })?;
        let factors = Factors {
            scales: bytemuck::allocation::pod_collect_to_vec(scales),
            zeros: zeros.to_vec(),
            mins: bytemuck::allocation::pod_collect_to_vec(mins),
        };
        let finite = factors.scales.iter().chain(&factors.mins).all(|factor| factor.is_finite());
        let zeros = !spec.weights.is_int4() || factors.zeros.iter().all(|&zero| zero < 16);
        (finite && zeros).then_some(factors)
    }
}
