//! Up-projections packed as rows, for backends whose products sum over rows.

use super::{CHECK, MlaSpec, MlaWeights};
use crate::{Checked, linear::HostWeights, saved_weights};
use halite_hal::{DType, Error, Result};

/// How both up-projections lie in packed bytes: of each head in turn `W_UK [nope_dim, kv_lora_rank]` as it is, then of each
/// head `W_UV` transposed, `[kv_lora_rank, value_head_dim]`. Sums of both products run over rows, and neighbouring columns
/// are neighbours in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MlaRows {
    /// Of the elements.
    pub dtype: DType,
    /// Elements from a row of `W_UK` to the next; what is beyond `kv_lora_rank` is 0.
    pub uk_columns: usize,
    /// Elements from a row of `W_UV` to the next; what is beyond `value_head_dim` is 0.
    pub uv_columns: usize,
    /// The byte at which `W_UV` begins.
    pub uv: usize,
    /// Bytes in all.
    pub len: usize,
}

impl MlaRows {
    /// Of a spec that was checked, with rows of whole multiples of `alignment` bytes: 1, or a multiple of 4.
    ///
    /// # Errors
    /// Weights that are no floats, or more bytes than 2^63.
    pub fn new(spec: &MlaSpec, alignment: usize) -> Result<Self> {
        let Some(dtype) = spec.weights.float_type() else {
            return Err(CHECK.wrong("weights", "F32, F16 or BF16", format!("{:?}", spec.weights)));
        };
        let (got, limit) = (u64::MAX, i64::MAX as u64);
        let too_many = Error::Limit { operator: "mla", argument: "packed bytes", got, limit };
        MlaRows::of(spec, dtype, alignment).ok_or(too_many)
    }

    /// None where there are more bytes than can be counted.
    fn of(spec: &MlaSpec, dtype: DType, alignment: usize) -> Option<Self> {
        let size = dtype.size();
        let row = |n: usize| n.checked_mul(size)?.checked_next_multiple_of(alignment);
        let (uk_row, uv_row) = (row(spec.kv_lora_rank())?, row(spec.value_head_dim)?);
        let bytes = |k: usize, row: usize| spec.heads().checked_mul(k)?.checked_mul(row);
        let uv = bytes(spec.nope_dim, uk_row)?;
        let len = uv.checked_add(bytes(spec.kv_lora_rank(), uv_row)?)?;
        i64::try_from(len).ok()?;
        Some(MlaRows { dtype, uk_columns: uk_row / size, uv_columns: uv_row / size, uv, len })
    }

    /// The packed bytes.
    ///
    /// # Errors
    /// No memory.
    pub fn pack(&self, weights: &Checked<MlaWeights<'_>, &MlaSpec>) -> Result<Vec<u8>> {
        let spec = *weights.context();
        let mut packed = Vec::new();
        let full = |_| Error::OutOfMemory { device: "host".to_owned(), requested: self.len as u64 };
        packed.try_reserve_exact(self.len).map_err(full)?;
        packed.resize(self.len, 0);
        let (rank, dim, size) = (spec.kv_lora_rank(), spec.value_head_dim, self.dtype.size());
        let mut put = |element: usize, at: usize, bytes: &[u8]| {
            packed[at + element * size..][..size].copy_from_slice(bytes);
        };
        each(&weights.w_uk, |i, bytes| put(i / rank * self.uk_columns + i % rank, 0, bytes))?;
        each(&weights.w_uv, |i, bytes| {
            let (head, column, row) = (i / rank / dim, i / rank % dim, i % rank);
            put((head * rank + row) * self.uv_columns + column, self.uv, bytes);
        })?;
        Ok(packed)
    }

