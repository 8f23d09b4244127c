//! Weights packed for this backend: made, saved and restored.

use super::{
    groups::{Factors, GroupWiseWeights, panel_len},
    pack::{
        Columns, PANEL, blank_int8_columns, float_panel_len, int8_panel_len, pack_float_panel,
        pack_int8_panel,
    },
    pack_groups::is_group_wise,
};
use crate::{buffer::CpuBuffer, device::Cpu, simd::StoredFloat};
use halite_hal::{Element, Error, Result, Storage};
use halite_kernels::{
    Checked,
    linear::{HostWeights, Linear, LinearSpec, WeightFormat},
    saved_weights,
};
use std::sync::Arc;

/// Packed weights: a counted handle. One layout serves every number of rows and every tier.
#[derive(Clone, Debug)]
pub struct CpuPacked(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    spec: LinearSpec,
    panels: CpuBuffer,
    channels: Channels,
    /// Of weights that are packed with factors a group; empty for others.
    factors: Factors,
    /// Panels of `[outlier columns][32]`.
    outliers: Vec<f32>,
    /// Ascending, below K.
    outlier_columns: Vec<u32>,
}

/// What INT8 weights that meet integers have for each of their channels; empty for others.
#[derive(Debug, Default)]
struct Channels {
    scales: Vec<f32>,
    /// Of weights that have them.
    zero_points: Vec<i32>,
    /// `Σ_k (w - zero_point)`, modulo 2^32.
    sums: Vec<i32>,
}

impl AsRef<LinearSpec> for CpuPacked {
    fn as_ref(&self) -> &LinearSpec {
        &self.0.spec
    }
}

impl CpuPacked {
    /// All panels.
    pub(super) fn panels(&self) -> &CpuBuffer {
        &self.0.panels
    }

    /// `[weight_rows]` of INT8 weights.
    pub(super) fn scales(&self) -> &[f32] {
        &self.0.channels.scales
    }

    /// `[weight_rows]` of INT8 weights that have them.
    pub(super) fn zero_points(&self) -> Option<&[i32]> {
        let zero_points = self.0.channels.zero_points.as_slice();
        (!zero_points.is_empty()).then_some(zero_points)
    }

    /// `[weight_rows]` of INT8 weights: `Σ_k (w - zero_point)`, modulo 2^32.
    pub(super) fn column_sums(&self) -> &[i32] {
        &self.0.channels.sums
    }

    /// Panels of the weights of outlier columns.
    pub(super) fn outliers(&self) -> &[f32] {
        &self.0.outliers
    }

    /// The outlier columns, ascending.
    pub(super) fn outlier_columns(&self) -> &[u32] {
        &self.0.outlier_columns
    }

    /// Weights with factors a group; `panels` are all of [`CpuPacked::panels`].
    pub(super) fn groups<'a>(&'a self, panels: &'a [u8]) -> GroupWiseWeights<'a> {
        GroupWiseWeights::new(&self.0.spec, self.columns(), panels, &self.0.factors)
    }

    /// How channels lie in panels.
    pub(super) fn columns(&self) -> Columns {
        columns(&self.0.spec)
    }
}

fn columns(spec: &LinearSpec) -> Columns {
    if spec.gate.is_some() { Columns::Gated } else { Columns::Plain }
}

/// Bytes of all panels. The spec's own check bounds the weights; filled up to whole panels they may still overflow.
fn panel_bytes(spec: &LinearSpec) -> Result<u64> {
    let k = spec.in_features;
    let channel = match spec.weights {
        WeightFormat::F32 => k.checked_mul(4),
        WeightFormat::F16 | WeightFormat::Bf16 => k.checked_mul(2),
        _ => panel_len(spec).map(|bytes| bytes / PANEL),
    };
    all_panels(spec, channel)
}

/// Values of the panels of outlier columns.
fn outlier_len(spec: &LinearSpec) -> Result<usize> {
    let columns = spec.outliers.map_or(0, |outliers| outliers.columns);
    Ok(all_panels(spec, columns.checked_mul(size_of::<f32>()))? as usize / size_of::<f32>())
}

/// Bytes of all panels with so many a channel.
fn all_panels(spec: &LinearSpec, channel: Option<usize>) -> Result<u64> {
    let panels = columns(spec).panels(spec.weight_rows());
    let bytes = channel.and_then(|bytes| bytes.checked_mul(PANEL)?.checked_mul(panels));
    let (got, limit) = (bytes.map_or(u64::MAX, |bytes| bytes as u64), i64::MAX as u64);
    if got > limit {
        return Err(Error::Limit { operator: "linear", argument: "packed bytes", got, limit });
    }
    Ok(got)
}

