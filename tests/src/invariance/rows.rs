//! Rows alone against rows in a batch.

use super::{activation, embedding, logits, norm, rope, sampling, top_k};
use crate::{
    case::{Fault, Shown, Verdict},
    judge::same_bits,
    random::Rng,
};
use halite_kernels::{Backend, Tensor};
use std::ops::Range;

/// Batches, as ranges of the rows of the largest.
const BATCHES: [Range<usize>; 12] =
    [0..2, 1..4, 0..4, 3..8, 0..6, 5..12, 0..11, 1..13, 2..15, 0..16, 7..24, 0..37];
/// Rows of the largest batch.
pub(super) const ROWS: usize = 37;

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("norms", norm::rows),
        ("activations", activation::rows),
        ("rotations", rope::rows),
        ("pooling and L2 normalising", embedding::rows),
        ("penalties, biases and masks", logits::rows),
        ("sampling and log-probabilities", sampling::rows),
        ("drafted tokens", sampling::drafts),
        ("top-k", top_k::rows),
    ]
}

/// Whether `run`, over rows of the largest batch, gives each row the same bytes alone and in every batch.
pub(super) fn same_rows(
    what: &str,
    row_bytes: usize,
    mut run: impl FnMut(Range<usize>) -> Result<Vec<u8>, Fault>,
) -> Verdict {
    let mut alone = Vec::new();
    for row in 0..ROWS {
        alone.extend(run(row..row + 1)?);
    }
    for batch in BATCHES {
        let expected = &alone[batch.start * row_bytes..batch.end * row_bytes];
        same_bits(&format!("{what}: rows {batch:?} together and alone"), &run(batch.clone())?, expected)?;
    }
    Ok(())
}

pub(super) fn input<B: Backend>(stream: &mut B::Stream, columns: usize) -> Result<Tensor<B>, Fault> {
    Ok(Tensor::from_slice(stream, &Rng::new(9).spreads(ROWS * columns), &[ROWS, columns])?)
}
