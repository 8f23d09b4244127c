//! One admitted request.

use super::event::{FinishReason, Finished};
use super::kv_blocks::BlockTable;
use super::plan::ScheduledSequence;
use super::request::Request;

/// Names an admitted request for as long as the scheduler lives. Ids ascend in the order of admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceId(pub(super) u64);

impl SequenceId {
    /// The id as a number, for logs.
    pub fn get(self) -> u64 {
        self.0
    }
}

/// Where an unfinished sequence stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SequenceStatus {
    /// Holds no blocks: not started, or preempted.
    Waiting,
    /// Holds blocks and is part of the steps.
    Running,
}

/// The state of an unfinished sequence. Whether it waits or runs is told by the map that holds it.
#[derive(Debug)]
pub(super) struct Sequence {
    /// The prompt, then what was generated. Preemption keeps them all.
    pub(super) tokens: Vec<u32>,
    prompt_len: usize,
    max_tokens: usize,
    stop_tokens: Vec<u32>,
    /// The first tokens whose KV is in `table`: written by completed steps or attached from the cache.
    pub(super) computed: usize,
    pub(super) table: BlockTable,
    /// Tokens attached from the cache when it first ran.
    pub(super) cached_tokens: usize,
    pub(super) preemptions: usize,
    pub(super) started: bool,
}

impl Sequence {
    pub(super) fn new(request: Request) -> Self {
        let Request { prompt, max_tokens, stop_tokens, domain, prefix_reuse } = request;
        Self {
            prompt_len: prompt.len(),
            tokens: prompt,
            max_tokens,
            stop_tokens,
            computed: 0,
            table: BlockTable::new(domain, prefix_reuse),
            cached_tokens: 0,
            preemptions: 0,
            started: false,
        }
    }

    /// Tokens known but not computed: always at least one, and just one while decoding.
    pub(super) fn remaining(&self) -> usize {
        self.tokens.len() - self.computed
    }

    /// Blocks it will need for the tokens known now.
    pub(super) fn blocks_needed(&self, block_size: usize) -> usize {
        self.tokens.len().div_ceil(block_size)
    }

    /// What a step computes to bring it up to `end` tokens; its table must have the blocks for them.
    pub(super) fn scheduled(&self, id: SequenceId, end: usize, block_size: usize) -> ScheduledSequence {
        let range = self.computed..end;
        let slot = |position: usize| {
            let block = self.table.blocks[position / block_size].index() as usize;
            (block * block_size + position % block_size) as i64
        };
        ScheduledSequence {
            id,
            tokens: self.tokens[range.clone()].to_vec(),
            slot_mapping: range.clone().map(slot).collect(),
            block_table: self.table.blocks[..end.div_ceil(block_size)].iter().map(|b| b.index()).collect(),
            wants_logits: end == self.tokens.len(),
            range,
        }
    }

    /// Takes a sampled token. `Some`: this was the end. A stop token does not become part of the answer.
    pub(super) fn accept(&mut self, token: u32, context_limit: usize) -> Option<FinishReason> {
        if self.stop_tokens.contains(&token) {
            return Some(FinishReason::Stop);
        }
        self.tokens.push(token);
        let generated = self.tokens.len() - self.prompt_len;
        let full = generated >= self.max_tokens || self.tokens.len() >= context_limit;
        full.then_some(FinishReason::Length)
    }

    /// Its result. Its blocks must have been released.
    pub(super) fn finished(mut self, id: SequenceId, reason: FinishReason) -> Finished {
        Finished {
            id,
            reason,
            generated: self.tokens.split_off(self.prompt_len),
            prompt_tokens: self.prompt_len,
            cached_tokens: self.cached_tokens,
            preemptions: self.preemptions,
        }
    }
}