    /// What weights are saved with before the packed bytes: the backend's layout and its version, and what they were packed
    /// for.
    pub fn header(backend: &str, spec: &MlaSpec) -> String {
        let MlaSpec { nope_dim, value_head_dim, weights, form, .. } = spec;
        let (heads, rank, rope) = (spec.heads(), spec.kv_lora_rank(), spec.rope_dim());
        format!(
            "halite-{backend} mla rows v1 {form:?} {weights:?} heads {heads} kv_lora_rank {rank} rope_dim {rope} nope_dim \
             {nope_dim} value_head_dim {value_head_dim}\n"
        )
    }

    /// The packed bytes of what was saved.
    ///
    /// # Errors
    /// [`Error::Layout`] where they were saved by another backend, for other sizes, another form or another storage, or are
    /// damaged in length.
    pub fn restore<'s>(&self, backend: &str, spec: &MlaSpec, saved: &'s [u8]) -> Result<&'s [u8]> {
        saved_weights("mla", &MlaRows::header(backend, spec), self.len as u64, saved)
    }
}

/// Hands out every element's number and bytes.
fn each(weights: &HostWeights<'_>, mut take: impl FnMut(usize, &[u8])) -> Result<()> {
    match *weights {
        HostWeights::F32(data) => data.iter().enumerate().for_each(|(i, w)| take(i, &w.to_le_bytes())),
        HostWeights::F16(data) => data.iter().enumerate().for_each(|(i, w)| take(i, &w.to_le_bytes())),
        HostWeights::Bf16(data) => data.iter().enumerate().for_each(|(i, w)| take(i, &w.to_le_bytes())),
        ref other => return Err(CHECK.wrong("weights", "F32, F16 or BF16", format!("{:?}", other.format()))),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cache::KvSpec, linear::WeightFormat, mla::MlaForm};

    #[test]
    fn values_lie_transposed_and_rows_are_filled_up() {
        let kv = KvSpec::latent(1, 2, 1);
        let spec = MlaSpec::new(2, kv, 1, 3, MlaForm::Absorbed).with_weights(WeightFormat::F32);
        let numbers = |range: std::ops::Range<u8>| range.map(f32::from).collect::<Vec<_>>();
        // `W_UK [2, 1, 2]`, `W_UV [2, 3, 2]`.
        let (uk, uv) = (numbers(1..5), numbers(11..23));
        let weights = MlaWeights { w_uk: HostWeights::F32(&uk), w_uv: HostWeights::F32(&uv) };
        let weights = weights.check(&spec).unwrap();
        let packed = |alignment| {
            let rows = MlaRows::new(&spec, alignment).unwrap();
            let bytes = rows.pack(&weights).unwrap();
            assert_eq!(bytes.len(), rows.len);
            (rows.uv, bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
        };
        let (uv, values): (usize, Vec<f32>) = packed(16);
        let rows: Vec<&[f32]> = values.chunks(4).collect();
        assert_eq!(rows[..2], [[1.0, 2.0, 0.0, 0.0], [3.0, 4.0, 0.0, 0.0]]);
        assert_eq!(rows[2..4], [[11.0, 13.0, 15.0, 0.0], [12.0, 14.0, 16.0, 0.0]]);
        assert_eq!(rows[4..], [[17.0, 19.0, 21.0, 0.0], [18.0, 20.0, 22.0, 0.0]]);
        assert_eq!(uv, 32);
        let (uv, values): (usize, Vec<f32>) = packed(1);
        assert_eq!(values[..7], [1.0, 2.0, 3.0, 4.0, 11.0, 13.0, 15.0]);
        assert_eq!((uv, values.len()), (16, 16), "nothing is filled up");
    }

    #[test]
    fn sizes_beyond_counting_are_refused() {
        let spec = MlaSpec::new(1 << 40, KvSpec::latent(1, 1 << 22, 1), 1, 1, MlaForm::Absorbed);
        let error = MlaRows::new(&spec, 16).unwrap_err();
        assert!(matches!(error, Error::Limit { argument: "packed bytes", .. }), "{error:?}");
    }
}