impl Cpu {
    pub(super) fn pack(&self, weights: &Checked<HostWeights<'_>, &LinearSpec>) -> Result<CpuPacked> {
        let spec = (*weights.context()).clone();
        self.linear_supports(&spec).require("linear", self, &spec)?;
        let panels = self.alloc_lasting(panel_bytes(&spec)?)?;
        let (outlier_columns, outlier_values): (&[u32], &[f32]) = match **weights {
            HostWeights::WithOutliers { columns, values, .. } => (columns, values),
            _ => (&[], &[]),
        };
        let (mut channels, mut factors) = (Channels::default(), Factors::default());
        {
            let mut bytes = panels.write(0..panels.len())?;
            let mut int8 = |q: &[i8], scales: &[f32], zeros: &[i8]| {
                channels = self.pack_int8(&spec, q, zeros, outlier_columns, &mut bytes);
                channels.scales = scales.to_vec();
            };
            match weights.all_columns() {
                integers if is_group_wise(&spec) => {
                    self.pack_groups(&spec, columns(&spec), integers, &mut bytes);
                    factors = Factors::pack(&spec, columns(&spec), integers);
                }
                HostWeights::Int8PerTensor { q, scale } => int8(q, &vec![scale; spec.weight_rows()], &[]),
                HostWeights::Int8PerChannel { q, scales } => int8(q, scales, &[]),
                HostWeights::Int8PerChannelAsymmetric { q, scales, zero_points } => {
                    int8(q, scales, zero_points);
                }
                HostWeights::F32(data) => {
                    self.pack_floats(&spec, spec.in_features, data, bytemuck::cast_slice_mut(&mut bytes));
                }
                HostWeights::F16(data) => {
                    self.pack_floats(&spec, spec.in_features, data, bytemuck::cast_slice_mut(&mut bytes));
                }
                HostWeights::Bf16(data) => {
                    self.pack_floats(&spec, spec.in_features, data, bytemuck::cast_slice_mut(&mut bytes));
                }
                ref other => return Err(crate::unsupported("linear", "this form of weights", other)),
            }
        }
        let mut outliers = vec![0.0; outlier_len(&spec)?];
        if !outlier_columns.is_empty() {
            self.pack_floats(&spec, outlier_columns.len(), outlier_values, &mut outliers);
        }
        let outlier_columns = outlier_columns.to_vec();
        Ok(CpuPacked(Arc::new(Inner { spec, panels, channels, factors, outliers, outlier_columns })))
    }

    /// `data` is `[weight_rows, k]`.
    fn pack_floats<T: StoredFloat + Element>(
        &self,
        spec: &LinearSpec,
        k: usize,
        data: &[T],
        panels: &mut [T],
    ) {
        let panels = panels.chunks_mut(float_panel_len(k)).enumerate();
        self.team().each(panels, |(panel, out)| {
            let channel = |lane| row_of(spec, k, data, panel, lane);
            pack_float_panel(k, T::ZERO, channel, out);
        });
    }

    /// `zeros` are each channel's zero point, or none. Outlier columns get the zero point, which counts as weight 0.
    fn pack_int8(
        &self,
        spec: &LinearSpec,
        q: &[i8],
        zeros: &[i8],
        outliers: &[u32],
        panels: &mut [u8],
    ) -> Channels {
        let k = spec.in_features;
        let panels = panels.chunks_mut(int8_panel_len(k)).enumerate();
        self.team().each(panels, |(panel, out)| {
            let channel = |lane| row_of(spec, k, q, panel, lane);
            let zero = |lane| {
                let channel = columns(spec).channel(spec.weight_rows(), panel, lane);
                channel.and_then(|channel| zeros.get(channel)).copied().unwrap_or(0)
            };
            pack_int8_panel(k, channel, out);
            blank_int8_columns(outliers, zero, out);
        });
        let sums = q.chunks_exact(k).enumerate().map(|(channel, row)| {
            let zero = i32::from(zeros.get(channel).copied().unwrap_or(0));
            let sum = |values: i32, &q: &i8| values.wrapping_add(i32::from(q) - zero);
            let blanked = outliers.iter().filter_map(|&column| row.get(column as usize));
            row.iter().fold(0, sum).wrapping_sub(blanked.fold(0, sum))
        });
        let zero_points = zeros.iter().map(|&zero| i32::from(zero)).collect();
        Channels { scales: Vec::new(), zero_points, sums: sums.collect() }
    }
}

