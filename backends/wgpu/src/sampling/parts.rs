//! Large vocabularies in parts: the first candidate of each, so that a greedy token does not wait for one workgroup; and
//! for draws the few candidates of a row that weigh the most, so that one workgroup rarely goes through a whole row.

use super::{PARAMETERS, ROW, SUMS, WEIGHTS, WIDE};
use crate::{
    device::Wgpu,
    launch::{Access, Launch, Shader, spread},
    operand::Operand,
    rows::Rows,
    stream::WgpuStream,
    table::Table,
};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::sampling::weight_bits;

static FIRSTS: Shader = Shader { name: "sampling", source: &[ROW, include_str!("firsts.wgsl")] };
static NEAR: Shader =
    Shader { name: "sampling", source: &[WIDE, ROW, WEIGHTS, SUMS, PARAMETERS, include_str!("near.wgsl")] };

/// Ids of a part at least.
const PART: usize = 4096;
/// Parts of a row at most: one a lane of who puts them together.
const MAX_PARTS: usize = 256;
/// Candidates of a row's list at most. A row that has more of them is gone through whole.
const LISTED: usize = 4096;

/// How rows are cut, and where what is found of the parts is kept for a call.
#[derive(Debug)]
pub(super) struct Parts {
    count: usize,
    size: usize,
    /// None, where there is one part.
    found: Option<Found>,
}

#[derive(Debug)]
struct Found {
    /// I32 `[rows, parts, 2]`: rank and id of each part's first.
    firsts: Tensor<Wgpu>,
    /// I32 `[rows, 1 + 3 parts + 2 LISTED]`: how long the list is; each part's sum of weights, in two words, and number of
    /// candidates; rank and id of the listed.
    lists: Tensor<Wgpu>,
}

fn part_of(vocabulary: usize) -> usize {
    vocabulary.div_ceil(MAX_PARTS).next_multiple_of(1024).max(PART)
}

impl Parts {
    pub(super) fn new(device: &Wgpu, vocabulary: usize, rows: usize) -> Result<Self> {
        let size = part_of(vocabulary);
        let count = vocabulary.div_ceil(size);
        let words = |words| device.bindable("sampling", "bytes of candidates", DType::I32, &[rows, words]);
        let found = if count > 1 {
            Some(Found { firsts: words(2 * count)?, lists: words(1 + 3 * count + 2 * LISTED)? })
        } else {
            None
        };
        Ok(Parts { count, size, found })
    }

    /// Finds the first of each part and, where rows are drawn from, the list of each row.
    pub(super) fn find(
        &self,
        stream: &mut WgpuStream,
        logits: &Tensor<Wgpu>,
        table: &Table,
        drawn: bool,
    ) -> Result<()> {
        let Some(Found { firsts, lists }) = &self.found else { return Ok(()) };
        let rows = Rows::of(logits);
        let launch = |shader, lists_access| {
            Launch::new(shader)
                .operand("logits", Access::Words, Operand::tensor(logits))
                .operand("firsts", Access::Words, Operand::tensor(firsts))
                .operand("lists", lists_access, Operand::tensor(lists))
                .size("rows", rows.outer)
                .size("row_stride", rows.outer_stride)
                .size("vocabulary", rows.columns)
                .size("parts", self.count)
                .size("part", self.size)
                .size("list_stride", Rows::of(lists).outer_stride)
        };
        let groups = spread(rows.outer * self.count);
        stream.launch(launch(&FIRSTS, Access::Words), groups)?;
        if drawn {
            let near = launch(&NEAR, Access::Atomic)
                .operand("table", Access::Words, table.operand())
                .constant("LISTED", LISTED as u32)
                .size("bits", weight_bits(rows.columns) as usize);
            stream.launch(near, groups)?;
        }
        Ok(())
    }

    /// What was found, for a kernel that goes on from there.
    pub(super) fn bind(&self, launch: Launch) -> Launch {
        let found = self.found.as_ref();
        launch
            .maybe("firsts", Access::Words, DType::I32, found.map(|found| &found.firsts))
            .maybe("lists", Access::Words, DType::I32, found.map(|found| &found.lists))
            .constant("LISTED", LISTED as u32)
            .size("parts", self.count)
            .size("list_stride", found.map_or(0, |found| Rows::of(&found.lists).outer_stride))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::MAX_VOCABULARY;

    #[test]
    fn parts_cover_the_vocabulary_and_fit_a_workgroup() {
        for vocabulary in [1, 4096, 4097, 49_152, 262_144, 1 << 20, (1 << 20) + 1, MAX_VOCABULARY] {
            let part = part_of(vocabulary);
            let parts = vocabulary.div_ceil(part);
            assert!(parts <= MAX_PARTS && part >= PART, "{vocabulary}: {parts} parts of {part}");
        }
    }
}
