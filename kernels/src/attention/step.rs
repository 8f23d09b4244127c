//! A step's lengths and block tables, and what a plan has room for.

use super::{AttentionPlan, CHECK, OwnRows};
use crate::Checked;
use halite_hal::Result;
use std::ops::Range;

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
    /// Positions of a part, at whose multiples KV is cut.
    pub kv_split: usize,
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
    /// `[sequences]`, or empty: of the positions that a sequence's rows see, those that this call reads; all, where there
    /// are no ranges. A range begins at a multiple of the spec's `kv_split`, and ends at one or with the sequence, so that
    /// a call over what follows gives the bits of one over everything ([`AttentionState`](super::AttentionState)).
    /// Positions are the sequence's, whatever the range: masks and biases go by them.
    pub kv_ranges: &'a [Range<u32>],
    /// `[sequences, max_blocks_per_sequence]`: block ids; entries outside of what a sequence's rows read are not read, and
    /// are -1 by custom.
    pub block_table: &'a [i32],
    /// `[tokens]` with [`Mask::Tree`](super::Mask::Tree), otherwise empty: each query row's parent, counted from the
    /// sequence's first row of the step and lower than the row itself; -1 where only positions before the step come before
    /// it. `-1, 0, 1, 2, …` is a sequence without a tree: prefill, or plain decode.
    pub tree_parents: &'a [i32],
}

impl AttentionStep<'_> {
    /// Checks lengths and ids against the plan. It borrows the plan that `attention_update` then changes: check into a
    /// `let` first.
    ///
    /// # Errors
    /// More tokens, sequences or blocks than planned, lengths that do not ascend, ranges beyond a sequence or cut within a
    /// part, a block beyond the cache, parents where the mask has none or that are no tree.
    pub fn check(self, plan: &impl AttentionPlan) -> Result<Checked<Self, AttentionLimits>> {
        let limits @ AttentionLimits { capacity, block_size, kv_split, own_rows } = plan.limits();
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
        CHECK.that(
            self.kv_ranges.is_empty() || self.kv_ranges.len() == sequences,
            "kv_ranges",
            format!("{sequences} ranges, or none"),
            self.kv_ranges.len(),
        )?;
        for (sequence, &kv_len) in self.kv_lens.iter().enumerate() {
            let range = self.kv_range(sequence);
            let cut = |at: u32| (at as usize).is_multiple_of(kv_split);
            CHECK.that(
                range.start <= range.end
                    && range.end <= kv_len
                    && cut(range.start)
                    && (range.end == kv_len || cut(range.end)),
                "kv_ranges",
                format!("within 0..{kv_len} and cut at multiples of {kv_split}, for sequence {sequence}"),
                &range,
            )?;
            let blocks = (range.end as usize).div_ceil(block_size);
            CHECK.limit("blocks of a sequence", blocks, row)?;
            let first = if range.is_empty() { blocks } else { range.start as usize / block_size };
            let table = &self.block_table[sequence * row..][first..blocks];
            if let Some(&block) = table.iter().find(|&&b| b < 0 || b as usize >= capacity.cache_blocks) {
                let expected = format!("sequence {sequence}'s blocks within 0..{}", capacity.cache_blocks);
                return Err(CHECK.wrong("block_table", expected, block.to_string()));
            }
        }
        own_rows.check(&self)?;
        Ok(Checked::with_context(self, limits))
    }

    /// The positions that a sequence's rows read of those that they see.
    pub fn kv_range(&self, sequence: usize) -> Range<u32> {
        let all = || 0..self.kv_lens.get(sequence).copied().unwrap_or(0);
        self.kv_ranges.get(sequence).cloned().unwrap_or_else(all)
    }

    /// Query tokens of the step.
    pub fn tokens(&self) -> usize {
        self.cu_seqlens.last().map_or(0, |&tokens| tokens as usize)
    }
}
