//! Partial results made one.

use halite_hal::{DType, Result, Tensor};
use halite_kernels::attention::{AttentionMergeArgs, AttentionPart};

use super::call::{code, joining};
use crate::{compile::Program, device::Cuda, rows::Rows, stream::CudaStream};

/// Parts of a launch.
const AT_ONCE: usize = 8;

/// The program with both kernels of join.cu.
pub(super) fn programs() -> Vec<Program> {
    vec![joining("attention_merge", "merge").program()]
}

/// Merges up to eight parts in one launch. With more the state of those so far waits in memory that is allocated here, so that
/// a captured stream refuses them.
pub(super) fn merge(stream: &mut CudaStream, args: &AttentionMergeArgs<'_, Cuda>) -> Result<()> {
    let Rows { outer, inner, columns, .. } = Rows::of(args.out);
    let last = (args.parts.len() - 1) / AT_ONCE;
    let mut before: Option<Tensor<Cuda>> = None;
    for (number, parts) in args.parts.chunks(AT_ONCE).enumerate() {
        let device = halite_hal::Stream::device(stream).clone();
        let words = outer.saturating_mul(inner).saturating_mul(columns.saturating_add(2));
        let after = if number < last { Some(Tensor::new(&device, DType::F32, &[words])?) } else { None };
        launch(stream, args, parts, before.as_ref(), after.as_ref())?;
        before = after;
    }
    Ok(())
}

/// Merges some parts after the state `before`, to the result or to the state `after`.
fn launch(
    stream: &mut CudaStream,
    args: &AttentionMergeArgs<'_, Cuda>,
    parts: &[AttentionPart<'_, Cuda>],
    before: Option<&Tensor<Cuda>>,
    after: Option<&Tensor<Cuda>>,
) -> Result<()> {
    let stride = |tensor: Option<&Tensor<Cuda>>| tensor.map_or(0, |tensor| Rows::of(tensor).outer_stride);
    let mut launch = joining("attention_merge", "merge");
    for place in 0..AT_ONCE {
        let out = parts.get(place).map(|part| part.out);
        let log = parts.get(place).map(|part| part.log_sum_exp);
        launch = launch
            .maybe("parts.out", out)
            .maybe("parts.log_sum_exp", log)
            .size("parts.out's stride", stride(out))
            .size("parts.out's stride", out.map_or(0, |out| Rows::of(out).inner_stride))
            .size("parts.log_sum_exp's stride", stride(log));
    }
    let out = Rows::of(args.out);
    let launch = launch
        .maybe("state", before)
        .maybe("state", after)
        .tensor("out", args.out)
        .maybe("log_sum_exp", args.log_sum_exp)
        .size("out's stride", out.outer_stride)
        .size("out's stride", out.inner_stride)
        .size("log_sum_exp's stride", stride(args.log_sum_exp))
        .count("parts", parts.len())
        .int(code(args.spec.dtype))
        .count("value_head_dim", out.columns)
        .count("query_heads", out.inner);
    stream.launch(launch.grid([out.outer * out.inner, 1, 1]))
}
