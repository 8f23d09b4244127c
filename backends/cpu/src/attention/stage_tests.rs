//! Staged parts against the sequence, in every tier.

use std::ops::Range;

use half::{bf16, f16};

use super::*;
use crate::{
    attention::sequence::Sequence,
    simd::{Tier, random::Random},
};
use halite_kernels::attention::ValueProducts;

/// What a part must hold of positions from `start` on, but for those that were left out.
fn check(tier: Tier, s: &Sequence, part: &Part<'_>, start: usize, places: Range<usize>, what: &str) {
    let len = places.end;
    for at in places.start..len.next_multiple_of(LANES) {
        for d in 0..s.head_dim {
            let got = part.keys()[((at / LANES) * s.head_dim + d) * LANES + at % LANES];
            let want = if at < len { s.keys[(start + at) * s.head_dim + d] } else { 0.0 };
            assert_eq!(got.to_bits(), want.to_bits(), "{tier} {what}: key {at}, element {d}");
        }
    }
    for at in places {
        for column in 0..s.v_dim.next_multiple_of(CHUNK) {
            let row = (column / CHUNK) * part.shape().positions() + at;
            let got = part.values()[row * CHUNK + column % CHUNK];
            let want = if column < s.v_dim { s.values[(start + at) * s.v_dim + column] } else { 0.0 };
            assert_eq!(got.to_bits(), want.to_bits(), "{tier} {what}: value {at}, column {column}");
        }
    }
}

#[test]
fn every_block_size_gives_the_same_part() {
    let mut random = Random::new(1);
    for (head_dim, v_dim) in [(1, 1), (5, 16), (16, 33), (7, 64)] {
        let s = Sequence::random(150, head_dim, v_dim, &mut random);
        for block_size in [1, 2, 3, 7, 15, 16, 17, 32, 48, 64, 256] {
            let paged = s.paged(block_size);
            for (start, from, len) in [
                (0, 0, 0),
                (0, 0, 1),
                (0, 0, 48),
                (48, 0, 47),
                (96, 0, 33),
                (144, 0, 6),
                (0, 16, 48),
                (48, 32, 47),
                (96, 32, 33),
            ] {
                for tier in Tier::available() {
                    let shape = PartShape::new(head_dim, v_dim, 48);
                    let mut lines = vec![Line::default(); shape.part_lines()];
                    bytemuck::cast_slice_mut::<Line, f32>(&mut lines).fill(f32::NAN);
                    let mut part = Part::new(shape, &mut lines);
                    tier.run(Stage { part: &mut part, start, from, len, block_size, blocks: &paged });
                    check(
                        tier,
                        &s,
                        &part,
                        start,
                        from..len,
                        &format!("block size {block_size}, {from} to {len} of the part at {start}"),
                    );
                    let skipped = &part.keys()[..from * head_dim];
                    assert!(skipped.iter().all(|x| x.is_nan()), "{tier} {from} left out");
                }
            }
        }
    }
}

/// A cache of one block with these elements and scales.
struct Counted<'a, T>(Stored<'a, T>);

impl<T: StoredKv> KvBlocks for Counted<'_, T> {
    type Element = T;
    fn keys(&self, _: usize) -> Stored<'_, T> {
        self.0
    }
    fn values(&self, _: usize) -> Stored<'_, T> {
        self.0
    }
}

#[test]
fn stored_types_widen() {
    // The n-th element stands for n / 8.
    fn check_type<T: StoredKv>(narrow: fn(f32) -> T, scale: Option<f32>) {
        for tier in Tier::available() {
            let shape = PartShape::new(4, 4, 32);
            let mut lines = vec![Line::default(); shape.part_lines()];
            let mut part = Part::new(shape, &mut lines);
            let elements: Vec<T> = (0..80).map(|n| narrow(n as f32 / 8.0)).collect();
            let scales: Vec<f32> = scale.map(|scale| vec![scale; 20]).unwrap_or_default();
            let blocks = Counted(Stored { elements: &elements, scales: &scales });
            tier.run(Stage { part: &mut part, start: 0, from: 0, len: 20, block_size: 20, blocks });
            // Keys are [head_dim][block_size], values [block_size][v_dim].
            assert_eq!(part.keys()[2 * LANES + 3], 43.0 / 8.0, "{tier}");
            assert_eq!(part.keys()[(4 + 3) * LANES + 3], 79.0 / 8.0, "{tier}");
            assert_eq!(part.values()[19 * CHUNK + 3], 79.0 / 8.0, "{tier}");
        }
    }
    check_type(|x| x, None);
    check_type(bf16::from_f32, None);
    check_type(f16::from_f32, None);
    check_type(|x| (x * 8.0) as i8, Some(0.125));
}

