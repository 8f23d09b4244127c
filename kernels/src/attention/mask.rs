//! Which positions a query row sees.

use super::{AttentionStep, CHECK};
use halite_hal::Result;

/// Which positions a query row sees. Keys and values at others, NaN included, do not reach it.
///
/// A row's own position is `kv_len - q_len + i`; where it is negative, the row sees nothing unless the mask is
/// bidirectional.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mask {
    /// Positions up to its own.
    Causal,
    /// Every cached position of its sequence, as in an encoder.
    Bidirectional,
    /// The last `window` positions up to its own, its own included: a row at position `p` sees the positions `q` with
    /// `p - window < q <= p` (Beltagy et al. 2020, arXiv:2004.05150; `sliding_window` of Hugging Face transformers).
    Sliding {
        /// Positions that a row sees at most; 1 or more.
        window: usize,
    },
    /// The positions up to its own in its own chunk: a row at position `p` sees the positions `q <= p` with
    /// `q / chunk == p / chunk` (the chunked-local layers of Llama 4; `attention_chunk_size` of Hugging Face
    /// transformers).
    Chunked {
        /// Positions of a chunk; 1 or more.
        chunk: usize,
    },
    /// All positions before the step's own rows, and of the step's own rows the row itself and its ancestors
    /// ([`AttentionStep::tree_parents`]): drafted tokens verified as a tree (Miao et al. 2023, arXiv:2305.09781; Cai et
    /// al. 2024, arXiv:2401.10774).
    Tree,
}

impl Mask {
    pub(super) fn check(self) -> Result<()> {
        match self {
            Mask::Causal | Mask::Bidirectional | Mask::Tree => Ok(()),
            Mask::Sliding { window } => CHECK.positive("window", window),
            Mask::Chunked { chunk } => CHECK.positive("chunk", chunk),
        }
    }

    /// What a step of this mask says of its own rows.
    pub(super) fn own_rows(self) -> OwnRows {
        match self {
            Mask::Tree => OwnRows::Tree,
            _ => OwnRows::InOrder,
        }
    }
}

/// How the rows that a step adds to a sequence follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OwnRows {
    /// Each after the one before it.
    InOrder,
    /// Each after its parent.
    Tree,
}

impl OwnRows {
    /// Checks the step's parents; its offsets and lengths were checked before.
    pub(super) fn check(self, step: &AttentionStep<'_>) -> Result<()> {
        let parents = step.tree_parents;
        let (expected, wanted) = match self {
            OwnRows::InOrder => (0, "no entries: the mask is no tree".to_owned()),
            OwnRows::Tree => (step.tokens(), format!("{} entries", step.tokens())),
        };
        CHECK.that(parents.len() == expected, "tree_parents", wanted, parents.len())?;
        if self == OwnRows::InOrder {
            return Ok(());
        }
        for (sequence, (ends, &kv_len)) in step.cu_seqlens.windows(2).zip(step.kv_lens).enumerate() {
            let rows = &parents[ends[0] as usize..ends[1] as usize];
            CHECK.that(
                rows.len() <= kv_len as usize,
                "kv_lens",
                format!("at least the {} rows of tree {sequence}", rows.len()),
                kv_len,
            )?;
            for (row, &parent) in rows.iter().enumerate() {
                CHECK.that(
                    parent >= -1 && i64::from(parent) < row as i64,
                    "tree_parents",
                    format!("an earlier row, or -1, for row {row} of sequence {sequence}"),
                    parent,
                )?;
            }
        }
        Ok(())
    }
}
