//! Up-projections packed for this backend: made, saved and restored.
//!
//! Of each head in turn the panels of `W_UK`, then of each head those of `W_UV`, as `linear` packs floats: `W_UV` and, in
//! the expanded form, `W_UK` turn latents into rows of a head; in the absorbed form `W_UKᵀ` turns queries into latents.

use crate::{
    buffer::{CpuBuffer, Reading},
    device::Cpu,
    linear::{
        float::FloatWeights,
        pack::{Columns, PANEL, float_panel_len, pack_float_panel},
    },
    simd::StoredFloat,
};
use halite_hal::{Element, Error, Result, Storage};
use halite_kernels::{
    Checked,
    linear::HostWeights,
    mla::{MlaForm, MlaSpec, MlaWeights},
    saved_weights,
};
use std::sync::Arc;

/// Packed up-projections: a counted handle.
#[derive(Clone, Debug)]
pub struct CpuMlaPacked(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    spec: MlaSpec,
    panels: CpuBuffer,
}

impl AsRef<MlaSpec> for CpuMlaPacked {
    fn as_ref(&self) -> &MlaSpec {
        &self.0.spec
    }
}

/// Which of the two.
#[derive(Clone, Copy, Debug)]
pub(super) enum Matrix {
    Uk,
    Uv,
}

/// Sizes of a head's matrix as it is packed: `n` results of `k` elements.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    k: usize,
    n: usize,
}

impl Sizes {
    fn of(spec: &MlaSpec, matrix: Matrix) -> Self {
        let (rank, nope) = (spec.kv_lora_rank(), spec.nope_dim);
        match (matrix, spec.form) {
            (Matrix::Uk, MlaForm::Absorbed) => Sizes { k: nope, n: rank },
            (Matrix::Uk, _) => Sizes { k: rank, n: nope },
            (Matrix::Uv, _) => Sizes { k: rank, n: spec.value_head_dim },
        }
    }

    /// Elements of a head's panels.
    fn len(self) -> Option<usize> {
        Columns::Plain.panels(self.n).checked_mul(PANEL)?.checked_mul(self.k)
    }
}

/// A matrix of every head, for use.
#[derive(Clone, Copy)]
pub(super) struct HeadWeights<'a, T> {
    values: &'a [T],
    sizes: Sizes,
}

impl<'a, T: StoredFloat> HeadWeights<'a, T> {
    /// One head's.
    #[inline(always)]
    pub(super) fn head(&self, head: usize) -> FloatWeights<'a, T> {
        let Sizes { k, n } = self.sizes;
        let len = Columns::Plain.panels(n) * float_panel_len(k);
        FloatWeights::new(&self.values[head * len..][..len], n, k, Columns::Plain)
    }

    /// Elements that a head's rows have before the product, and after it.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.sizes.k, self.sizes.n)
    }
}

impl CpuMlaPacked {
    /// Guards a matrix for reading.
    pub(super) fn read(&self, matrix: Matrix) -> Result<Reading<'_>> {
        let [uk, uv] = bytes(&self.0.spec)?;
        self.0.panels.read(match matrix {
            Matrix::Uk => 0..uk,
            Matrix::Uv => uk..uk + uv,
        })
    }

    /// A matrix that was guarded. `T` is the type that the spec names.
    pub(super) fn heads<'a, T: Element>(&self, matrix: Matrix, guarded: &'a [u8]) -> HeadWeights<'a, T> {
        HeadWeights { values: bytemuck::cast_slice(guarded), sizes: Sizes::of(&self.0.spec, matrix) }
    }
}

/// Bytes of all panels of `W_UK` and of `W_UV`. The spec's own check bounds the weights; filled up to whole panels they
/// may still overflow.
fn bytes(spec: &MlaSpec) -> Result<[u64; 2]> {
    let of = |matrix| {
        let heads = Sizes::of(spec, matrix).len()?.checked_mul(spec.heads())?;
        heads.checked_mul(super::stored(spec).size()).map(|bytes| bytes as u64)
    };
    let sizes = of(Matrix::Uk).zip(of(Matrix::Uv));
    let (got, limit) = (sizes.and_then(|(uk, uv)| uk.checked_add(uv)), i64::MAX as u64);
    match sizes {
        Some((uk, uv)) if got.is_some_and(|got| got <= limit) => Ok([uk, uv]),
        _ => Err(Error::Limit {
            operator: "mla",
            argument: "packed bytes",
            got: got.unwrap_or(u64::MAX),
            limit,
        }),
    }
}

