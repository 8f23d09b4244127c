//! Attention by parts and tiles against two passes in `f64`, and against itself to the last bit, in every tier.

use super::{Gaps, MAX_ROWS, PartLanes, Span, wide};
use crate::{
    attention::{
        operands::IN_PLACE_ROWS,
        sequence::{Cut, Row, Sequence, attend},
    },
    simd::{Tier, random::Random},
};
use std::ops::Range;

const CUT: Cut = Cut { tile_rows: 12, positions: 32, block_size: 16, apart: false, in_place: false };

/// Causal rows of a prompt's last tokens, `heads` each.
fn causal(s: &Sequence, tokens: usize, heads: usize, random: &mut Random) -> Vec<Row> {
    let row = |token: usize, random: &mut Random| Row {
        query: random.floats(s.head_dim),
        visible: 0..s.kv_len - tokens + token + 1,
    };
    (0..tokens * heads).map(|i| row(i / heads, random)).collect()
}

fn bits(results: &[(Vec<f32>, f32)]) -> Vec<Vec<u32>> {
    results.iter().map(|(out, lse)| out.iter().chain([lse]).map(|x| x.to_bits()).collect()).collect()
}

fn check(tier: Tier, s: &Sequence, rows: &[Row], scale: f32, cut: Cut) {
    let got = attend(tier, s, rows, scale, cut);
    for (i, (row, (out, lse))) in rows.iter().zip(got).enumerate() {
        let what =
            format!("{tier} {cut:?} kv_len {} head_dim {} v_dim {} row {i}", s.kv_len, s.head_dim, s.v_dim);
        let (want, want_lse) = s.exact(row, scale);
        if row.visible.is_empty() {
            assert!(out.iter().all(|x| x.to_bits() == 0) && lse == f32::NEG_INFINITY, "{what}");
            continue;
        }
        // Scores carry head_dim roundings, of a size their own terms allow; the sums a few more.
        let size: f64 = row.query.iter().map(|q| f64::from(q.abs())).sum::<f64>() * f64::from(scale);
        let allowed = 2f64.powi(-23) * ((s.head_dim + 4) as f64 * size.max(1.0) + row.visible.len() as f64);
        assert!((f64::from(lse) - want_lse).abs() <= allowed, "{what}: {lse} instead of {want_lse}");
        for (got, want) in out.iter().zip(want) {
            assert!((f64::from(*got) - want).abs() <= allowed, "{what}: {got} instead of {want}");
        }
    }
}

#[test]
fn few_rows_have_the_same_bits_in_place() {
    let mut random = Random::new(11);
    for tier in Tier::available() {
        for (head_dim, v_dim) in [(64, 64), (1, 32), (33, 96), (80, 160)] {
            for kv_len in [1, 15, 16, 17, 47, 96, 130] {
                let s = Sequence::random(kv_len, head_dim, v_dim, &mut random);
                for heads in 1..=IN_PLACE_ROWS {
                    let mut rows = causal(&s, 1, heads, &mut random);
                    // Windows of other lengths: positions that some rows see and others do not.
                    for (i, row) in rows.iter_mut().enumerate().skip(1) {
                        row.visible.start = (i * 7).min(kv_len);
                    }
                    let staged = bits(&attend(tier, &s, &rows, 0.5, Cut { positions: 48, ..CUT }));
                    for block_size in [16, 48, 64] {
                        let cut = Cut { positions: 48, block_size, in_place: true, ..CUT };
                        let got = bits(&attend(tier, &s, &rows, 0.5, cut));
                        assert_eq!(got, staged, "{tier} {cut:?} {head_dim} {v_dim} {kv_len} {heads}");
                    }
                }
            }
        }
    }
}

#[test]
fn right_for_every_head_dim() {
    let mut random = Random::new(1);
    for (head_dim, v_dim) in [
        (1, 1),
        (15, 17),
        (16, 16),
        (32, 33),
        (56, 64),
        (64, 64),
        (80, 96),
        (128, 128),
        (192, 128),
        (224, 31),
        (576, 512),
    ] {
        let s = Sequence::random(75, head_dim, v_dim, &mut random);
        let rows = causal(&s, 5, 3, &mut random);
        for tier in Tier::available() {
            check(tier, &s, &rows, 0.3, CUT);
        }
    }
}

#[test]
fn right_for_every_length() {
    let mut random = Random::new(2);
    for kv_len in (1..=70).chain([127, 128, 129, 255, 256, 257, 300]) {
        let s = Sequence::random(kv_len, 8, 8, &mut random);
        let rows = causal(&s, kv_len.min(3), 1, &mut random);
        for tier in Tier::available() {
            for positions in [16, 48, 256] {
                check(tier, &s, &rows, 1.0, Cut { positions, ..CUT });
            }
        }
    }
}

