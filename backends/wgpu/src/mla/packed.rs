//! Up-projections packed for this backend, as `MlaRows` has them: made, saved and restored.

use crate::{device::Wgpu, operand::Operand, stream::WgpuStream};
use halite_hal::{Error, Pending, Result, Stream, Tensor};
use halite_kernels::{
    Checked,
    mla::{MlaRows, MlaSpec, MlaWeights},
};

/// Bytes that a row is a multiple of: rows are dense.
const ALIGNMENT: usize = 1;
/// What saved weights are told apart by.
const BACKEND: &str = "wgpu";

/// Packed up-projections: a counted handle.
#[derive(Clone, Debug)]
pub struct WgpuMlaPacked {
    spec: MlaSpec,
    rows: MlaRows,
    /// Dense, of the weights' type.
    matrices: Tensor<Wgpu>,
}

impl AsRef<MlaSpec> for WgpuMlaPacked {
    fn as_ref(&self) -> &MlaSpec {
        &self.spec
    }
}

/// A matrix of every head, `[heads, k, n]`.
pub(super) struct HeadWeights {
    pub(super) matrices: Operand,
    pub(super) k: usize,
    pub(super) n: usize,
}

impl WgpuMlaPacked {
    /// `W_UK`: queries to latents.
    pub(super) fn uk(&self) -> HeadWeights {
        let matrices = Operand::tensor(&self.matrices).part(0..self.rows.uv as u64);
        HeadWeights { matrices, k: self.spec.nope_dim, n: self.spec.kv_lora_rank() }
    }

    /// `W_UV`: latents to values.
    pub(super) fn uv(&self) -> HeadWeights {
        let matrices = Operand::tensor(&self.matrices).part(self.rows.uv as u64..self.rows.len as u64);
        HeadWeights { matrices, k: self.spec.kv_lora_rank(), n: self.spec.value_head_dim }
    }
}

/// Memory for a spec's matrices, holding `bytes`.
fn upload(stream: &mut WgpuStream, spec: &MlaSpec, rows: MlaRows, bytes: &[u8]) -> Result<WgpuMlaPacked> {
    let limit = stream.device().largest_binding();
    if rows.len as u64 > limit {
        let (operator, argument, got) = ("mla", "packed bytes", rows.len as u64);
        return Err(Error::Limit { operator, argument, got, limit });
    }
    let matrices = Tensor::new(stream.device(), rows.dtype, &[rows.len / rows.dtype.size()])?;
    stream.upload(&matrices, bytes)?;
    Ok(WgpuMlaPacked { spec: spec.clone(), rows, matrices })
}

/// Packs both matrices.
pub(super) fn pack(
    stream: &mut WgpuStream,
    weights: &Checked<MlaWeights<'_>, &MlaSpec>,
) -> Result<WgpuMlaPacked> {
    let spec = *weights.context();
    let rows = MlaRows::new(spec, ALIGNMENT)?;
    upload(stream, spec, rows, &rows.pack(weights)?)
}

/// The packed bytes: header, matrices.
pub(super) fn save(stream: &mut WgpuStream, packed: &WgpuMlaPacked) -> Result<Vec<u8>> {
    let mut bytes = MlaRows::header(BACKEND, &packed.spec).into_bytes();
    bytes.extend(stream.download(&packed.matrices)?.wait()?);
    Ok(bytes)
}

/// Takes back what [`save`] gave.
pub(super) fn restore(stream: &mut WgpuStream, spec: &MlaSpec, saved: &[u8]) -> Result<WgpuMlaPacked> {
    let rows = MlaRows::new(spec, ALIGNMENT)?;
    upload(stream, spec, rows, rows.restore(BACKEND, spec, saved)?)
}
