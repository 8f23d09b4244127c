//! The slots of a step.

use std::ops::Range;

use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    Checked,
    cache::{KvCacheInfo, SlotLimits, SlotMapping, SlotPlan},
};

use super::AscendKvCache;
use crate::{device::Ascend, stream::AscendStream};

/// The slots of a step: one table on the device.
#[derive(Debug)]
pub struct AscendSlots {
    cache_slots: usize,
    tokens: usize,
    /// I32 `[max_tokens]`; what stands at tokens without a slot is never read.
    table: Tensor<Ascend>,
    /// The tokens that have slots. What CANN does with a slot that is none it does not say.
    runs: Vec<Range<usize>>,
}

impl AscendSlots {
    pub(super) fn new(device: &Ascend, cache: &AscendKvCache, max_tokens: usize) -> Result<Self> {
        let table = Tensor::new(device, DType::I32, &[max_tokens])?;
        Ok(AscendSlots { cache_slots: cache.slots(), tokens: 0, table, runs: Vec::new() })
    }

    pub(super) fn update(
        &mut self,
        stream: &mut AscendStream,
        mapping: &Checked<SlotMapping<'_>, SlotLimits>,
    ) -> Result<()> {
        mapping.checked_against("cache", &self.limits())?;
        self.tokens = 0;
        // Slots of a cache are below 2^31, and these are below the cache's.
        let slots: Vec<i32> = mapping.slots.iter().map(|&slot| i32::try_from(slot).unwrap_or(-1)).collect();
        stream.stage(self.table.buffer(), self.table.offset(), bytemuck::cast_slice(&slots))?;
        self.runs = runs(&slots);
        self.tokens = slots.len();
        Ok(())
    }

    /// Tokens that follow each other and have slots, and the slots of each such run, I32 `[tokens]`.
    pub(super) fn runs(&self) -> impl Iterator<Item = Result<(Range<usize>, Tensor<Ascend>)>> {
        self.runs.iter().map(|run| Ok((run.clone(), self.table.narrow(0, run.clone())?)))
    }
}

/// Where slots are none below 0, as far as it goes.
fn runs(slots: &[i32]) -> Vec<Range<usize>> {
    let mut start = 0;
    let parts = slots.chunk_by(|a, b| (*a < 0) == (*b < 0));
    let ranges = parts.map(|part| {
        let run = start..start + part.len();
        start = run.end;
        (part[0] >= 0, run)
    });
    ranges.filter(|(have, _)| *have).map(|(_, run)| run).collect()
}

impl SlotPlan for AscendSlots {
    fn max_tokens(&self) -> usize {
        self.table.dims()[0]
    }

    fn cache_slots(&self) -> usize {
        self.cache_slots
    }

    fn tokens(&self) -> usize {
        self.tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_without_slots_part_runs() {
        assert_eq!(runs(&[-1, 5, 0, -1, -1, 7]), [1..3, 5..6]);
        assert_eq!(runs(&[3, 2, -7, 1]), [0..2, 3..4]);
        assert_eq!(runs(&[-1]), []);
        assert_eq!(runs(&[]), []);
    }
}