/// The weights of a lane of a panel, of `[weight_rows, k]`.
fn row_of<'d, T>(spec: &LinearSpec, k: usize, data: &'d [T], panel: usize, lane: usize) -> Option<&'d [T]> {
    let channel = columns(spec).channel(spec.weight_rows(), panel, lane)?;
    data.get(channel * k..(channel + 1) * k)
}

/// What saved weights begin with: the layout's name and version, and the spec they were packed for.
fn header(spec: &LinearSpec) -> String {
    format!("halite-cpu linear panels-of-{PANEL} v2 {spec:?}\n")
}

/// The packed bytes: header, panels, what channels and groups have, outliers and their columns.
pub(super) fn save(packed: &CpuPacked) -> Result<Vec<u8>> {
    let mut bytes = header(&packed.0.spec).into_bytes();
    bytes.extend_from_slice(&packed.panels().read(0..packed.panels().len())?);
    let Channels { scales, zero_points, sums } = &packed.0.channels;
    bytes.extend_from_slice(bytemuck::cast_slice(scales));
    bytes.extend_from_slice(bytemuck::cast_slice(zero_points));
    bytes.extend_from_slice(bytemuck::cast_slice(sums));
    packed.0.factors.save(&mut bytes);
    bytes.extend_from_slice(bytemuck::cast_slice(packed.outliers()));
    bytes.extend_from_slice(bytemuck::cast_slice(packed.outlier_columns()));
    Ok(bytes)
}

/// Takes back what [`save`] gave.
pub(super) fn restore(device: &Cpu, spec: &LinearSpec, saved: &[u8]) -> Result<CpuPacked> {
    spec.check()?;
    device.linear_supports(spec).require("linear", device, spec)?;
    let channels =
        if spec.weights.is_channel_wise() && !is_group_wise(spec) { spec.weight_rows() } else { 0 };
    let zeros = if spec.weights == WeightFormat::Int8PerChannelAsymmetric { channels } else { 0 };
    let panels = panel_bytes(spec)?;
    let (outliers, outlier_columns) =
        (outlier_len(spec)?, spec.outliers.map_or(0, |outliers| outliers.columns));
    let words = [channels, zeros, channels, outliers, outlier_columns];
    let factors = Factors::saved_len(spec, columns(spec)).unwrap_or(usize::MAX);
    let size = words.iter().fold(panels.saturating_add(factors as u64), |size, &words| {
        size.saturating_add((words as u64).saturating_mul(4))
    });
    let rest = saved_weights("linear", &header(spec), size, saved)?;
    let wrong = |expected: String, got: String| Error::Layout { operator: "linear", expected, got };
    let (from, rest) = rest.split_at(panels as usize);
    let buffer = device.alloc_lasting(panels)?;
    buffer.write(0..panels)?.copy_from_slice(from);
    let (scales, rest) = rest.split_at(4 * channels);
    let (zero_points, rest) = rest.split_at(4 * zeros);
    let (sums, rest) = rest.split_at(4 * channels);
    let (factors, rest) = rest.split_at(factors);
    let (outliers, outlier_columns) = rest.split_at(4 * outliers);
    let channels = Channels {
        scales: bytemuck::allocation::pod_collect_to_vec(scales),
        zero_points: bytemuck::allocation::pod_collect_to_vec(zero_points),
        sums: bytemuck::allocation::pod_collect_to_vec(sums),
    };
    let factors = Factors::restore(spec, columns(spec), factors);
    let positive = channels.scales.iter().all(|scale| scale.is_finite() && *scale > 0.0);
    let (Some(factors), true) = (factors, positive) else {
        return Err(wrong("finite, positive scales".to_owned(), "others: the bytes are damaged".to_owned()));
    };
    let outliers = bytemuck::allocation::pod_collect_to_vec(outliers);
    let outlier_columns: Vec<u32> = bytemuck::allocation::pod_collect_to_vec(outlier_columns);
    let ascending = outlier_columns.windows(2).all(|pair| pair[0] < pair[1]);
    if !ascending || outlier_columns.last().is_some_and(|&last| last as usize >= spec.in_features) {
        return Err(wrong(
            "ascending outlier columns".to_owned(),
            "others: the bytes are damaged".to_owned(),
        ));
    }
    let spec = spec.clone();
    Ok(CpuPacked(Arc::new(Inner { spec, panels: buffer, channels, factors, outliers, outlier_columns })))
}