#[test]
fn a_row_has_the_same_bits_in_every_tile_and_block_size() {
    let mut random = Random::new(3);
    for (kv_len, head_dim, v_dim) in [(40, 16, 16), (100, 24, 40), (70, 64, 96)] {
        let s = Sequence::random(kv_len, head_dim, v_dim, &mut random);
        let rows = causal(&s, kv_len, 2, &mut random);
        for tier in Tier::available() {
            let alone = bits(&attend(tier, &s, &rows, 0.5, Cut { tile_rows: 1, ..CUT }));
            for tile_rows in 2..=12 {
                let got = bits(&attend(tier, &s, &rows, 0.5, Cut { tile_rows, ..CUT }));
                assert_eq!(got, alone, "{tier} tiles of {tile_rows}");
            }
            for block_size in [1, 3, 32, 64] {
                let got = bits(&attend(tier, &s, &rows, 0.5, Cut { block_size, ..CUT }));
                assert_eq!(got, alone, "{tier} blocks of {block_size}");
            }
            let got = bits(&attend(tier, &s, &rows, 0.5, Cut { apart: true, ..CUT }));
            assert_eq!(got, alone, "{tier} parts merged afterwards");
        }
    }
}

#[test]
fn the_sign_of_zero_does_not_tell_how_parts_were_merged() {
    // In the second part every product is -0 (the first by underflow), and what is left of the first part is -0 too.
    let mut s = Sequence::random(34, 1, 1, &mut Random::new(0));
    (s.keys, s.values) = (vec![0.0; 34], vec![-1.0; 34]);
    (s.keys[32], s.keys[33]) = (200.0, 280.0);
    (s.values[32], s.values[33]) = (-1e-30, -0.0);
    let row = Row { query: vec![1.0], visible: 0..34 };
    for tier in Tier::available() {
        let [joint, apart] = [false, true]
            .map(|apart| bits(&attend(tier, &s, std::slice::from_ref(&row), 1.0, Cut { apart, ..CUT })));
        assert_eq!(joint, apart, "{tier}");
    }
}

#[test]
fn windows_and_unlike_rows_share_a_tile() {
    let mut random = Random::new(4);
    let s = Sequence::random(90, 20, 40, &mut random);
    for round in 0..40 {
        let rows: Vec<Row> = (0..12)
            .map(|_| {
                let (a, b) = (random.below(91), random.below(91));
                Row { query: random.floats(20), visible: a.min(b)..a.max(b) }
            })
            .collect();
        for tier in Tier::available() {
            let tile_rows = 1 + round % 12;
            let cut = Cut { tile_rows, positions: 48, ..CUT };
            check(tier, &s, &rows, 0.7, cut);
            let alone = bits(&attend(tier, &s, &rows, 0.7, Cut { tile_rows: 1, ..cut }));
            assert_eq!(bits(&attend(tier, &s, &rows, 0.7, cut)), alone, "{tier} round {round}");
        }
    }
}

#[test]
fn soft_caps_bound_the_scores_of_every_tile() {
    let mut random = Random::new(11);
    for cap in [0.3, 2.0, 50.0] {
        let mut s = Sequence::random(90, 20, 40, &mut random);
        s.soft_cap = Some(cap);
        let mut rows = causal(&s, 12, 1, &mut random);
        rows.iter_mut().step_by(2).for_each(|row| row.visible.start = row.visible.end - 21);
        for tier in Tier::available() {
            check(tier, &s, &rows, 3.0, CUT);
            let alone = bits(&attend(tier, &s, &rows, 3.0, Cut { tile_rows: 1, ..CUT }));
            for tile_rows in [2, 3, 5, 12] {
                let got = bits(&attend(tier, &s, &rows, 3.0, Cut { tile_rows, ..CUT }));
                assert_eq!(got, alone, "{tier} cap {cap} in tiles of {tile_rows}");
            }
        }
    }
}

#[test]
fn what_a_row_does_not_see_does_not_reach_it() {
    let mut random = Random::new(5);
    let clean = Sequence::random(64, 16, 40, &mut random);
    let rows: Vec<Row> = [0..20, 5..21, 3..17, 0..1, 7..7, 40..41]
        .into_iter()
        .map(|visible| Row { query: random.floats(16), visible })
        .collect();
    for poison in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1e30] {
        for tier in Tier::available() {
            let want = bits(&attend(tier, &clean, &rows, 1.0, CUT));
            for tile_rows in [1, 3, 6] {
                for (i, row) in rows.iter().enumerate() {
                    // Poison everything that this row does not see.
                    let mut s = clean.clone();
                    for position in (0..64).filter(|position| !row.visible.contains(position)) {
                        s.keys[position * 16..][..16].fill(poison);
                        s.values[position * 40..][..40].fill(poison);
                    }
                    let got = bits(&attend(tier, &s, &rows, 1.0, Cut { tile_rows, ..CUT }));
                    assert_eq!(got[i], want[i], "{tier} row {i} with {poison} in tiles of {tile_rows}");
                }
            }
        }
    }
}

