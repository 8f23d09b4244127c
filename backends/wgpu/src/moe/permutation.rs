//! Rows to experts and back: a stable counting sort of slots, copies of rows to their places, and each token's sum over its
//! rows, in ascending slot.

use crate::{
    device::Wgpu,
    launch::{Access, Launch, Shader, spread},
    operand::Operand,
    rows::Rows,
    stream::WgpuStream,
    support::unsupported,
};
use halite_hal::{DType, Error, Result, Tensor};
use halite_kernels::{
    linear::{Activations, Quantized},
    moe::{CombineArgs, DispatchArgs},
};

static SORT: Shader = Shader { name: "dispatch: sort", source: &[include_str!("sort.wgsl")] };

const GATHER: &str = include_str!("gather.wgsl");
static GATHER_FLOATS: Shader = Shader {
    name: "dispatch: floats",
    source: &[
        "fn moved(x: f32, weight: f32) -> f32 { return select(x, x * weight, HAS_WEIGHTS); }\n",
        GATHER,
    ],
};
static GATHER_INT8: Shader = Shader {
    name: "dispatch: INT8",
    source: &["fn moved(x: i32, weight: f32) -> i32 { return x; }\n", GATHER],
};
static GATHER_WORDS: Shader =
    Shader { name: "dispatch: words", source: &[include_str!("gather_words.wgsl"), GATHER] };

const SUM: &str = include_str!("combine.wgsl");
static COMBINE: Shader = Shader {
    name: "combine",
    source: &[
        SUM,
        "fn store(token: u32, column: u32) { set_out(token * im.out_stride + column, combined(token, column)); }\n",
    ],
};
static COMBINE_PAIRS: Shader = Shader { name: "combine: pairs", source: &[SUM, include_str!("pairs.wgsl")] };

/// Tensors that a combination adds in the end: as many as are bound beside what it needs.
const MOST_ADDED: usize = 3;

/// Elements of rows, and their scales.
type Parts<'a> = (&'a Tensor<Wgpu>, Option<&'a Tensor<Wgpu>>);

fn parts<'a>(operator: &'static str, rows: &Activations<'a, Wgpu>) -> Result<Parts<'a>> {
    match *rows {
        Activations::Float(x) => Ok((x, None)),
        Activations::Quantized(Quantized { q, scales, .. }) => Ok((q, Some(scales))),
        ref other => Err(unsupported(operator, "this form of rows", other)),
    }
}

/// Elements from row to row, where rows of `[rows, columns]` are whole words at places that are.
fn words(tensor: &Tensor<Wgpu>) -> Option<(usize, usize)> {
    let (rows, size) = (Rows::of(tensor), tensor.dtype().size());
    let whole = |elements: usize| (elements * size).is_multiple_of(4).then_some(elements * size / 4);
    let begins = tensor.offset().is_multiple_of(4);
    begins.then_some(())?;
    whole(rows.columns).zip(whole(rows.outer_stride))
}

/// The number that shaders know a type by.
fn code(dtype: DType) -> u32 {
    match dtype {
        DType::F32 => 0,
        DType::F16 => 1,
        DType::Bf16 => 2,
        _ => 3,
    }
}

pub(super) fn dispatch(stream: &mut WgpuStream, args: &DispatchArgs<'_, Wgpu>) -> Result<()> {
    let (ids, places) = (Rows::of(args.ids), Rows::of(args.places));
    let launch = Launch::new(&SORT)
        .input("ids", args.ids)
        .output("offsets", args.offsets)
        .output("places", args.places)
        .size("tokens", ids.outer)
        .size("top_k", ids.columns)
        .size("ids_stride", ids.outer_stride)
        .size("places_stride", places.outer_stride)
        .size("first", args.local.first)
        .size("count", args.local.count)
        .rounds(2 * (ids.outer * ids.columns).div_ceil(256) + 8);
    // One more has the slots of experts that are elsewhere.
    stream.launch(launch, spread(args.local.count + 1))?;

    let gather = Gather { x: &args.x, rows: &args.rows, places: args.places, weights: args.weights };
    gather.queue(stream)
}

/// Rows to their places.
pub(crate) struct Gather<'a> {
    pub(crate) x: &'a Activations<'a, Wgpu>,
    /// Of the form of `x`.
    pub(crate) rows: &'a Activations<'a, Wgpu>,
    /// I32 `[tokens, top_k]`: where each slot's row goes; -1 for nowhere.
    pub(crate) places: &'a Tensor<Wgpu>,
    /// F32 `[tokens, top_k]`, where rows are multiplied by them.
    pub(crate) weights: Option<&'a Tensor<Wgpu>>,
}