#[test]
fn each_slot_has_its_own_scale_whatever_the_block_size() {
    // Elements of 1: keys and values are the scales. Scales past the sequence are NaN.
    let ones = vec![1i8; 5 * 64];
    for tier in Tier::available() {
        for block_size in [1, 2, 3, 16, 20, 33, 64] {
            let (start, len) = (0, 37.min(block_size));
            let scales: Vec<f32> =
                (0..block_size).map(|slot| if slot < len { slot as f32 + 0.5 } else { f32::NAN }).collect();
            let shape = PartShape::new(5, 5, 48);
            let mut lines = vec![Line::default(); shape.part_lines()];
            let mut part = Part::new(shape, &mut lines);
            let blocks = Counted(Stored { elements: &ones, scales: &scales });
            tier.run(Stage { part: &mut part, start, from: 0, len, block_size, blocks });
            for at in 0..len {
                let key = part.keys()[(at / LANES * 5 + 4) * LANES + at % LANES];
                let value = part.values()[at * CHUNK + 4];
                assert_eq!((key, value), (at as f32 + 0.5, at as f32 + 0.5), "{tier} {block_size} at {at}");
            }
            for at in len..len.next_multiple_of(LANES) {
                assert_eq!(
                    part.keys()[at / LANES * 5 * LANES + at % LANES],
                    0.0,
                    "{tier} {block_size} at {at}"
                );
            }
        }
    }
}

#[test]
fn queries_widen() {
    struct Query<'a>(&'a [bf16], &'a mut [f32]);
    impl Kernel for Query<'_> {
        type Output = ();
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) {
            stage_query(isa, self.0, self.1);
        }
    }
    for tier in Tier::available() {
        for len in [1, 15, 16, 17, 80] {
            let from: Vec<bf16> = (0..len).map(|i| bf16::from_f32(i as f32)).collect();
            let mut to = vec![f32::NAN; len];
            tier.run(Query(&from, &mut to));
            assert!(to.iter().enumerate().all(|(i, &x)| x == i as f32), "{tier} {len}");
        }
    }
}

#[test]
#[should_panic(expected = "parts of 40 positions")]
fn parts_are_whole_vectors() {
    PartShape::new(64, 64, 40);
}

#[test]
fn lanes_are_filled_by_where_they_begin_and_how_many_they_are() {
    for (lane, len, expected) in [
        (0, 1, Fill::FromTheFirst),
        (0, 3, Fill::FromTheFirst),
        (0, 15, Fill::FromTheFirst),
        (0, 16, Fill::FromTheFirst),
        (1, 1, Fill::OneByOne),
        (1, 3, Fill::OneByOne),
        (1, 4, Fill::Within),
        (1, 15, Fill::Within),
        (13, 3, Fill::OneByOne),
        (12, 4, Fill::Within),
        (15, 1, Fill::OneByOne),
    ] {
        assert_eq!(Fill::of(lane, len), expected, "{len} from lane {lane}");
    }
}

#[test]
fn arithmetic_and_sizes_choose_the_layout_of_a_part() {
    let (scores, both) = (ValueProducts::Float, ValueProducts::Int8);
    let int8 = |values| AttentionCompute::Int8 { values };
    // Elements of a query, lines of keys and of values.
    for (head_dim, v_dim, positions, compute, expected) in [
        (64, 64, 256, AttentionCompute::Float, (64, 16 * 64, 2 * 256 * 2)),
        // An even number of groups, and whole chunks of values.
        (64, 1, 16, AttentionCompute::Float, (64, 2 * 64, 16 * 2)),
        (64, 32, 48, AttentionCompute::Float, (64, 4 * 64, 48 * 2)),
        (64, 33, 48, AttentionCompute::Float, (64, 4 * 64, 2 * 48 * 2)),
        // Four bytes in the place of a float, and a scale a position; a query's scale and sum.
        (64, 64, 256, int8(scores), (18, 16 * 16 + 16, 2 * 256 * 2)),
        (65, 64, 256, int8(scores), (19, 16 * 17 + 16, 2 * 256 * 2)),
        (64, 64, 256, int8(both), (18, 16 * 16 + 16, 2 * 64 * 2 + 16)),
        (1, 1, 16, int8(both), (3, 2 + 1, 4 * 2 + 1)),
    ] {
        let shape = PartShape::new(head_dim, v_dim, positions).with_compute(compute);
        let chosen = (shape.query_stride(), shape.key_lines(), shape.value_lines());
        assert_eq!(chosen, expected, "{shape:?}");
    }
}
