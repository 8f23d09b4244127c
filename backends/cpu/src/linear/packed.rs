//! Weights packed for this backend: made, saved and restored.

use super::pack::{Columns, PANEL, float_panel_len, int8_panel_len, pack_float_panel, pack_int8_panel};
use crate::{buffer::CpuBuffer, device::Cpu, simd::StoredFloat};
use halite_hal::{Element, Error, Result, Storage};
use halite_kernels::{
    Checked,
    linear::{HostWeights, Linear, LinearSpec, WeightFormat},
};
use std::sync::Arc;

/// Packed weights: a counted handle. One layout serves every number of rows and both tiers.
#[derive(Clone, Debug)]
pub struct CpuPacked(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    spec: LinearSpec,
    panels: CpuBuffer,
    /// `[weight_rows]` of INT8 weights; empty for others.
    scales: Vec<f32>,
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
        &self.0.scales
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
    let (k, panels) = (spec.in_features, columns(spec).panels(spec.weight_rows()));
    let channel = match spec.weights {
        WeightFormat::Int8PerChannel => k.checked_next_multiple_of(4),
        WeightFormat::F32 => k.checked_mul(4),
        _ => k.checked_mul(2),
    };
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
        let panels = CpuBuffer::alloc(panel_bytes(&spec)?)?;
        let mut scales_of = Vec::new();
        {
            let mut bytes = panels.write(0..panels.len())?;
            match **weights {
                HostWeights::F32(data) => self.pack_floats(&spec, data, bytemuck::cast_slice_mut(&mut bytes)),
                HostWeights::F16(data) => self.pack_floats(&spec, data, bytemuck::cast_slice_mut(&mut bytes)),
                HostWeights::Bf16(data) => {
                    self.pack_floats(&spec, data, bytemuck::cast_slice_mut(&mut bytes))
                }
                HostWeights::Int8PerChannel { q, scales } => {
                    self.pack_int8(&spec, q, &mut bytes);
                    scales_of = scales.to_vec();
                }
                ref other => return Err(crate::unsupported("linear", "this form of weights", other)),
            }
        }
        Ok(CpuPacked(Arc::new(Inner { spec, panels, scales: scales_of })))
    }

    fn pack_floats<T: StoredFloat + Element>(&self, spec: &LinearSpec, data: &[T], panels: &mut [T]) {
        let k = spec.in_features;
        let panels = panels.chunks_mut(float_panel_len(k)).enumerate();
        self.team().each(panels, |(panel, out)| {
            let channel = |lane| row_of(spec, data, panel, lane);
            pack_float_panel(k, T::ZERO, channel, out);
        });
    }

    fn pack_int8(&self, spec: &LinearSpec, q: &[i8], panels: &mut [u8]) {
        let k = spec.in_features;
        let panels = panels.chunks_mut(int8_panel_len(k)).enumerate();
        self.team().each(panels, |(panel, out)| {
            let channel = |lane| row_of(spec, q, panel, lane);
            pack_int8_panel(k, channel, out);
        });
    }
}

/// The weights of a lane of a panel.
fn row_of<'d, T>(spec: &LinearSpec, data: &'d [T], panel: usize, lane: usize) -> Option<&'d [T]> {
    let channel = columns(spec).channel(spec.weight_rows(), panel, lane)?;
    data.get(channel * spec.in_features..(channel + 1) * spec.in_features)
}

/// What saved weights begin with: the layout's name and version, and the spec they were packed for.
fn header(spec: &LinearSpec) -> String {
    format!("halite-cpu linear panels-of-{PANEL} v1 {spec:?}\n")
}

/// The packed bytes: header, panels, scales.
pub(super) fn save(packed: &CpuPacked) -> Result<Vec<u8>> {
    let mut bytes = header(&packed.0.spec).into_bytes();
    bytes.extend_from_slice(&packed.panels().read(0..packed.panels().len())?);
    bytes.extend_from_slice(bytemuck::cast_slice(packed.scales()));
    Ok(bytes)
}

/// Takes back what [`save`] gave.
pub(super) fn restore(device: &Cpu, spec: &LinearSpec, saved: &[u8]) -> Result<CpuPacked> {
    spec.check()?;
    device.linear_supports(spec).require("linear", device, spec)?;
    let expected = header(spec);
    let wrong = |expected: String, got: String| Error::Layout { operator: "linear", expected, got };
    let Some(rest) = saved.strip_prefix(expected.as_bytes()) else {
        let line = saved.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(&line[..line.len().min(expected.len() + 200)]).into_owned();
        return Err(wrong(expected.trim_end().to_owned(), line));
    };
    let scales = if spec.weights == WeightFormat::Int8PerChannel { spec.weight_rows() } else { 0 };
    let panels = panel_bytes(spec)?;
    let size = panels.saturating_add((scales as u64).saturating_mul(4));
    if rest.len() as u64 != size {
        return Err(wrong(format!("{size} bytes after the header"), format!("{} bytes", rest.len())));
    }
    let (from, scales) = rest.split_at(panels as usize);
    let buffer = CpuBuffer::alloc(panels)?;
    buffer.write(0..panels)?.copy_from_slice(from);
    let scales: Vec<f32> = bytemuck::allocation::pod_collect_to_vec(scales);
    if scales.iter().any(|scale| !(scale.is_finite() && *scale > 0.0)) {
        return Err(wrong("finite, positive scales".to_owned(), "others: the bytes are damaged".to_owned()));
    }
    Ok(CpuPacked(Arc::new(Inner { spec: spec.clone(), panels: buffer, scales })))
}