impl Gather<'_> {
    pub(crate) fn queue(&self, stream: &mut WgpuStream) -> Result<()> {
        let places = Rows::of(self.places);
        let (slots, top_k) = (places.outer * places.columns, places.columns);
        let (x, scales) = parts("dispatch", self.x)?;
        let (rows, row_scales) = parts("dispatch", self.rows)?;
        let (launch, [width, x_stride, rows_stride]) = match words(x).zip(words(rows)) {
            Some(((width, x_stride), (_, rows_stride))) => {
                let launch = Launch::new(&GATHER_WORDS)
                    .operand("x", Access::Words, Operand::tensor(x))
                    .operand("rows", Access::Words, Operand::tensor(rows))
                    .constant("TYPE", code(x.dtype()));
                (launch, [width, x_stride, rows_stride])
            }
            None => {
                let shader = if x.dtype().is_float() { &GATHER_FLOATS } else { &GATHER_INT8 };
                let launch = Launch::new(shader).input("x", x).output("rows", rows);
                (launch, [Rows::of(x).columns, Rows::of(x).outer_stride, Rows::of(rows).outer_stride])
            }
        };
        // Rows of no columns may have scales.
        let columns = width.max(1);
        let launch = launch
            .input("places", self.places)
            .maybe("weights", Access::In, DType::F32, self.weights)
            .maybe("scales", Access::In, DType::F32, scales)
            .maybe("row_scales", Access::Out, DType::F32, row_scales)
            .size("width", width)
            .size("columns", columns)
            .size("x_stride", x_stride)
            .size("rows_stride", rows_stride)
            .size("slots", slots)
            .size("top_k", top_k)
            .size("places_stride", places.outer_stride)
            .size("weights_stride", self.weights.map_or(0, |weights| Rows::of(weights).outer_stride));
        stream.launch(launch, spread((slots * columns).div_ceil(256)))
    }
}

pub(super) fn combine(stream: &mut WgpuStream, args: &CombineArgs<'_, Wgpu>) -> Result<()> {
    if args.added.len() > MOST_ADDED {
        let (got, limit) = (args.added.len() as u64, MOST_ADDED as u64);
        return Err(Error::Limit { operator: "combine", argument: "added", got, limit });
    }
    let (rows, scales) = parts("combine", &args.rows)?;
    let (layout, places, out) = (Rows::of(rows), Rows::of(args.places), Rows::of(args.out));
    let dtype = args.out.dtype();
    let pairs = words(args.out).filter(|_| dtype.size() == 2);
    let (launch, columns) = match pairs {
        Some((columns, out_stride)) => {
            let launch = Launch::new(&COMBINE_PAIRS)
                .operand("out", Access::Words, Operand::tensor(args.out))
                .flag("BF16", dtype == DType::Bf16)
                .size("out_stride", out_stride);
            (launch, columns)
        }
        None => {
            let launch = Launch::new(&COMBINE).output("out", args.out).size("out_stride", out.outer_stride);
            (launch, out.columns)
        }
    };
    let stride = |tensor: Option<&Tensor<Wgpu>>| tensor.map_or(0, |tensor| Rows::of(tensor).outer_stride);
    let added = |place: usize| args.added.get(place).copied();
    let launch = launch
        .input("rows", rows)
        .maybe("scales", Access::In, DType::F32, scales)
        .input("places", args.places)
        .maybe("weights", Access::In, DType::F32, args.weights)
        .maybe("first", Access::In, dtype, added(0))
        .maybe("second", Access::In, dtype, added(1))
        .maybe("third", Access::In, dtype, added(2))
        .size("tokens", out.outer)
        .size("columns", columns)
        .size("rows", layout.outer)
        .size("top_k", places.columns)
        .size("rows_stride", layout.outer_stride)
        .size("places_stride", places.outer_stride)
        .size("weights_stride", stride(args.weights))
        .size("first_stride", stride(added(0)))
        .size("second_stride", stride(added(1)))
        .size("third_stride", stride(added(2)))
        .size("none", 0);
    stream.launch(launch, spread((out.outer * columns).div_ceil(256)))
}
