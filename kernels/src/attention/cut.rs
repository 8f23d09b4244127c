//! How a GPU's work of a step is cut, for backends: tiles of query rows, items that blocks of threads take, and rounds
//! that scratch memory holds. Parts begin at absolute multiples of [`AttentionSpec::kv_split`], whoever reads them.

use super::{
    AttentionCapacity, AttentionSpec, AttentionStep, Mask,
    visible::{chains, visible},
};
use std::ops::Range;

/// Blocks of threads that keep a device busy. Where there are fewer, rows with many parts are read by several.
const ENOUGH: usize = 1024;
/// Bytes of scratch memory that a call has at least, where it can need them.
const SCRATCH: usize = 32 << 20;

/// Which rows are read by several blocks of threads, a part of what they see each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Parted {
    /// Those that would be read last.
    Long,
    /// All, and in the order of tokens.
    All,
}

/// Words of a tile in the table.
pub const TILE: usize = 12;
/// Words of an item in the table.
pub const ITEM: usize = 4;

/// The most rows that a block of threads has: `tokens` of one sequence, with `heads` query heads of one KV head each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowTile {
    /// Tokens of one sequence.
    pub tokens: usize,
    /// Query heads of one KV head.
    pub heads: usize,
}

impl RowTile {
    /// For steps whose sequences have up to `longest` tokens, where there is room for `rows`, one or more.
    pub fn new(spec: &AttentionSpec, rows: usize, longest: usize) -> Self {
        let group = spec.group().max(1);
        // Heads in tiles of about the same size, and as many tokens as there is room for beside them.
        let heads = group.div_ceil(group.div_ceil(rows.max(1)));
        let tokens = (rows / heads).min(longest.min(rows).next_power_of_two()).max(1);
        RowTile { tokens, heads }
    }

    /// Rows in all.
    pub fn rows(self) -> usize {
        self.tokens * self.heads
    }

    /// Tiles that the query heads of a KV head make.
    pub fn head_tiles(self, spec: &AttentionSpec) -> usize {
        spec.group().div_ceil(self.heads)
    }
}

/// Some tokens of a sequence, with all their heads: `[first token, tokens, sequence, position of the first token, the
/// sequence's first token, its position, read from, read to, slot, states, read whole, 0]`. A slot has a state of every
/// head of a token, `[heads, value_head_dim + 2]`: the values, the greatest score, the sum. The states of a tile are those
/// of its parts, or one where it is read whole.
pub type Tile = [i32; TILE];

/// What a block of threads for each tile of heads does: `[tile, first position, end, slot]`.
pub type Item = [i32; ITEM];

/// Tiles, and their items, whose states fit scratch memory together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Round {
    /// Of all tiles.
    pub tiles: Range<usize>,
    /// Of all items.
    pub items: Range<usize>,
    /// Slots that it has states in.
    pub slots: usize,
}

/// How large the cut of a step is at most.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Most {
    /// Tiles.
    pub tiles: usize,
    /// Items.
    pub items: usize,
    /// Slots of scratch memory.
    pub slots: usize,
    /// Parts of a sequence.
    pub parts: usize,
    /// Which rows several blocks of threads read.
    pub parted: Parted,
}

impl Most {
    /// For every step that `capacity` allows. `largest` is what scratch memory may have, in bytes.
    pub fn new(
        spec: &AttentionSpec,
        capacity: &AttentionCapacity,
        tile: RowTile,
        parted: Parted,
        largest: u64,
    ) -> Self {
        let positions = capacity.max_blocks_per_sequence.saturating_mul(spec.kv.block_size);
        let parts = positions.div_ceil(spec.kv_split).max(1);
        let tiles = capacity.max_tokens;
        let groups = spec.kv.kv_heads.saturating_mul(tile.head_tiles(spec));
        // Of `Long` ones a tile with several items has more than 1/ENOUGH of all parts.
        let several = if parted == Parted::All { tiles } else { (ENOUGH / groups.max(1) + 1).min(tiles) };
        let items = tiles.saturating_add(several.saturating_mul(parts));
        let slot = slot_words(spec).saturating_mul(4).max(1);
        let together = tile.tokens.saturating_mul(parts);
        let largest = usize::try_from(largest).unwrap_or(usize::MAX) / slot;
        let slots = (SCRATCH / slot).max(together).min(tiles.saturating_mul(parts));
        Most { tiles, items, slots: slots.min(largest).max(tile.tokens), parts, parted }
    }
}

/// Words of a slot: of each head the greatest score, the sum, and the values.
pub fn slot_words(spec: &AttentionSpec) -> usize {
    spec.query_heads.saturating_mul(spec.kv.value_head_dim.saturating_add(2))
}

/// A step's work.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Cut {
    /// The tiles, those that take longest first, or in the order of tokens.
    pub tiles: Vec<Tile>,
    /// Their items, in the same order.
    pub items: Vec<Item>,
    /// What scratch memory holds together.
    pub rounds: Vec<Round>,
    /// Whether a tile has several items.
    pub parted: bool,
    /// Parts that one block of threads walks, at most.
    pub longest: usize,
}

