//! Rows to experts and back: a stable counting sort of slots, copies of rows to their places, and each token's sum over its
//! rows, in ascending slot. The host never waits for how many rows an expert has.

use halite_hal::{Error, Result, Tensor};
use halite_kernels::{
    linear::{Activations, Quantized},
    moe::{CombineArgs, DispatchArgs, LocalExperts},
};

use crate::{
    compile::{Program, Source},
    device::Cuda,
    element::code,
    launch::Launch,
    rows::{Rows, in_vectors},
    stream::CudaStream,
    support::unsupported,
};

static SOURCE: Source = Source::new("moe/permutation.cu", include_str!("permutation.cu"));

/// Threads of a block.
const THREADS: usize = 256;
/// Tensors that a combination adds in the end: parameters of the kernel.
const MOST_ADDED: usize = 3;

fn base(operator: &'static str, entry: &'static str) -> Launch {
    Launch::new(operator, &SOURCE, entry)
}

/// The program with all kernels.
pub(super) fn programs() -> Vec<Program> {
    vec![base("dispatch", "sort").program()]
}

/// Elements of rows, and their scales.
type Parts<'a> = (&'a Tensor<Cuda>, Option<&'a Tensor<Cuda>>);

fn parts<'a>(operator: &'static str, rows: &Activations<'a, Cuda>) -> Result<Parts<'a>> {
    match *rows {
        Activations::Float(x) => Ok((x, None)),
        Activations::Quantized(Quantized { q, scales, .. }) => Ok((q, Some(scales))),
        ref other => Err(unsupported(operator, "this form of rows", other)),
    }
}

fn stride(tensor: Option<&Tensor<Cuda>>) -> usize {
    tensor.map_or(0, |tensor| Rows::of(tensor).outer_stride)
}

/// Slots sorted by expert.
pub(super) struct Sorted<'a> {
    /// I32 `[experts + 1]`: where each expert's rows begin.
    pub(super) offsets: &'a Tensor<Cuda>,
    /// I32 `[tokens, top_k]`: the row of each slot, -1 where its expert is elsewhere.
    pub(super) places: &'a Tensor<Cuda>,
    /// I32: the slot of each row, where it is asked for.
    pub(super) slots: Option<&'a Tensor<Cuda>>,
}

/// Sorts the slots of `ids` by expert, then by slot.
pub(super) fn sort(
    stream: &mut CudaStream,
    operator: &'static str,
    local: LocalExperts,
    ids: &Tensor<Cuda>,
    to: &Sorted<'_>,
) -> Result<()> {
    let layout = Rows::of(ids);
    let sort = base(operator, "sort")
        .tensor("ids", ids)
        .tensor("offsets", to.offsets)
        .tensor("places", to.places)
        .maybe("slots", to.slots)
        .size("slots", layout.count() * layout.columns)
        .size("ids' stride", layout.outer_stride)
        .size("places' stride", stride(Some(to.places)))
        .count("top_k", layout.columns)
        .count("first", local.first)
        .count("count", local.count);
    // One more has the slots of experts that are elsewhere.
    stream.launch(sort.grid([local.count + 1, 1, 1]))
}

pub(super) fn dispatch(stream: &mut CudaStream, args: &DispatchArgs<'_, Cuda>) -> Result<()> {
    let places = Rows::of(args.places);
    let slots = places.count() * places.columns;
    let to = Sorted { offsets: args.offsets, places: args.places, slots: None };
    sort(stream, "dispatch", args.local, args.ids, &to)?;

    let (x, scales) = parts("dispatch", &args.x)?;
    let (rows, row_scales) = parts("dispatch", &args.rows)?;
    let (from, to, size) = (Rows::of(x), Rows::of(rows), x.dtype().size());
    let multiplied = args.weights.is_some() && x.dtype().is_float();
    let whole = |tensor, layout: Rows| in_vectors(tensor, &[layout.columns, layout.outer_stride]);
    let unit = if !multiplied && whole(x, from) && whole(rows, to) { 16 } else { size };
    let units = from.columns * size / unit;
    // Rows of no columns may have scales.
    let blocks = units.div_ceil(THREADS).max(1);
    let gather = base("dispatch", "gather")
        .tensor("x", x)
        .tensor("rows", rows)
        .tensor("places", args.places)
        .maybe("weights", args.weights)
        .maybe("x scales", scales)
        .maybe("row scales", row_scales)
        .size("units of a row", units)
        .size("parts of a row", blocks)
        .size("x's stride", from.outer_stride * size)
        .size("rows' stride", to.outer_stride * size)
        .size("places' stride", places.outer_stride)
        .size("weights' stride", stride(args.weights))
        .count("top_k", places.columns)
        .int(code(x.dtype()))
        .count("bytes of a unit", unit);
    stream.launch(gather.grid([slots.saturating_mul(blocks), 1, 1]))
}

/// Where a slot's row is.
#[derive(Clone, Copy)]
pub(super) enum Places {
    /// At its place.
    Sorted,
    /// Where the slot is, the places being experts of which these are here.
    BySlot(LocalExperts),
}

pub(super) fn combine(stream: &mut CudaStream, args: &CombineArgs<'_, Cuda>, order: Places) -> Result<()> {
    if args.added.len() > MOST_ADDED {
        let (got, limit) = (args.added.len() as u64, MOST_ADDED as u64);
        return Err(Error::Limit { operator: "combine", argument: "added", got, limit });
    }
    let (rows, scales) = parts("combine", &args.rows)?;
    let (layout, places, out) = (Rows::of(rows), Rows::of(args.places), Rows::of(args.out));
    let [first, second, third] = [0, 1, 2].map(|place| args.added.get(place).copied());
    let blocks = out.columns.div_ceil(THREADS);
    let (first_place, count, by_slot) = match order {
        Places::Sorted => (0, layout.outer, false),
        Places::BySlot(local) => (local.first, local.count, true),
    };
    let launch = base("combine", "combine")
        .tensor("rows", rows)
        .maybe("row scales", scales)
        .tensor("places", args.places)
        .maybe("weights", args.weights)
        .maybe("added", first)
        .maybe("added", second)
        .maybe("added", third)
        .tensor("out", args.out)
        .size("columns", out.columns)
        .size("parts of a row", blocks)
        .size("places", count)
        .size("rows' stride", layout.outer_stride)
        .size("places' stride", places.outer_stride)
        .size("weights' stride", stride(args.weights))
        .size("added's stride", stride(first))
        .size("added's stride", stride(second))
        .size("added's stride", stride(third))
        .size("out's stride", out.outer_stride)
        .count("top_k", places.columns)
        .int(code(rows.dtype()))
        .int(code(args.out.dtype()))
        .count("first", first_place)
        .int(by_slot.into());
    stream.launch(launch.grid([out.outer.saturating_mul(blocks), 1, 1]))
}
