//! Log-probabilities of given tokens, the highest of each row, and those of all tokens.

use super::{MAX_VOCABULARY, ROW, SUMS, WEIGHTS, WIDE};
use crate::{
    device::Wgpu,
    launch::{Access, Launch, Shader, spread},
    operand::Operand,
    rows::Rows,
    stream::WgpuStream,
    top_k::MAX_COLUMNS,
};
use halite_hal::{DType, Error, Result};
use halite_kernels::{
    sampling::{LogProbArgs, TopLogProbs, weight_bits},
    top_k::{TopK, TopKArgs, TopKSpec},
};

static LOG_PROBS: Shader =
    Shader { name: "sampling", source: &[WIDE, ROW, WEIGHTS, SUMS, include_str!("log_probs.wgsl")] };

pub(super) fn log_probs(device: &Wgpu, stream: &mut WgpuStream, args: &LogProbArgs<'_, Wgpu>) -> Result<()> {
    let rows = Rows::of(args.logits);
    let (argument, most) = match args.top {
        Some(_) => ("vocabulary, with the highest", MAX_VOCABULARY.min(MAX_COLUMNS)),
        None => ("vocabulary", MAX_VOCABULARY),
    };
    if rows.columns > most {
        let (got, limit) = (rows.columns as u64, most as u64);
        return Err(Error::Limit { operator: "sampling", argument, got, limit });
    }
    // The highest logits first, where their log-probabilities are due.
    let top = args.top.as_ref();
    let highest = top.map_or(0, |top| Rows::of(top.ids).columns);
    if let Some(TopLogProbs { ids, log_probs, .. }) = top {
        let spec = &TopKSpec::largest(highest);
        device.top_k(stream, TopKArgs { spec, x: args.logits, values: log_probs, ids }.check()?)?;
    }
    let bits = weight_bits(rows.columns);
    let launch = Launch::new(&LOG_PROBS)
        .operand("logits", Access::Words, Operand::tensor(args.logits))
        .input("targets", args.targets)
        .output("out", args.out)
        .maybe("top", Access::InOut, DType::F32, top.map(|top| top.log_probs))
        .maybe("all", Access::Out, DType::F32, args.all)
        .size("rows", rows.outer)
        .size("row_stride", rows.outer_stride)
        .size("vocabulary", rows.columns)
        .size("highest", highest)
        .size("top_stride", top.map_or(0, |top| Rows::of(top.log_probs).outer_stride))
        .size("all_stride", args.all.map_or(0, |all| Rows::of(all).outer_stride))
        .size("bits", bits as usize)
        .float("unit", 2f32.powi(-(bits as i32)));
    stream.launch(launch, spread(rows.outer))
}
