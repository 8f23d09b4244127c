//! A step's lengths and block tables, and what a plan has room for.

use super::{AttentionPlan, CHECK, OwnRows};
use crate::Checked;
use halite_hal::Result;

/// The largest step that a plan serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttentionCapacity {
    /// Query tokens of a step.
    pub max_tokens: usize,
    /// Sequences of a step.
    pub max_sequences: usize,
    /// Blocks of a sequence: the row length of the block table.
    pub max_blocks_per_sequence: usize,
    /// Blocks of the cache.
    pub cache_blocks: usize,
}

/// What an [`AttentionStep`] was checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttentionLimits {
    /// The largest step.
    pub capacity: AttentionCapacity,
    /// Token slots of a block.
    pub block_size: usize,
    /// Whether the mask needs parents.
    pub own_rows: OwnRows,
}

/// A step's lengths and block tables, on the host.
#[derive(Clone, Copy, Debug)]
pub struct AttentionStep<'a> {
    /// `[sequences + 1]`: query rows `cu_seqlens[s]..cu_seqlens[s + 1]` belong to sequence `s`.
    pub cu_seqlens: &'a [u32],
    /// `[sequences]`: cached positions of each sequence, the step's own included.
    pub kv_lens: &'a [u32],
    /// `[sequences, max_blocks_per_sequence]`: block ids; entries beyond a sequence's length are not read, and are -1
    /// by custom.
    pub block_table: &'a [i32],
    /// `[tokens]` with [`Mask::Tree`](super::Mask::Tree), otherwise empty: each query row's parent, counted from the
    /// sequence's first row of the step and lower than the row itself; -1 where only positions before the step come before
    /// it. `-1, 0, 1, 2, …` is a sequence without a tree: prefill, or plain decode.
    pub tree_parents: &'a [i32],
}

impl AttentionStep<'_> {
    /// Checks lengths and ids against the plan.
    ///
    /// # Errors
    /// More tokens, sequences or blocks than planned, lengths that do not ascend, a block beyond the cache, parents where
    /// the mask has none or that are no tree.
    pub fn check(self, plan: &impl AttentionPlan) -> Result<Checked<Self, AttentionLimits>> {
        let limits @ AttentionLimits { capacity, block_size, own_rows } = plan.limits();
        let sequences = self.kv_lens.len();
        CHECK.limit("sequences", sequences, capacity.max_sequences)?;
        CHECK.offsets("cu_seqlens", self.cu_seqlens, sequences)?;
        CHECK.limit("tokens", self.tokens(), capacity.max_tokens)?;
        let row = capacity.max_blocks_per_sequence;
        let entries = sequences.saturating_mul(row);
        CHECK.that(
            self.block_table.len() == entries,
            "block_table",
            format!("{sequences} rows of {row}"),
            self.block_table.len(),
        )?;
        for (sequence, &kv_len) in self.kv_lens.iter().enumerate() {
            let blocks = (kv_len as usize).div_ceil(block_size);
            CHECK.limit("blocks of a sequence", blocks, row)?;
            let table = &self.block_table[sequence * row..][..blocks];
            if let Some(&block) = table.iter().find(|&&b| b < 0 || b as usize >= capacity.cache_blocks) {
                let expected = format!("sequence {sequence}'s blocks within 0..{}", capacity.cache_blocks);
                return Err(CHECK.wrong("block_table", expected, block.to_string()));
            }
        }
        own_rows.check(&self)?;
        Ok(Checked::with_context(self, limits))
    }

    /// Query tokens of the step.
    pub fn tokens(&self) -> usize {
        self.cu_seqlens.last().map_or(0, |&tokens| tokens as usize)
    }
}
