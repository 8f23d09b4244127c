//! Up-projections packed for this backend: made, saved and restored.
//!
//! Of each head in turn `W_UK [nope_dim, kv_lora_rank]` as it is, then of each head `W_UV` transposed, `[kv_lora_rank,
//! value_head_dim]`: the products' sums run over the rows of both, and neighbouring invocations have neighbouring columns.

use crate::{device::Wgpu, operand::Operand, stream::WgpuStream};
use halite_hal::{DType, Error, Pending, Result, Stream, Tensor};
use halite_kernels::{
    Checked,
    linear::HostWeights,
    mla::{MlaSpec, MlaWeights},
    saved_weights,
};

/// Packed up-projections: a counted handle.
#[derive(Clone, Debug)]
pub struct WgpuMlaPacked {
    spec: MlaSpec,
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
        let [uk, _] = elements(&self.spec);
        let matrices = Operand::tensor(&self.matrices).part(0..(uk * stored(&self.spec).size()) as u64);
        HeadWeights { matrices, k: self.spec.nope_dim, n: self.spec.kv_lora_rank() }
    }

    /// `W_UV`: latents to values.
    pub(super) fn uv(&self) -> HeadWeights {
        let ([uk, uv], size) = (elements(&self.spec), stored(&self.spec).size());
        let range = (uk * size) as u64..((uk + uv) * size) as u64;
        let matrices = Operand::tensor(&self.matrices).part(range);
        HeadWeights { matrices, k: self.spec.kv_lora_rank(), n: self.spec.value_head_dim }
    }
}

/// The type in which weights are stored: the check has found one.
fn stored(spec: &MlaSpec) -> DType {
    spec.weights.float_type().unwrap_or(DType::F32)
}

/// Elements of all heads' `W_UK` and `W_UV`: the spec's check has found them to fit.
fn elements(spec: &MlaSpec) -> [usize; 2] {
    let latents = spec.heads() * spec.kv_lora_rank();
    [latents * spec.nope_dim, latents * spec.value_head_dim]
}

/// Memory for a spec's matrices, holding `bytes`.
fn upload(stream: &mut WgpuStream, spec: &MlaSpec, bytes: &[u8]) -> Result<WgpuMlaPacked> {
    let limit = stream.device().largest_binding();
    if bytes.len() as u64 > limit {
        let (operator, argument, got) = ("mla", "packed bytes", bytes.len() as u64);
        return Err(Error::Limit { operator, argument, got, limit });
    }
    let matrices = Tensor::new(stream.device(), stored(spec), &[elements(spec).iter().sum()])?;
    stream.upload(&matrices, bytes)?;
    Ok(WgpuMlaPacked { spec: spec.clone(), matrices })
}

/// Packs both matrices.
pub(super) fn pack(
    stream: &mut WgpuStream,
    weights: &Checked<MlaWeights<'_>, &MlaSpec>,
) -> Result<WgpuMlaPacked> {
    let spec = *weights.context();
    let (uk, uv) = (bytes(&weights.w_uk)?, bytes(&weights.w_uv)?);
    let (rank, rows, size) = (spec.kv_lora_rank(), spec.value_head_dim, stored(spec).size());
    let mut packed = uk.to_vec();
    packed.reserve_exact(uv.len());
    for head in uv.chunks_exact(rows * rank * size) {
        for column in 0..rank {
            for row in 0..rows {
                packed.extend_from_slice(&head[(row * rank + column) * size..][..size]);
            }
        }
    }
    upload(stream, spec, &packed)
}

fn bytes<'a>(weights: &HostWeights<'a>) -> Result<&'a [u8]> {
    match *weights {
        HostWeights::F32(data) => Ok(bytemuck::cast_slice(data)),
        HostWeights::F16(data) => Ok(bytemuck::cast_slice(data)),
        HostWeights::Bf16(data) => Ok(bytemuck::cast_slice(data)),
        ref other => Err(crate::support::unsupported("mla", "this form of weights", other)),
    }
}

/// What saved weights begin with: the layout's name and version, and what they were packed for.
fn header(spec: &MlaSpec) -> String {
    let MlaSpec { nope_dim, value_head_dim, weights, form, .. } = spec;
    let (heads, rank, rope) = (spec.heads(), spec.kv_lora_rank(), spec.rope_dim());
    format!(
        "halite-wgpu mla rows v1 {form:?} {weights:?} heads {heads} kv_lora_rank {rank} rope_dim {rope} nope_dim \
         {nope_dim} value_head_dim {value_head_dim}\n"
    )
}

/// The packed bytes: header, matrices.
pub(super) fn save(stream: &mut WgpuStream, packed: &WgpuMlaPacked) -> Result<Vec<u8>> {
    let mut bytes = header(&packed.spec).into_bytes();
    bytes.extend(stream.download(&packed.matrices)?.wait()?);
    Ok(bytes)
}

/// Takes back what [`save`] gave.
pub(super) fn restore(stream: &mut WgpuStream, spec: &MlaSpec, saved: &[u8]) -> Result<WgpuMlaPacked> {
    let len = elements(spec).iter().sum::<usize>() * stored(spec).size();
    upload(stream, spec, saved_weights("mla", &header(spec), len as u64, saved)?)
}