#[test]
fn one_key_gives_its_value() {
    let mut random = Random::new(6);
    let s = Sequence::random(33, 4, 50, &mut random);
    for tier in Tier::available() {
        for at in [0, 15, 16, 31, 32] {
            let row = Row { query: random.floats(4), visible: at..at + 1 };
            let got = attend(tier, &s, &[row], 1.0, CUT);
            assert_eq!(got[0].0, s.values[at * 50..][..50], "{tier} position {at}");
        }
    }
}

#[test]
fn scores_may_be_far_below_or_above_zero() {
    let mut random = Random::new(7);
    let mut s = Sequence::random(80, 1, 3, &mut random);
    for offset in [-6e4, -3e30, 6e4, 3e30] {
        s.keys.iter_mut().enumerate().for_each(|(i, k)| *k = offset + (i % 5) as f32);
        let row = Row { query: vec![1.0], visible: 0..80 };
        for tier in Tier::available() {
            let got = attend(tier, &s, std::slice::from_ref(&row), 1.0, CUT);
            let (want, lse) = s.exact(&row, 1.0);
            assert!(
                got[0].0.iter().zip(&want).all(|(&got, want)| (f64::from(got) - want).abs() < 1e-5),
                "{tier} {offset}: {:?} instead of {want:?}",
                got[0].0
            );
            assert!((f64::from(got[0].1) - lse).abs() <= lse.abs() * 1e-7, "{tier} {offset}");
        }
    }
}

#[test]
fn scores_of_minus_infinity_count_as_unseen() {
    let mut random = Random::new(8);
    let mut s = Sequence::random(64, 1, 3, &mut random);
    s.keys[..32].fill(f32::NEG_INFINITY);
    for tier in Tier::available() {
        let query = vec![1.0];
        let rows =
            [Row { query: query.clone(), visible: 0..32 }, Row { query: query.clone(), visible: 0..40 }];
        let got = attend(tier, &s, &rows, 1.0, CUT);
        assert_eq!(got[0], (vec![0.0; 3], f32::NEG_INFINITY), "{tier}");
        let seen = attend(tier, &s, &[Row { query, visible: 32..40 }], 1.0, CUT);
        assert_eq!(bits(&got[1..]), bits(&seen), "{tier}");
    }
}

#[test]
fn a_seen_nan_is_not_hidden() {
    let mut random = Random::new(9);
    for (at, others) in [(3, 1.0), (3, f32::NEG_INFINITY), (31, 1.0), (40, 1.0)] {
        let mut s = Sequence::random(50, 1, 3, &mut random);
        s.keys.fill(others);
        s.keys[at] = f32::NAN;
        for tier in Tier::available() {
            let got = attend(tier, &s, &[Row { query: vec![1.0], visible: 0..50 }], 1.0, CUT);
            assert!(got[0].0.iter().all(|x| x.is_nan()) && got[0].1.is_nan(), "{tier} NaN at {at}: {got:?}");
        }
    }
}

#[test]
fn no_rows_see_anything_in_an_empty_sequence() {
    let mut random = Random::new(10);
    let s = Sequence::random(0, 4, 4, &mut random);
    let row = Row { query: random.floats(4), visible: 0..0 };
    for tier in Tier::available() {
        for apart in [false, true] {
            let got = attend(tier, &s, std::slice::from_ref(&row), 1.0, Cut { apart, ..CUT });
            assert_eq!(got[0], (vec![0.0; 4], f32::NEG_INFINITY), "{tier}");
        }
    }
}

macro_rules! listed {
    ($($rows:literal),*) => { [$($rows),*] };
}

#[test]
fn rows_choose_the_tile() {
    for (rows, expected) in [(1, 2), (2, 2), (3, 2), (4, 1), (5, 1), (11, 1), (12, 1)] {
        assert_eq!(wide(rows), expected, "{rows} rows");
    }
    // Tasks have tiles of 1 to 12 rows, and each of these is compiled.
    assert!(tiles!(listed).into_iter().eq(1..=MAX_ROWS));
}

#[test]
fn what_every_row_sees_goes_without_masks() {
    let span = |any: Range<usize>, all: Range<usize>| Some(Span { any, all });
    let one = std::slice::from_ref(&(0..7));
    for (visible, expected) in [
        (&[][..], None),
        (&[0..0, 5..5], None),
        (&[0..0, 3..9], span(3..9, 3..9)),
        (one, span(0..7, 0..7)),
        // A causal tile, a window, and rows that have nothing in common.
        (&[0..7, 0..8, 0..9], span(0..9, 0..7)),
        (&[2..7, 3..8], span(2..8, 3..7)),
        (&[0..3, 3..8], span(0..8, 0..0)),
        (&[1..3, 5..8], span(1..8, 1..1)),
    ] {
        assert_eq!(super::span(visible, None), expected, "{visible:?}");
    }
    // From the first position that a row may miss, every position is asked for.
    let lanes = [PartLanes::default(); 2];
    for (from, expected) in [(0, 0..0), (1, 0..1), (5, 0..5), (7, 0..7), (8, 0..7)] {
        let gaps = Some(Gaps { from, lanes: &lanes });
        assert_eq!(super::span(&[0..7, 0..8], gaps), span(0..8, expected), "from {from}");
    }
}
