//! Weights on the device, as CANN's products read them: I8 `[weight_rows, in_features]` without gaps, and behind them the
//! scale of the sums, F32 1.

use std::{fmt, sync::Arc};

use halite_hal::{DType, Device, Error, Result, Tensor};
use halite_kernels::{
    Checked,
    linear::{HostWeights, LinearSpec},
    saved_weights,
};

use crate::{device::Ascend, memory::AscendBuffer, stream::AscendStream};

/// The scale begins at a multiple of this.
const ALIGNMENT: usize = 512;

/// A counted handle to packed weights.
#[derive(Clone)]
pub struct AscendPacked(Arc<Inner>);

struct Inner {
    spec: LinearSpec,
    buffer: AscendBuffer,
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
    /// I8 `[weight_rows, in_features]`.
    pub(super) fn elements(&self) -> Result<Tensor<Ascend>> {
        let spec = &self.0.spec;
        let dims = [spec.weight_rows(), spec.in_features];
        Tensor::from_buffer(self.0.buffer.clone(), 0, DType::I8, &dims)
    }

    /// F32 `[1]`: 1.
    pub(super) fn one(&self) -> Result<Tensor<Ascend>> {
        Tensor::from_buffer(self.0.buffer.clone(), scale_at(&self.0.spec)? as u64, DType::F32, &[1])
    }
}

fn scale_at(spec: &LinearSpec) -> Result<usize> {
    let at =
        spec.weight_rows().checked_mul(spec.in_features).and_then(|n| n.checked_next_multiple_of(ALIGNMENT));
    let (got, limit) = (u64::MAX, i64::MAX as u64);
    at.filter(|&at| at < limit as usize).ok_or(Error::Limit {
        operator: "linear",
        argument: "packed bytes",
        got,
        limit,
    })
}

/// What saved weights begin with: the layout's name and version, and the spec they were packed for.
fn header(spec: &LinearSpec) -> String {
    format!("halite-ascend linear int8 v1 {spec:?}\n")
}

fn of_elements(
    device: &Ascend,
    stream: &mut AscendStream,
    spec: &LinearSpec,
    q: &[u8],
) -> Result<AscendPacked> {
    let at = scale_at(spec)?;
    let buffer = device.alloc((at + DType::F32.size()) as u64)?;
    stream.stage(&buffer, 0, q)?;
    stream.stage(&buffer, at as u64, &1f32.to_le_bytes())?;
    Ok(AscendPacked(Arc::new(Inner { spec: spec.clone(), buffer })))
}

pub(super) fn pack(
    device: &Ascend,
    stream: &mut AscendStream,
    weights: &Checked<HostWeights<'_>, &LinearSpec>,
) -> Result<AscendPacked> {
    let spec = *weights.context();
    match **weights {
        // Scales are for what comes after the sums.
        HostWeights::Int8PerChannel { q, .. } | HostWeights::Int8PerTensor { q, .. } => {
            of_elements(device, stream, spec, bytemuck::cast_slice(q))
        }
        other => Err(crate::support::unsupported("linear", "these weights", &other.format())),
    }
}

pub(super) fn save(stream: &mut AscendStream, packed: &AscendPacked) -> Result<Vec<u8>> {
    let spec = packed.as_ref();
    let mut bytes = header(spec).into_bytes();
    let elements = (spec.weight_rows() * spec.in_features) as u64;
    bytes.extend(halite_hal::Pending::wait(stream.read(&packed.0.buffer, 0, elements)?)?);
    Ok(bytes)
}

pub(super) fn restore(
    device: &Ascend,
    stream: &mut AscendStream,
    spec: &LinearSpec,
    saved: &[u8],
) -> Result<AscendPacked> {
    scale_at(spec)?;
    let q = saved_weights("linear", &header(spec), (spec.weight_rows() * spec.in_features) as u64, saved)?;
    of_elements(device, stream, spec, q)
}
