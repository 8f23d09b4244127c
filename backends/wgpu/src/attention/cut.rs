//! A step, cut into work: tiles of query rows, items that workgroups take, and rounds that scratch memory holds.

use super::{shape::Shape, visible::visible};
use halite_kernels::attention::{AttentionCapacity, AttentionSpec, AttentionStep};
use std::ops::Range;

/// Workgroups that keep a device busy. Where there are fewer, rows with many parts are read by several.
const ENOUGH: usize = 1024;
/// Bytes of scratch memory that a call has at least, where it can need them.
const SCRATCH: usize = 32 << 20;

/// Which rows are read by several workgroups, a part of what they see each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parted {
    /// Those that would be read last.
    Long,
    /// All, and in the order of tokens.
    All,
}
/// Words of a tile in the table.
pub(super) const TILE: usize = 12;
/// Words of an item in the table.
pub(super) const ITEM: usize = 4;

/// Some tokens of a sequence, with all their heads: `[first token, tokens, sequence, position of the first token, the
/// sequence's first token, its position, read from, read to, slot, states, read whole, 0]`. A slot has a state of every
/// head of a token, `[heads, value_head_dim + 2]`: the values, the greatest score, the sum. The states of a tile are those
/// of its parts, or one where it is read whole.
pub(super) type Tile = [i32; TILE];

/// What a workgroup for each tile of heads does: `[tile, first position, end, slot]`.
pub(super) type Item = [i32; ITEM];

/// Tiles, and their items, whose states fit scratch memory together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Round {
    pub(crate) tiles: Range<usize>,
    pub(crate) items: Range<usize>,
    /// Slots that it has states in.
    pub(crate) slots: usize,
}

/// How large the cut of a step is at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    pub(super) tiles: usize,
    pub(super) items: usize,
    /// Slots of scratch memory.
    pub(super) slots: usize,
    /// Parts of a sequence.
    pub(super) parts: usize,
    pub(super) parted: Parted,
}

impl Most {
    /// For every step that `capacity` allows. `largest` is what a dispatch can bind, in bytes.
    pub(super) fn new(
        spec: &AttentionSpec,
        capacity: &AttentionCapacity,
        shape: Shape,
        parted: Parted,
        largest: u64,
    ) -> Self {
        let positions = capacity.max_blocks_per_sequence.saturating_mul(spec.kv.block_size);
        let parts = positions.div_ceil(spec.kv_split).max(1);
        let tiles = capacity.max_tokens;
        let groups = spec.kv.kv_heads.saturating_mul(shape.head_tiles(spec));
        // Of `Long` ones a tile with several items has more than 1/ENOUGH of all parts.
        let several = if parted == Parted::All { tiles } else { (ENOUGH / groups.max(1) + 1).min(tiles) };
        let items = tiles.saturating_add(several.saturating_mul(parts));
        let slot = slot_words(spec).saturating_mul(4).max(1);
        let tile = shape.tokens.saturating_mul(parts);
        let largest = usize::try_from(largest).unwrap_or(usize::MAX) / slot;
        let slots = (SCRATCH / slot).max(tile).min(tiles.saturating_mul(parts));
        Most { tiles, items, slots: slots.min(largest).max(shape.tokens), parts, parted }
    }
}

/// Words of a slot: of each head the greatest score, the sum, and the values.
pub(super) fn slot_words(spec: &AttentionSpec) -> usize {
    spec.query_heads.saturating_mul(spec.kv.value_head_dim.saturating_add(2))
}

/// A step's work.
#[derive(Debug, Default)]
pub(super) struct Cut {
    pub(super) tiles: Vec<Tile>,
    pub(super) items: Vec<Item>,
    pub(super) rounds: Vec<Round>,
    /// Whether a tile has several items.
    pub(super) parted: bool,
    /// Parts that one workgroup walks, at most.
    pub(super) longest: usize,
}

impl Cut {
    /// No work.
    pub(super) fn clear(&mut self) {
        self.tiles.clear();
        self.items.clear();
        self.rounds.clear();
        self.parted = false;
        self.longest = 0;
    }

    /// Cuts a step whose lengths are below 2^31.
    pub(super) fn update(
        &mut self,
        spec: &AttentionSpec,
        step: &AttentionStep<'_>,
        shape: Shape,
        most: Most,
    ) {
        self.clear();
        let mut seen = Vec::new();
        for (sequence, bounds) in step.cu_seqlens.windows(2).enumerate() {
            let (start, end) = (bounds[0] as usize, bounds[1] as usize);
            let step_first = i64::from(step.kv_lens[sequence]) - (end - start) as i64;
            let read = step.kv_range(sequence);
            // Late tokens see most, or as much as others: what takes longest is begun first.
            let count = (end - start).div_ceil(shape.tokens);
            for place in 0..count {
                let place = if most.parted == Parted::All { place } else { count - 1 - place };
                let first = start + place * shape.tokens;
                let tokens = shape.tokens.min(end - first);
                let own = step_first + (first - start) as i64;
                let last = visible(spec.mask, own + tokens as i64 - 1, &read).end;
                let from = visible(spec.mask, own, &read).start.min(last);
                seen.push(from..last);
                self.tiles.push([
                    first as i32,
                    tokens as i32,
                    sequence as i32,
                    own as i32,
                    start as i32,
                    step_first as i32,
                    read.start as i32,
                    read.end as i32,
                    0,
                    1,
                    1,
                    0,
                ]);
            }
        }
        let split = spec.kv_split;
        let parts = |seen: &Range<u32>| match seen.is_empty() {
            true => 0,
            false => (seen.end as usize).div_ceil(split) - seen.start as usize / split,
        };
        let groups = spec.kv.kv_heads * shape.head_tiles(spec);
        let longest = (seen.iter().map(parts).sum::<usize>().saturating_mul(groups) / ENOUGH).max(1);
        let mut round = Round { tiles: 0..0, items: 0..0, slots: 0 };
        for (number, (tile, seen)) in self.tiles.iter_mut().zip(&seen).enumerate() {
            let (tokens, parts) = (tile[1] as usize, parts(seen));
            let fits = tokens.saturating_mul(parts) <= most.slots
                && self.items.len() + parts + most.tiles - number <= most.items;
            let states = if most.parted == Parted::All || parts > longest && fits { parts } else { 1 };
            let slots = tokens * states.max(1);
            if round.slots + slots > most.slots {
                round.tiles.end = number;
                round.items.end = self.items.len();
                self.rounds.push(round);
                round = Round { tiles: number..0, items: self.items.len()..0, slots: 0 };
            }
            let whole = states == 1 && most.parted == Parted::Long;
            tile[8] = round.slots as i32;
            tile[9] = states as i32;
            tile[10] = whole.into();
            self.parted |= !whole;
            self.longest = self.longest.max(if whole { parts } else { 1 });
            for part in 0..states {
                let (mut first, mut end) = (seen.start as usize, seen.end as usize);
                if !whole {
                    let start = (first / split + part) * split;
                    (first, end) = (first.max(start), end.min(start + split));
                }
                self.items.push([
                    number as i32,
                    first as i32,
                    end as i32,
                    (round.slots + part * tokens) as i32,
                ]);
            }
            round.slots += slots;
        }
        if !self.tiles.is_empty() {
            round.tiles.end = self.tiles.len();
            round.items.end = self.items.len();
            self.rounds.push(round);
        }
    }
}
