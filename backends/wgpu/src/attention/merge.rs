//! Partial results made one.

use super::call::STATE;
use crate::{
    device::Wgpu,
    launch::{Access, Launch, Shader, spread},
    operand::Operand,
    rows::Rows,
    stream::WgpuStream,
};
use halite_hal::{DType, Device, Result, Stream};
use halite_kernels::attention::{AttentionMergeArgs, AttentionPart};

static MERGE: Shader = Shader { name: "attention_merge", source: &[STATE, include_str!("merge.wgsl")] };

/// Parts that a dispatch binds beside the result, and where there is a state beside that.
const AT_ONCE: usize = 3;
const WITH_STATE: usize = 2;

/// The names of a part's output, its log-sum-exp, and their strides.
const NAMES: [[&str; 5]; AT_ONCE] = [
    ["a", "a_log", "a_token", "a_head", "a_log_token"],
    ["b", "b_log", "b_token", "b_head", "b_log_token"],
    ["c", "c_log", "c_token", "c_head", "c_log_token"],
];

pub(super) fn merge(stream: &mut WgpuStream, args: &AttentionMergeArgs<'_, Wgpu>) -> Result<()> {
    let Rows { outer, inner, columns, .. } = Rows::of(args.out);
    if args.parts.len() <= AT_ONCE {
        return dispatch(stream, args, args.parts, None, [false, true]);
    }
    // More than a dispatch binds: the state of those so far waits in memory of this call's own.
    let words = outer * inner * (columns + 2);
    let state = Operand::all(&stream.device().alloc(4 * words as u64)?, DType::F32);
    let last = (args.parts.len() - 1) / WITH_STATE;
    for (number, parts) in args.parts.chunks(WITH_STATE).enumerate() {
        dispatch(stream, args, parts, Some(&state), [number > 0, number == last])?;
    }
    Ok(())
}

/// Merges some parts, after those of `state` if it `begins` with them, to the result if it `ends` with them.
fn dispatch(
    stream: &mut WgpuStream,
    args: &AttentionMergeArgs<'_, Wgpu>,
    parts: &[AttentionPart<'_, Wgpu>],
    state: Option<&Operand>,
    [begins, ends]: [bool; 2],
) -> Result<()> {
    let (dtype, out) = (args.spec.dtype, Rows::of(args.out));
    let log = args.log_sum_exp.filter(|_| ends);
    let mut launch = Launch::new(&MERGE)
        .maybe("out", Access::Out, dtype, ends.then_some(args.out))
        .maybe("log_sum_exp", Access::Out, DType::F32, log)
        .maybe("sinks", Access::In, DType::F32, None)
        .optional("scratch", Access::InOut, DType::F32, state.cloned());
    for (number, [name, log_name, token, head, log_token]) in NAMES.into_iter().enumerate() {
        let part = parts.get(number);
        let (rows, log) = (part.map(|part| Rows::of(part.out)), part.map(|part| Rows::of(part.log_sum_exp)));
        launch = launch
            .maybe(name, Access::In, dtype, part.map(|part| part.out))
            .maybe(log_name, Access::In, DType::F32, part.map(|part| part.log_sum_exp))
            .size(token, rows.map_or(0, |rows| rows.outer_stride))
            .size(head, rows.map_or(0, |rows| rows.inner_stride))
            .size(log_token, log.map_or(0, |log| log.outer_stride));
    }
    let launch = launch
        .constant("PARTS", parts.len() as u32)
        .flag("BEGINS", begins)
        .size("tokens", out.outer)
        .size("heads", out.inner)
        .size("value_dim", out.columns)
        .size("out_token", out.outer_stride)
        .size("out_head", out.inner_stride)
        .size("log_token", log.map_or(0, |log| Rows::of(log).outer_stride));
    stream.launch(launch, spread(out.outer * out.inner))
}
