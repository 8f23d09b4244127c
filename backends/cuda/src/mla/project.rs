//! Products of each head: of queries with `W_UK`, of latents with `W_UV`.

use halite_hal::{Result, Tensor};

use super::packed::HeadWeights;
use crate::{
    attention::code,
    compile::{Program, Source},
    device::Cuda,
    launch::Launch,
    rows::Rows,
    stream::CudaStream,
};

static SOURCE: Source = Source::new("mla/project.cu", include_str!("project.cu"));

/// Rows and columns of a block.
const TOKENS: usize = 8;
const COLUMNS: usize = 128;

fn base() -> Launch {
    Launch::new("mla", &SOURCE, "mla_project")
}

pub(super) fn program() -> Program {
    base().program()
}

/// Of `x` and `out`, `[tokens, heads, ..]`: `out[t, h] = [x[t, h] W[h], carried]`, where what `x` has beyond the product's
/// elements goes through as it is.
pub(super) fn run(
    stream: &mut CudaStream,
    weights: HeadWeights<'_>,
    carried: usize,
    x: &Tensor<Cuda>,
    out: &Tensor<Cuda>,
) -> Result<()> {
    let HeadWeights { buffer, at, dtype, k, n, columns } = weights;
    let (from, to) = (Rows::of(x), Rows::of(out));
    let (tokens, heads, tiles) = (to.outer, to.inner, to.outer.div_ceil(TOKENS));
    let launch = base()
        .tensor("x", x)
        .bytes("weights", buffer, at as u64)
        .tensor("out", out)
        .size("x's stride", from.outer_stride)
        .size("x's stride", from.inner_stride)
        .size("out's stride", to.outer_stride)
        .size("out's stride", to.inner_stride)
        .size("weights' stride", columns)
        .count("tokens", tokens)
        .count("tiles", tiles)
        .count("elements of x", k)
        .count("elements of out", n)
        .count("elements that go through", carried)
        .int(code(x.dtype()))
        .int(code(dtype))
        .int(code(out.dtype()))
        .grid([heads.saturating_mul(tiles), n.div_ceil(COLUMNS), 1]);
    stream.launch(launch)
}