impl Cut {
    /// All of it at once, without a state in scratch memory.
    pub fn whole(&self) -> Round {
        Round { tiles: 0..self.tiles.len(), items: 0..self.items.len(), slots: 0 }
    }

    /// Leaves no work.
    pub fn clear(&mut self) {
        self.tiles.clear();
        self.items.clear();
        self.rounds.clear();
        self.parted = false;
        self.longest = 0;
    }

    /// The tokens of a round, where tiles are in the order of tokens.
    pub fn tokens_of(&self, round: &Round) -> Range<usize> {
        let tiles = self.tiles.get(round.tiles.clone()).unwrap_or_default();
        let start = tiles.first().map_or(0, |tile| tile[0] as usize);
        start..tiles.last().map_or(start, |tile| (tile[0] + tile[1]) as usize)
    }

    /// Cuts a step whose lengths are below 2^31.
    pub fn update(&mut self, spec: &AttentionSpec, step: &AttentionStep<'_>, tile: RowTile, most: Most) {
        self.clear();
        let mut seen = Vec::new();
        for (sequence, bounds) in step.cu_seqlens.windows(2).enumerate() {
            let (start, end) = (bounds[0] as usize, bounds[1] as usize);
            let step_first = i64::from(step.kv_lens[sequence]) - (end - start) as i64;
            let read = step.kv_range(sequence);
            // Late tokens see most, or as much as others: what takes longest is begun first.
            let count = (end - start).div_ceil(tile.tokens);
            for place in 0..count {
                let place = if most.parted == Parted::All { place } else { count - 1 - place };
                let first = start + place * tile.tokens;
                let tokens = tile.tokens.min(end - first);
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
        let groups = spec.kv.kv_heads * tile.head_tiles(spec);
        let longest = (seen.iter().map(parts).sum::<usize>().saturating_mul(groups) / ENOUGH).max(1);
        let mut round = Round { tiles: 0..0, items: 0..0, slots: 0 };
        for (number, (row, seen)) in self.tiles.iter_mut().zip(&seen).enumerate() {
            let (tokens, parts) = (row[1] as usize, parts(seen));
            let fits = tokens.saturating_mul(parts) <= most.slots
                && self.items.len() + parts + most.tiles - number <= most.items;
            // A tile that sees nothing has one empty state: whoever reads all slots of a round finds it.
            let states = match most.parted {
                Parted::All => parts.max(1),
                Parted::Long if parts > longest && fits => parts,
                Parted::Long => 1,
            };
            let slots = tokens * states;
            if round.slots + slots > most.slots {
                round.tiles.end = number;
                round.items.end = self.items.len();
                self.rounds.push(round);
                round = Round { tiles: number..0, items: self.items.len()..0, slots: 0 };
            }
            let whole = states == 1 && most.parted == Parted::Long;
            row[8] = round.slots as i32;
            row[9] = states as i32;
            row[10] = whole.into();
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

/// Where the tables of a step begin, in words.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Tables {
    /// The slopes, `[query_heads]` as bits of F32, or none.
    pub slopes: usize,
    /// The block table.
    pub blocks: usize,
    /// With a tree, [`chains`] of each sequence, `[tokens, 2]`.
    pub tree: usize,
    /// The tiles.
    pub tiles: usize,
    /// The items.
    pub items: usize,
}

impl Tables {
    /// Words that the tables of every step have room in.
    pub fn room(spec: &AttentionSpec, capacity: &AttentionCapacity, most: Most) -> usize {
        let slopes = spec.alibi_slopes.as_ref().map_or(0, Vec::len);
        let blocks = capacity.max_sequences.saturating_mul(capacity.max_blocks_per_sequence);
        let tree = if spec.mask == Mask::Tree { capacity.max_tokens.saturating_mul(2) } else { 0 };
        let work = [most.tiles.saturating_mul(TILE), most.items.saturating_mul(ITEM)];
        [slopes, blocks, tree].into_iter().chain(work).fold(0, usize::saturating_add)
    }

    /// Appends the tables of a step and its cut.
    pub fn append(words: &mut Vec<u32>, spec: &AttentionSpec, step: &AttentionStep<'_>, cut: &Cut) -> Self {
        let mut append = |table: &mut dyn Iterator<Item = u32>| {
            let place = words.len();
            words.extend(table);
            place
        };
        let slopes = append(&mut spec.alibi_slopes.iter().flatten().map(|slope| slope.to_bits()));
        let blocks = append(&mut step.block_table.iter().map(|block| block.cast_unsigned()));
        let sequences = step.cu_seqlens.windows(2).filter(|_| spec.mask == Mask::Tree);
        let parents = sequences.map(|ends| &step.tree_parents[ends[0] as usize..ends[1] as usize]);
        let tree = append(&mut parents.flat_map(chains).flatten().map(i32::cast_unsigned));
        let tiles = append(&mut cut.tiles.iter().flatten().map(|word| word.cast_unsigned()));
        let items = append(&mut cut.items.iter().flatten().map(|word| word.cast_unsigned()));
        Tables { slopes, blocks, tree, tiles, items }
    }
}

#[cfg(test)]
#[path = "cut_tests.rs"]
mod tests;
