//! Sequences laid out in KV blocks by hand, to be cut into steps in any way.

use halite_engine::runner::{Runner, SequencePart, StepBatch};
use std::collections::BTreeMap;
use std::ops::Range;

/// A sequence and the blocks that its keys and values go to.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    pub(crate) tokens: Vec<u32>,
    pub(crate) blocks: Vec<u32>,
    pub(crate) block_size: usize,
}

impl Sequence {
    fn slot_mapping(&self, range: Range<usize>) -> Vec<i64> {
        let slot = |position: usize| {
            self.blocks[position / self.block_size] as usize * self.block_size + position % self.block_size
        };
        range.map(|position| slot(position) as i64).collect()
    }
}

/// Gives each sequence blocks of its own, never side by side.
pub(crate) fn lay_out(runner: &dyn Runner, sequences: &[Vec<u32>]) -> Vec<Sequence> {
    let (block_size, blocks) = (runner.info().block_size, runner.info().kv_blocks);
    // A stride that shares no factor with the number of blocks visits all of them.
    let stride = (blocks / 3..).find(|&stride| stride > 0 && gcd(stride, blocks) == 1).unwrap();
    let mut next = 0;
    let mut take = || {
        next += 1;
        assert!(next <= blocks, "the test's cache is too small");
        (next * stride % blocks) as u32
    };
    let laid_out = sequences.iter().map(|tokens| Sequence {
        tokens: tokens.clone(),
        blocks: (0..tokens.len().div_ceil(block_size)).map(|_| take()).collect(),
        block_size,
    });
    laid_out.collect()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Computes parts of sequences in one step; returns the logits' bits by sequence and position.
pub(crate) fn step(
    runner: &mut dyn Runner,
    parts: &[(usize, &Sequence, Range<usize>)],
    wanted: &[usize],
) -> BTreeMap<(usize, usize), Vec<u32>> {
    let mut batch = StepBatch::new();
    let mut places = Vec::new();
    for (name, sequence, range) in parts {
        let blocks = range.end.div_ceil(sequence.block_size);
        let rows = batch.push(SequencePart {
            start: range.start,
            tokens: &sequence.tokens[range.clone()],
            slot_mapping: &sequence.slot_mapping(range.clone()),
            block_table: &sequence.blocks[..blocks],
        });
        for &position in wanted.iter().filter(|position| range.contains(position)) {
            batch.logits.push(rows.start + position - range.start);
            places.push((*name, position));
        }
    }
    let output = runner.step(&batch).unwrap();
    let rows = output.logits.chunks_exact(runner.info().vocabulary);
    assert_eq!(rows.len(), places.len());
    places.into_iter().zip(rows.map(|row| row.iter().map(|value| value.to_bits()).collect())).collect()
}

/// Computes `sequence` from `start` on in chunks of `chunk` tokens.
pub(crate) fn in_chunks(
    runner: &mut dyn Runner,
    sequence: &Sequence,
    start: usize,
    chunk: usize,
    wanted: &[usize],
) -> BTreeMap<usize, Vec<u32>> {
    let mut found = BTreeMap::new();
    let mut at = start;
    while at < sequence.tokens.len() {
        let end = (at + chunk).min(sequence.tokens.len());
        found.extend(
            step(runner, &[(0, sequence, at..end)], wanted).into_iter().map(|((_, p), bits)| (p, bits)),
        );
        at = end;
    }
    found
}
