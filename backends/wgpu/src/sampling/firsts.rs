//! The first candidate of each row: of a large vocabulary in parts, so that a greedy token does not wait for one workgroup.

use super::ROW;
use crate::{
    device::Wgpu,
    launch::{Access, Launch, Shader, spread},
    operand::Operand,
    rows::Rows,
    stream::WgpuStream,
};
use halite_hal::{DType, Result, Tensor};

static FIRSTS: Shader = Shader { name: "sampling", source: &[ROW, include_str!("firsts.wgsl")] };

/// Ids of a part at least.
const PART: usize = 4096;
/// Parts of a row at most: one a lane of who puts them together.
const MAX_PARTS: usize = 256;

/// How rows are cut, and where the first of each part is kept for a call; nowhere, where there is one part.
#[derive(Debug)]
pub(super) struct Firsts {
    parts: usize,
    part: usize,
    /// I32 `[rows, parts, 2]`: rank and id.
    found: Option<Tensor<Wgpu>>,
}

fn part_of(vocabulary: usize) -> usize {
    vocabulary.div_ceil(MAX_PARTS).next_multiple_of(1024).max(PART)
}

impl Firsts {
    pub(super) fn new(device: &Wgpu, vocabulary: usize, rows: usize) -> Result<Self> {
        let part = part_of(vocabulary);
        let parts = vocabulary.div_ceil(part);
        let found = (parts > 1).then(|| Tensor::new(device, DType::I32, &[rows, parts, 2])).transpose()?;
        Ok(Firsts { parts, part, found })
    }

    /// Finds the first of each part.
    pub(super) fn find(&self, stream: &mut WgpuStream, logits: &Tensor<Wgpu>) -> Result<()> {
        let Some(found) = &self.found else { return Ok(()) };
        let rows = Rows::of(logits);
        let launch = Launch::new(&FIRSTS)
            .operand("logits", Access::Words, Operand::tensor(logits))
            .operand("firsts", Access::Words, Operand::tensor(found))
            .size("rows", rows.outer)
            .size("row_stride", rows.outer_stride)
            .size("vocabulary", rows.columns)
            .size("parts", self.parts)
            .size("part", self.part);
        stream.launch(launch, spread(rows.outer * self.parts))
    }

    /// What was found, for a kernel that goes on from there.
    pub(super) fn bind(&self, launch: Launch) -> Launch {
        launch.maybe("firsts", Access::Words, DType::I32, self.found.as_ref()).size("parts", self.parts)
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
