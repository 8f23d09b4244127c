//! From stored blocks to `f32`.
//!
//! Every block type is a `repr(C)` struct whose fields are the bytes in the file's order, with its formula beside it.
//! All arithmetic is single precision, in the order the formulas are written, never fused: the same bits as other
//! readers get from the same bytes.

mod blocks_256;
mod blocks_32;
mod floats;

use std::ops::Range;

use bytemuck::Pod;

use super::{GgmlType, GgufError, TensorView};
use crate::quoted::quoted;
use blocks_32::{Q4_0, Q4_1, Q5_0, Q5_1, Q8_0};
use blocks_256::{Q2K, Q3K, Q4K, Q5K, Q6K};

/// One block in the file: `N` values.
trait Block<const N: usize>: Pod {
    /// Writes the block's values.
    fn write(&self, out: &mut [f32; N]);
}

/// Turns `rows` of a tensor into `f32`, one after the other in `out`.
///
/// A row is the innermost dimension; [`TensorView::rows`] counts them over all other dimensions. Scales that are
/// infinite or NaN give infinite or NaN values, as the formulas say.
///
/// # Errors
/// The tensor has no such rows, or `out` is not `rows.len() * view.row_len()` long.
///
/// ```
/// use halite_engine::gguf::{GgufError, GgufFile, dequantize_rows};
///
/// /// The embedding of one token.
/// fn embedding(model: &GgufFile, token: usize) -> Result<Vec<f32>, GgufError> {
///     let table = model.tensor("token_embd.weight")?;
///     let mut row = vec![0.0; table.row_len()];
///     dequantize_rows(&table, token..token + 1, &mut row)?;
///     Ok(row)
/// }
/// ```
pub fn dequantize_rows(view: &TensorView<'_>, rows: Range<usize>, out: &mut [f32]) -> Result<(), GgufError> {
    let out_of_range =
        || GgufError::RowsOutOfRange { tensor: quoted(view.name()), rows: rows.clone(), have: view.rows() };
    if rows.start > rows.end || rows.end > view.rows() {
        return Err(out_of_range());
    }
    let expected = rows.len().saturating_mul(view.row_len());
    if out.len() != expected {
        return Err(GgufError::OutputLength { tensor: quoted(view.name()), expected, got: out.len() });
    }
    // Neither can overflow for rows that are there.
    let row_bytes = view.ty().row_bytes(view.row_len()).ok_or_else(out_of_range)?;
    let bytes = view.data().get(rows.start * row_bytes..rows.end * row_bytes).ok_or_else(out_of_range)?;
    match view.ty() {
        GgmlType::F32 => floats::f32s(bytes, out),
        GgmlType::F16 => floats::f16s(bytes, out),
        GgmlType::Bf16 => floats::bf16s(bytes, out),
        GgmlType::Q4_0 => blocks::<Q4_0, _>(bytes, out),
        GgmlType::Q4_1 => blocks::<Q4_1, _>(bytes, out),
        GgmlType::Q5_0 => blocks::<Q5_0, _>(bytes, out),
        GgmlType::Q5_1 => blocks::<Q5_1, _>(bytes, out),
        GgmlType::Q8_0 => blocks::<Q8_0, _>(bytes, out),
        GgmlType::Q2K => blocks::<Q2K, _>(bytes, out),
        GgmlType::Q3K => blocks::<Q3K, _>(bytes, out),
        GgmlType::Q4K => blocks::<Q4K, _>(bytes, out),
        GgmlType::Q5K => blocks::<Q5K, _>(bytes, out),
        GgmlType::Q6K => blocks::<Q6K, _>(bytes, out),
    }
    Ok(())
}

/// `bytes` and `out` hold the same number of whole blocks; the caller has made sure.
fn blocks<B: Block<N>, const N: usize>(bytes: &[u8], out: &mut [f32]) {
    for (bytes, values) in bytes.chunks_exact(size_of::<B>()).zip(out.as_chunks_mut().0) {
        // Blocks are bytes only, of alignment 1, so this never fails.
        if let Ok(block) = bytemuck::try_from_bytes::<B>(bytes) {
            block.write(values);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<B: Block<N>, const N: usize>(ty: GgmlType) {
        assert_eq!(ty.block_len(), N, "{ty}");
        assert_eq!(ty.block_bytes(), size_of::<B>(), "{ty}");
        assert_eq!(align_of::<B>(), 1, "{ty}");
    }

    #[test]
    fn structs_have_the_sizes_of_their_types() {
        check::<Q4_0, _>(GgmlType::Q4_0);
        check::<Q4_1, _>(GgmlType::Q4_1);
        check::<Q5_0, _>(GgmlType::Q5_0);
        check::<Q5_1, _>(GgmlType::Q5_1);
        check::<Q8_0, _>(GgmlType::Q8_0);
        check::<Q2K, _>(GgmlType::Q2K);
        check::<Q3K, _>(GgmlType::Q3K);
        check::<Q4K, _>(GgmlType::Q4K);
        check::<Q5K, _>(GgmlType::Q5K);
        check::<Q6K, _>(GgmlType::Q6K);
    }
}