/// Packs both matrices.
pub(super) fn pack(device: &Cpu, weights: &Checked<MlaWeights<'_>, &MlaSpec>) -> Result<CpuMlaPacked> {
    let spec = (*weights.context()).clone();
    let [uk, uv] = bytes(&spec)?;
    let panels = device.alloc_lasting(uk + uv)?;
    {
        let mut memory = panels.write(0..uk + uv)?;
        let (uk, uv) = memory.split_at_mut(uk as usize);
        pack_matrix(&spec, Matrix::Uk, &weights.w_uk, uk)?;
        pack_matrix(&spec, Matrix::Uv, &weights.w_uv, uv)?;
    }
    Ok(CpuMlaPacked(Arc::new(Inner { spec, panels })))
}

fn pack_matrix(spec: &MlaSpec, matrix: Matrix, weights: &HostWeights<'_>, to: &mut [u8]) -> Result<()> {
    match *weights {
        HostWeights::F32(data) => pack_heads(spec, matrix, data, bytemuck::cast_slice_mut(to)),
        HostWeights::F16(data) => pack_heads(spec, matrix, data, bytemuck::cast_slice_mut(to)),
        HostWeights::Bf16(data) => pack_heads(spec, matrix, data, bytemuck::cast_slice_mut(to)),
        ref other => return Err(crate::unsupported("mla", "this form of weights", other)),
    }
    Ok(())
}

/// `data` is `[heads, rows, kv_lora_rank]`; in the absorbed form a row of `W_UK` is a column of what is packed.
fn pack_heads<T: StoredFloat + Element>(spec: &MlaSpec, matrix: Matrix, data: &[T], to: &mut [T]) {
    let Sizes { k, n } = Sizes::of(spec, matrix);
    let transposed = matches!((matrix, spec.form), (Matrix::Uk, MlaForm::Absorbed));
    let panel = float_panel_len(k);
    let mut turned = vec![T::ZERO; if transposed { k * n } else { 0 }];
    for (head, panels) in data.chunks_exact(k * n).zip(to.chunks_exact_mut(Columns::Plain.panels(n) * panel))
    {
        for (at, row) in head.chunks_exact(n).enumerate().take(if transposed { k } else { 0 }) {
            row.iter().enumerate().for_each(|(channel, &w)| turned[channel * k + at] = w);
        }
        let head = if transposed { &turned[..] } else { head };
        for (index, panel) in panels.chunks_exact_mut(panel).enumerate() {
            let channel = |lane| {
                let channel = Columns::Plain.channel(n, index, lane)?;
                head.get(channel * k..(channel + 1) * k)
            };
            pack_float_panel(k, T::ZERO, channel, panel);
        }
    }
}

/// What saved weights begin with: the layout's name and version, and what they were packed for.
fn header(spec: &MlaSpec) -> String {
    let MlaSpec { nope_dim, value_head_dim, weights, form, .. } = spec;
    let (heads, rank, rope) = (spec.heads(), spec.kv_lora_rank(), spec.rope_dim());
    format!(
        "halite-cpu mla panels-of-{PANEL} v1 {form:?} {weights:?} heads {heads} kv_lora_rank {rank} rope_dim {rope} \
         nope_dim {nope_dim} value_head_dim {value_head_dim}\n"
    )
}

/// The packed bytes: header, panels.
pub(super) fn save(packed: &CpuMlaPacked) -> Result<Vec<u8>> {
    let mut bytes = header(&packed.0.spec).into_bytes();
    bytes.extend_from_slice(&packed.0.panels.read(0..packed.0.panels.len())?);
    Ok(bytes)
}

/// Takes back what [`save`] gave.
pub(super) fn restore(device: &Cpu, spec: &MlaSpec, saved: &[u8]) -> Result<CpuMlaPacked> {
    let [uk, uv] = bytes(spec)?;
    let rest = saved_weights("mla", &header(spec), uk + uv, saved)?;
    let panels = device.alloc_lasting(uk + uv)?;
    panels.write(0..uk + uv)?.copy_from_slice(rest);
    Ok(CpuMlaPacked(Arc::new(Inner { spec: spec.clone(), panels })))
}
