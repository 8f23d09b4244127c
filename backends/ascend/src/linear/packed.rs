//! Weights on the device, as CANN's products read them: I8 or floats, `[weight_rows, in_features]` without gaps, and behind I8 a
//! scale for each row, F32.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use halite_hal::{DType, Device, Error, Pending, Result, Tensor};
use halite_kernels::{
    Checked,
    linear::{HostWeights, LinearSpec, WeightFormat},
    saved_weights,
};

use crate::{device::Ascend, memory::AscendBuffer, stream::AscendStream, support::unsupported};

/// Scales begin at a multiple of this.
const ALIGNMENT: usize = 512;

/// A counted handle to packed weights.
#[derive(Clone)]
pub struct AscendPacked(Arc<Inner>);

struct Inner {
    spec: LinearSpec,
    place: Mutex<Place>,
}

/// Where weights lie. Those of a group's products move next to each other when they are first used so (`stack`).
#[derive(Clone)]
pub(super) struct Place {
    pub(super) buffer: AscendBuffer,
    /// In bytes from its beginning.
    pub(super) elements: u64,
    pub(super) scales: u64,
}

impl AsRef<LinearSpec> for AscendPacked {
    fn as_ref(&self) -> &LinearSpec {
        &self.0.spec
    }
}

impl fmt::Debug for AscendPacked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AscendPacked({:?})", self.0.spec)
    }
}

impl AscendPacked {
    /// `[weight_rows, in_features]`.
    pub(super) fn elements(&self) -> Result<Tensor<Ascend>> {
        let spec = &self.0.spec;
        let dims = [spec.weight_rows(), spec.in_features];
        let place = self.place();
        Tensor::from_buffer(place.buffer, place.elements, dtype(spec), &dims)
    }

    /// F32 `[weight_rows]`, of I8.
    pub(super) fn scales(&self) -> Result<Tensor<Ascend>> {
        let place = self.place();
        Tensor::from_buffer(place.buffer, place.scales, DType::F32, &[self.0.spec.weight_rows()])
    }

    /// Where they lie now.
    pub(super) fn place(&self) -> Place {
        self.0.place.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// They lie elsewhere from now on, where the same bytes are.
    pub(super) fn moved(&self, place: Place) {
        *self.0.place.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }

    fn new(spec: &LinearSpec, layout: &Layout, buffer: AscendBuffer) -> Self {
        let place = Place { buffer, elements: 0, scales: layout.scales as u64 };
        AscendPacked(Arc::new(Inner { spec: spec.clone(), place: Mutex::new(place) }))
    }
}

/// The type of weights as they lie here.
pub(super) fn dtype(spec: &LinearSpec) -> DType {
    match spec.weights {
        WeightFormat::F32 => DType::F32,
        WeightFormat::F16 => DType::F16,
        WeightFormat::Bf16 => DType::Bf16,
        _ => DType::I8,
    }
}

/// Where the parts lie, in bytes.
struct Layout {
    scales: usize,
    len: usize,
}

impl Layout {
    fn of(spec: &LinearSpec) -> Result<Self> {
        let rows = spec.weight_rows();
        let elements = rows.checked_mul(spec.in_features).and_then(|n| n.checked_mul(dtype(spec).size()));
        let scales = elements.and_then(|bytes| bytes.checked_next_multiple_of(ALIGNMENT));
        let each = if dtype(spec) == DType::I8 { 4 } else { 0 };
        let len = scales.zip(rows.checked_mul(each)).and_then(|(scales, bytes)| scales.checked_add(bytes));
        match (scales, len) {
            (Some(scales), Some(len)) if i64::try_from(len).is_ok() => Ok(Layout { scales, len }),
            _ => {
                let (got, limit) = (u64::MAX, i64::MAX as u64);
                Err(Error::Limit { operator: "linear", argument: "packed bytes", got, limit })
            }
        }
    }
}

/// What saved weights begin with: the layout's name and version, and the spec they were packed for.
fn header(spec: &LinearSpec) -> String {
    format!("halite-ascend linear v1 {spec:?}\n")
}

pub(super) fn pack(
    device: &Ascend,
    stream: &mut AscendStream,
    weights: &Checked<HostWeights<'_>, &LinearSpec>,
) -> Result<AscendPacked> {
    let spec = *weights.context();
    let layout = Layout::of(spec)?;
    let one;
    let (elements, scales): (&[u8], &[f32]) = match **weights {
        HostWeights::Int8PerChannel { q, scales } => (bytemuck::cast_slice(q), scales),
        HostWeights::Int8PerTensor { q, scale } => {
            one = vec![scale; spec.weight_rows()];
            (bytemuck::cast_slice(q), &one)
        }
        HostWeights::F32(w) => (bytemuck::cast_slice(w), &[]),
        HostWeights::F16(w) => (bytemuck::cast_slice(w), &[]),
        HostWeights::Bf16(w) => (bytemuck::cast_slice(w), &[]),
        other => {
            return Err(unsupported("linear", "only floats, and INT8 without zero points", &other.format()));
        }
    };
    let buffer = device.alloc(layout.len as u64)?;
    stream.stage(&buffer, 0, elements)?;
    stream.stage(&buffer, layout.scales as u64, bytemuck::cast_slice(scales))?;
    Ok(AscendPacked::new(spec, &layout, buffer))
}

pub(super) fn save(stream: &mut AscendStream, packed: &AscendPacked) -> Result<Vec<u8>> {
    let mut bytes = header(packed.as_ref()).into_bytes();
    let (layout, place, begin) = (Layout::of(packed.as_ref())?, packed.place(), bytes.len());
    let elements = packed.elements()?.byte_range();
    bytes.extend(stream.read(&place.buffer, elements.start, elements.end - elements.start)?.wait()?);
    bytes.resize(begin + layout.scales, 0);
    let scales = (layout.len - layout.scales) as u64;
    bytes.extend(stream.read(&place.buffer, place.scales, scales)?.wait()?);
    Ok(bytes)
}

pub(super) fn restore(
    device: &Ascend,
    stream: &mut AscendStream,
    spec: &LinearSpec,
    saved: &[u8],
) -> Result<AscendPacked> {
    let layout = Layout::of(spec)?;
    let len = layout.len as u64;
    let bytes = saved_weights("linear", &header(spec), len, saved)?;
    let buffer = device.alloc(len)?;
    stream.stage(&buffer, 0, bytes)?;
    Ok(AscendPacked::new(spec, &layout, buffer))
}
