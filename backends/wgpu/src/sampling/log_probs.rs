//! Log-probabilities of given tokens, the highest of each row, and those of all tokens.

use super::{CANDIDATE, MAX_VOCABULARY, ROW, SELECT, WEIGHTS, WIDE, limit, weight_bits};
use crate::{
    device::Wgpu,
    launch::{Access, Launch, Shader, spread},
    operand::Operand,
    rows::Rows,
    stream::WgpuStream,
};
use halite_hal::{DType, Result};
use halite_kernels::sampling::LogProbArgs;

static LOG_PROBS: Shader = Shader {
    name: "sampling",
    source: &[WIDE, ROW, WEIGHTS, CANDIDATE, SELECT, include_str!("log_probs.wgsl")],
};

/// The highest are found and sorted so many at a time.
const BLOCK: usize = 1024;
/// Rounds of all loops that finding them may take, of the 65,535 that software adapters make.
const ROUNDS: usize = 36_000;

/// The most of the highest that are found in a row.
fn most(vocabulary: usize) -> usize {
    // For a block of them, seven passes in strides of 1,024 and one in strides of 256.
    ROUNDS / (11 * vocabulary.div_ceil(1024).max(1)) * BLOCK
}

pub(super) fn log_probs(stream: &mut WgpuStream, args: &LogProbArgs<'_, Wgpu>) -> Result<()> {
    let rows = Rows::of(args.logits);
    limit("vocabulary", rows.columns, MAX_VOCABULARY)?;
    // No columns of the highest are the same as none wanted.
    let top = args.top.as_ref().filter(|top| Rows::of(top.ids).columns > 0);
    let highest = top.map_or(0, |top| Rows::of(top.ids).columns);
    limit("top.ids", highest, most(rows.columns))?;
    let bits = weight_bits(rows.columns);
    let launch = Launch::new(&LOG_PROBS)
        .operand("logits", Access::Words, Operand::tensor(args.logits))
        .input("targets", args.targets)
        .output("out", args.out)
        .maybe("ids", Access::Out, DType::I32, top.map(|top| top.ids))
        .maybe("top", Access::Out, DType::F32, top.map(|top| top.log_probs))
        .maybe("all", Access::Out, DType::F32, args.all)
        .flag("NAN_COUNTS", true)
        .size("rows", rows.outer)
        .size("row_stride", rows.outer_stride)
        .size("vocabulary", rows.columns)
        .size("highest", highest)
        .size("ids_stride", top.map_or(0, |top| Rows::of(top.ids).outer_stride))
        .size("top_stride", top.map_or(0, |top| Rows::of(top.log_probs).outer_stride))
        .size("all_stride", args.all.map_or(0, |all| Rows::of(all).outer_stride))
        .size("bits", bits as usize)
        .float("unit", 2f32.powi(-(bits as i32)));
    stream.launch(launch, spread(rows.outer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_vocabularies_can_be_ranked_far_enough() {
        for (vocabulary, least) in
            [(0, 0), (1, 1), (1000, 1000), (50_257, 50_257), (262_144, 8192), (MAX_VOCABULARY, 1024)]
        {
            let most = most(vocabulary);
            assert!(most >= least, "{vocabulary}: {most}");
        }
    }
}
