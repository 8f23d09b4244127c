//! Elements of all ranks, reduced in ascending rank.

use crate::{
    device::Wgpu,
    launch::{Access, Launch, Shader, spread},
    stream::WgpuStream,
};
use halite_hal::{DType, Result, Stream, Tensor};
use halite_kernels::collectives::Reduction;

static FLOATS: Shader = Shader {
    name: "collectives",
    source: &[
        "alias Value = f32;\nfn unordered(x: f32) -> bool { return is_nan(x); }\n",
        include_str!("reduce.wgsl"),
    ],
};
static INTEGERS: Shader = Shader {
    name: "collectives",
    source: &[
        "alias Value = i32;\nfn unordered(x: i32) -> bool { return false; }\n",
        include_str!("reduce.wgsl"),
    ],
};

/// The inputs of one dispatch.
const INPUTS: [&str; 6] = ["x0", "x1", "x2", "x3", "x4", "x5"];

/// `out = x[0] + x[1] + …`, or their maximum; all of them dense and of one size. `out` may be one of
/// them: it is written last, each element after it was read.
pub(super) fn reduce(
    stream: &mut WgpuStream,
    reduction: Reduction,
    x: &[Tensor<Wgpu>],
    out: &Tensor<Wgpu>,
) -> Result<()> {
    let (elements, dtype) = (out.shape().elements(), out.dtype());
    if elements == 0 {
        return Ok(());
    }
    let (shader, wide) = if dtype.is_float() { (&FLOATS, DType::F32) } else { (&INTEGERS, DType::I32) };
    let parts = x.len().div_ceil(INPUTS.len());
    // What is reduced of earlier dispatches, unrounded.
    let sums = (parts > 1).then(|| Tensor::new(stream.device(), wide, &[elements])).transpose()?;
    for (part, x) in x.chunks(INPUTS.len()).enumerate() {
        let (first, last) = (part == 0, part + 1 == parts);
        let mut launch = Launch::new(shader).flag("MAXIMUM", reduction == Reduction::Max);
        for (place, name) in INPUTS.into_iter().enumerate() {
            launch = launch.maybe(name, Access::In, dtype, x.get(place));
        }
        launch = launch.maybe("sums", Access::InOut, wide, sums.as_ref());
        launch = launch.maybe("out", Access::Out, dtype, last.then_some(out));
        launch = launch.flag("FIRST", first).size("elements", elements);
        stream.launch(launch, spread(elements.div_ceil(256)))?;
    }
    Ok(())
}
