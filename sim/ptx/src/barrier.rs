//! The block's numbered barriers.

use crate::ir::BoolOp;

/// How many a block has.
pub(crate) const BARRIERS: usize = 16;

/// One of them, while threads come to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Barrier {
    /// Threads that have come.
    arrived: u32,
    /// How many must come; all that have not ended, where it is `None`.
    expected: Option<u32>,
    /// Of the predicates that threads brought: how many hold.
    holding: u32,
    /// How many threads brought one.
    asked: u32,
    /// What their warps had done.
    pub(crate) clock: Vec<u64>,
}

impl Barrier {
    /// Some lanes of a warp come, of which the `live` ones have not ended; a barrier with a count counts whole warps.
    pub(crate) fn arrive(
        &mut self,
        number: u32,
        lanes: u32,
        live: u32,
        threads: Option<u32>,
    ) -> Result<(), String> {
        if let Some(threads) = threads.filter(|threads| *threads == 0 || threads % 32 != 0) {
            return Err(format!("barrier {number} of {threads} threads, which is no multiple of 32"));
        }
        if self.arrived > 0 && self.expected != threads {
            let say = |count: Option<u32>| count.map_or("all".to_owned(), |count| count.to_string());
            let (before, now) = (say(self.expected), say(threads));
            return Err(format!("barrier {number} of {now} threads, where others wait at it with {before}"));
        }
        self.expected = threads;
        self.arrived += if threads.is_some() && lanes == live { 32 } else { lanes.count_ones() };
        match threads {
            Some(threads) if self.arrived > threads => {
                Err(format!("barrier {number} of {threads} threads, to which {} come", self.arrived))
            }
            _ => Ok(()),
        }
    }

    /// They bring predicates for `bar.red`.
    pub(crate) fn bring(&mut self, lanes: u32, predicate: u32) {
        self.asked += lanes.count_ones();
        self.holding += (predicate & lanes).count_ones();
    }

    /// Whether all have come, with so many threads of the block that have not ended.
    pub(crate) fn is_complete(&self, live: u32) -> bool {
        self.arrived > 0 && self.arrived >= self.expected.unwrap_or(live)
    }

    /// Whether it waits for all threads.
    pub(crate) fn is_for_all(&self) -> bool {
        self.expected.is_none()
    }

    /// How many of the predicates hold.
    pub(crate) fn count(&self) -> u32 {
        self.holding
    }

    /// The predicates, joined.
    pub(crate) fn reduce(&self, op: BoolOp) -> bool {
        match op {
            BoolOp::And => self.holding == self.asked,
            BoolOp::Or => self.holding > 0,
            BoolOp::Xor => self.holding % 2 == 1,
        }
    }

    /// As before anybody came.
    pub(crate) fn reset(&mut self) {
        self.clock.clear();
        *self = Barrier { clock: std::mem::take(&mut self.clock), ..Barrier::default() };
    }
}
