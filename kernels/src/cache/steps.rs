//! Copies of blocks in steps, for backends that copy many blocks at once.

use std::collections::{HashMap, HashSet};

/// Pairs `(from, to)` of blocks in three steps, of which none writes what it reads, done one after the other: together they
/// copy as if all reads came before all writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockSteps {
    /// From a block that is read and written to a place in other memory, counted from 0: as many places as there are pairs.
    pub aside: Vec<(u32, u32)>,
    /// From block to block.
    pub direct: Vec<(u32, u32)>,
    /// From such a place to a block.
    pub back: Vec<(u32, u32)>,
}

impl BlockSteps {
    /// Of pairs whose destinations are distinct; `within_one` where both blocks of a pair are of one cache. Blocks that are
    /// copied to themselves come in no step.
    pub fn of(pairs: &[(u32, u32)], within_one: bool) -> Self {
        if !within_one {
            return BlockSteps { direct: pairs.to_vec(), ..BlockSteps::default() };
        }
        let moving = || pairs.iter().copied().filter(|(from, to)| from != to);
        let written: HashSet<u32> = moving().map(|(_, to)| to).collect();
        let (mut steps, mut places) = (BlockSteps::default(), HashMap::new());
        for (from, to) in moving() {
            if !written.contains(&from) {
                steps.direct.push((from, to));
                continue;
            }
            let place = *places.entry(from).or_insert_with(|| {
                let place = steps.aside.len() as u32;
                steps.aside.push((from, place));
                place
            });
            steps.back.push((place, to));
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blocks_that_are_read_and_written_go_aside() {
        let pairs = [(0, 1), (1, 0), (2, 3), (3, 4), (3, 5), (6, 6)];
        let steps = BlockSteps::of(&pairs, true);
        assert_eq!(steps.aside, [(0, 0), (1, 1), (3, 2)]);
        assert_eq!(steps.direct, [(2, 3)]);
        assert_eq!(steps.back, [(0, 1), (1, 0), (2, 4), (2, 5)]);
        assert_eq!(BlockSteps::of(&pairs, false).direct, pairs, "two caches have no block in common");
    }

    #[test]
    fn steps_copy_as_if_all_reads_came_first() {
        let pairs = [(0, 1), (1, 2), (2, 0), (2, 3), (5, 4), (4, 6), (7, 7)];
        let before: Vec<u32> = (100..108).collect();
        let (mut blocks, mut others, mut expected) = (before.clone(), vec![0; 4], before.clone());
        let steps = BlockSteps::of(&pairs, true);
        steps.aside.iter().for_each(|&(from, to)| others[to as usize] = blocks[from as usize]);
        steps.direct.iter().for_each(|&(from, to)| blocks[to as usize] = blocks[from as usize]);
        steps.back.iter().for_each(|&(from, to)| blocks[to as usize] = others[from as usize]);
        pairs.iter().for_each(|&(from, to)| expected[to as usize] = before[from as usize]);
        assert_eq!(blocks, expected);
    }
}
