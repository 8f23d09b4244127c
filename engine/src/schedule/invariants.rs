//! What must hold after every call, checked against the whole state: for tests and debugging.

use std::collections::BTreeMap;

use super::block_pool::BlockState;
use super::prefix_cache::{Parent, PrefixCache};
use super::scheduler::Scheduler;

/// Something that must never be, in words. It is a fault of the scheduler, not of its caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("scheduler invariant broken: {0}")]
pub struct InvariantViolation(String);

impl Scheduler {
    /// Checks that block states and reference counts are exact, that what is cached can be found and reached, that
    /// waiting sequences hold nothing, and that the step in flight writes to no block that could be shared.
    /// Costs O(blocks + all block tables).
    ///
    /// # Errors
    ///
    /// [`InvariantViolation`] says what is broken.
    pub fn check_invariants(&self) -> Result<(), InvariantViolation> {
        let checks = [Self::check_blocks, Self::check_prefixes, Self::check_sequences, Self::check_in_flight];
        checks.iter().try_for_each(|check| check(self)).map_err(InvariantViolation)
    }

    fn check_blocks(&self) -> Result<(), String> {
        self.kv.pool.check()?;
        let mut held: BTreeMap<u32, usize> = BTreeMap::new();
        for block in self.running.values().flat_map(|sequence| &sequence.table.blocks) {
            *held.entry(block.index()).or_default() += 1;
        }
        for (index, block) in (0u32..).zip(&self.kv.pool.blocks) {
            let expected = held.get(&index).copied().unwrap_or(0);
            let counted = match block.state {
                BlockState::Used { references } => references,
                BlockState::Free | BlockState::Cached { .. } => 0,
            };
            if counted != expected {
                return Err(format!("block {index} counts {counted} references, sequences hold {expected}"));
            }
        }
        Ok(())
    }

    fn check_prefixes(&self) -> Result<(), String> {
        let blocks = &self.kv.pool.blocks;
        let digests = blocks.iter().filter(|block| block.digest.is_some()).count();
        let none = PrefixCache::default();
        let cache = self.kv.prefix_cache().unwrap_or(&none);
        if digests != cache.entries.len() {
            return Err(format!(
                "{digests} blocks have a digest, {} are in the prefix cache",
                cache.entries.len()
            ));
        }
        let publications: BTreeMap<_, _> =
            cache.entries.values().map(|entry| (entry.publication, entry.block)).collect();
        let used = |block: u32| matches!(blocks[block as usize].state, BlockState::Used { .. });
        for (digest, entry) in &cache.entries {
            let block = entry.block;
            if blocks[block as usize].digest != Some(*digest) {
                return Err(format!("block {block} is cached under a digest it does not have"));
            }
            if let Parent::Block(parent) = entry.parent {
                match publications.get(&parent) {
                    None => return Err(format!("block {block} is cached, but not the block before it")),
                    Some(&parent) if used(block) && !used(parent) => {
                        return Err(format!("block {block} is used, but not block {parent} before it"));
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }

    fn check_sequences(&self) -> Result<(), String> {
        let oldest_waiting = self.waiting.first_key_value().map(|(&id, _)| id);
        for (&id, sequence) in &self.running {
            let (computed, known) = (sequence.computed, sequence.tokens.len());
            let held = sequence.table.blocks.len() * self.config.block_size;
            if computed >= known || computed > held {
                return Err(format!("{id:?}: {computed} tokens computed, {known} known, blocks for {held}"));
            }
            if oldest_waiting.is_some_and(|waiting| waiting < id) {
                return Err(format!("{id:?} runs while an older sequence waits"));
            }
        }
        for (id, sequence) in &self.waiting {
            if !sequence.table.blocks.is_empty() || sequence.computed != 0 {
                return Err(format!("{id:?} waits but holds blocks"));
            }
        }
        Ok(())
    }

    fn check_in_flight(&self) -> Result<(), String> {
        let size = self.config.block_size;
        for (id, part) in self.in_flight.iter().flat_map(|in_flight| &in_flight.parts) {
            let Some(sequence) = self.running.get(id) else { continue };
            let written = sequence.computed / size..part.end.div_ceil(size);
            for block in &sequence.table.blocks[written] {
                let state = self.kv.pool.blocks[block.index() as usize];
                if state.digest.is_some() || state.state != (BlockState::Used { references: 1 }) {
                    return Err(format!(
                        "{id:?} writes to block {}, which is shared: {state:?}",
                        block.index()
                    ));
                }
            }
        }
        Ok(())
    }
}
