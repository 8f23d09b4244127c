//! Up-projections packed for this backend, as `MlaRows` has them: made, saved and restored.

use std::sync::Arc;

use halite_hal::{DType, Device, Pending, Result};
use halite_kernels::{
    Checked,
    mla::{MlaRows, MlaSpec, MlaWeights},
};

use crate::{device::Cuda, memory::CudaBuffer, stream::CudaStream};

/// Bytes that a row is a multiple of.
const ALIGNMENT: usize = 16;
/// What saved weights are told apart by.
const BACKEND: &str = "cuda";

/// Packed up-projections: a counted handle.
#[derive(Clone, Debug)]
pub struct CudaMlaPacked(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    spec: MlaSpec,
    rows: MlaRows,
    buffer: CudaBuffer,
}

impl AsRef<MlaSpec> for CudaMlaPacked {
    fn as_ref(&self) -> &MlaSpec {
        &self.0.spec
    }
}

/// A matrix of every head, `[heads, k, columns]`, of which `n` columns count.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadWeights<'a> {
    pub(super) buffer: &'a CudaBuffer,
    /// The byte at which the first head's begins.
    pub(super) at: usize,
    pub(super) dtype: DType,
    pub(super) k: usize,
    pub(super) n: usize,
    pub(super) columns: usize,
}

impl CudaMlaPacked {
    /// `W_UK`: queries to latents.
    pub(super) fn uk(&self) -> HeadWeights<'_> {
        let Inner { spec, rows, buffer } = &*self.0;
        let (k, n) = (spec.nope_dim, spec.kv_lora_rank());
        HeadWeights { buffer, at: 0, dtype: rows.dtype, k, n, columns: rows.uk_columns }
    }

    /// `W_UV`: latents to values.
    pub(super) fn uv(&self) -> HeadWeights<'_> {
        let Inner { spec, rows, buffer } = &*self.0;
        let (k, n) = (spec.kv_lora_rank(), spec.value_head_dim);
        HeadWeights { buffer, at: rows.uv, dtype: rows.dtype, k, n, columns: rows.uv_columns }
    }
}

/// Packs both matrices.
pub(super) fn pack(
    device: &Cuda,
    stream: &mut CudaStream,
    weights: &Checked<MlaWeights<'_>, &MlaSpec>,
) -> Result<CudaMlaPacked> {
    let spec = *weights.context();
    let rows = MlaRows::new(spec, ALIGNMENT)?;
    upload(device, stream, spec, rows, &rows.pack(weights)?)
}

fn upload(
    device: &Cuda,
    stream: &mut CudaStream,
    spec: &MlaSpec,
    rows: MlaRows,
    bytes: &[u8],
) -> Result<CudaMlaPacked> {
    let buffer = device.alloc(rows.len as u64)?;
    stream.stage(&buffer, 0, bytes)?;
    Ok(CudaMlaPacked(Arc::new(Inner { spec: spec.clone(), rows, buffer })))
}

/// The packed bytes: header, matrices.
pub(super) fn save(stream: &mut CudaStream, packed: &CudaMlaPacked) -> Result<Vec<u8>> {
    let Inner { spec, rows, buffer } = &*packed.0;
    let mut bytes = MlaRows::header(BACKEND, spec).into_bytes();
    bytes.extend(stream.read(buffer, 0, rows.len as u64)?.wait()?);
    Ok(bytes)
}

/// Takes back what [`save`] gave.
pub(super) fn restore(
    device: &Cuda,
    stream: &mut CudaStream,
    spec: &MlaSpec,
    saved: &[u8],
) -> Result<CudaMlaPacked> {
    let rows = MlaRows::new(spec, ALIGNMENT)?;
    upload(device, stream, spec, rows, rows.restore(BACKEND, spec, saved)?)
}
