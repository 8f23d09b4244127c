//! Cuts of steps.

use super::{super::*, *};
use crate::cache::KvSpec;

/// Cuts a step of `(q_len, kv_len)`, with `groups` KV heads and parts of 16 positions.
fn cut(kv_heads: usize, sequences: &[(u32, u32)], parted: Parted, slots: Option<usize>) -> (Cut, Most) {
    let spec = AttentionSpec::causal(kv_heads, KvSpec::new(1, kv_heads, 8)).with_kv_split(16);
    let capacity = AttentionCapacity {
        max_tokens: 100,
        max_sequences: 10,
        max_blocks_per_sequence: 8,
        cache_blocks: 80,
    };
    let longest = sequences.iter().map(|sequence| sequence.0).max().unwrap_or(0) as usize;
    let tile = RowTile::new(&spec, 8, longest);
    let mut most = Most::new(&spec, &capacity, RowTile::new(&spec, 8, 100), parted, 1 << 27);
    most.slots = slots.unwrap_or(most.slots);
    let mut ends = vec![0];
    for (q_len, _) in sequences {
        ends.push(ends[ends.len() - 1] + q_len);
    }
    let kv_lens: Vec<u32> = sequences.iter().map(|sequence| sequence.1).collect();
    let table = vec![0; sequences.len() * 8];
    let step = AttentionStep {
        cu_seqlens: &ends,
        kv_lens: &kv_lens,
        kv_ranges: &[],
        block_table: &table,
        tree_parents: &[],
    };
    let mut cut = Cut::default();
    cut.update(&spec, &step, tile, most);
    (cut, most)
}

#[test]
fn few_long_rows_are_read_in_parts() {
    let (cut, most) = cut(1, &[(1, 40), (1, 10), (1, 0)], Parted::Long, None);
    assert!(cut.parted && cut.items.len() <= most.items);
    assert_eq!(cut.items, [[0, 0, 16, 0], [0, 16, 32, 1], [0, 32, 40, 2], [1, 0, 10, 3], [2, 0, 0, 4]]);
    let states: Vec<_> = cut.tiles.iter().map(|tile| [tile[8], tile[9], tile[10]]).collect();
    assert_eq!(states, [[0, 3, 0], [3, 1, 1], [4, 1, 1]]);
    assert_eq!(cut.rounds.len(), 1);
}

#[test]
fn many_rows_are_read_whole() {
    let (cut, _) = cut(700, &[(1, 40), (1, 40)], Parted::Long, None);
    assert!(!cut.parted, "1400 workgroups are enough");
    assert_eq!(cut.items, [[0, 0, 40, 0], [1, 0, 40, 1]]);
}

#[test]
fn rounds_are_what_scratch_holds() {
    let (cut, _) = cut(1, &[(1, 40), (1, 40), (0, 5), (1, 20)], Parted::Long, Some(4));
    let rounds: Vec<_> = cut.rounds.iter().map(|r| (r.tiles.clone(), r.items.clone(), r.slots)).collect();
    assert_eq!(rounds, [(0..1, 0..3, 3), (1..2, 3..6, 3), (2..3, 6..8, 2)]);
    assert_eq!(cut.items[3], [1, 0, 16, 0], "slots count from the round's first");
}

#[test]
fn tokens_are_in_order_where_all_are_parted() {
    let (cut, _) = cut(1, &[(20, 30), (1, 3)], Parted::All, None);
    let firsts: Vec<_> = cut.tiles.iter().map(|tile| (tile[0], tile[1])).collect();
    assert_eq!(firsts, [(0, 8), (8, 8), (16, 4), (20, 1)]);
    assert_eq!(cut.items[..3], [[0, 0, 16, 0], [0, 16, 18, 8], [1, 0, 16, 16]]);
    assert!(cut.tiles.iter().all(|tile| tile[10] == 0));
    let round = |tiles| Round { tiles, items: 0..0, slots: 0 };
    assert_eq!([1..3, 0..4, 4..4].map(|tiles| cut.tokens_of(&round(tiles))), [8..20, 0..21, 0..0]);
}

#[test]
fn a_tile_that_sees_nothing_has_an_empty_state() {
    let (cut, _) = cut(1, &[(2, 0), (1, 20)], Parted::All, None);
    assert_eq!(cut.items, [[0, 0, 0, 0], [1, 0, 16, 2], [1, 16, 20, 3]]);
    let states: Vec<_> = cut.tiles.iter().map(|tile| [tile[8], tile[9], tile[10]]).collect();
    assert_eq!(states, [[0, 1, 0], [2, 2, 0]]);
    assert_eq!(cut.rounds[0].slots, 4);
}
