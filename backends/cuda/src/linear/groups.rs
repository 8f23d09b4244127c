//! Products of groups of rows with weights of their own: the device alone knows which rows are a group's. One launch serves as
//! many groups as it has addresses of weights for; a row's bits are those of its own layer.
//!
//! A format has its layer's kernel. Tiles of the tensor cores have rows of one group, wherever groups end: there are blocks
//! enough for any offsets, each finds its group and rows, and blocks without any end at once (group_rows.cuh). How many rows a
//! group has nobody knows here, so the tile is that for a group's share of all rows. Slots as they come, and rows that are few,
//! are tiles too, of a row or hardly more: what is read is weights, and those come ahead of the products, while a warp of dot
//! products waits for each 16 of its columns. By dot products go formats that have no tiles, and integers whose rows begin
//! anywhere: those have the same bits.

use halite_hal::{Result, Tensor};
use halite_kernels::linear::{Activations, Epilogue};

use super::{
    call::{Call, stride},
    dot::RESULTS,
    float, group_wise, int8,
    packed::CudaPacked,
    product::Product,
    tile::Tile,
};
use crate::{
    compile::{Program, Source},
    device::Cuda,
    launch::Launch,
    rows::Rows,
    stream::CudaStream,
};

static SOURCE: Source = Source::new("linear/grouped.cu", include_str!("grouped.cu"));

/// Groups whose weights one launch knows: their addresses are parameters.
const MOST_GROUPS: usize = 256;

fn dot(operator: &'static str) -> Launch {
    Launch::new(operator, &SOURCE, "grouped_dot")
}

/// The program of dot products: tiles' are among their layers'.
pub(super) fn program() -> Program {
    dot("grouped").program()
}

/// Which rows are a group's: what `groups.cuh` is told.
#[derive(Clone, Copy)]
pub(crate) enum RowGroups<'a> {
    /// Rows were sorted by group.
    Sorted {
        /// I32 `[groups + 1]`, whatever they are.
        offsets: &'a Tensor<Cuda>,
        /// I32, the slot of each row, where rows were tokens' slots.
        slots: Option<&'a Tensor<Cuda>>,
        /// Slots of a token.
        top_k: usize,
    },
    /// A row is a slot of `ids`, whose expert is its group.
    BySlot {
        /// I32 `[tokens, top_k]`.
        ids: &'a Tensor<Cuda>,
        /// The expert that is the first group.
        first: usize,
        /// How many groups there are.
        count: usize,
    },
}

impl RowGroups<'_> {
    /// How many groups there are.
    pub(crate) fn count(&self) -> usize {
        match self {
            RowGroups::Sorted { offsets, .. } => offsets.shape().elements().saturating_sub(1),
            RowGroups::BySlot { count, .. } => *count,
        }
    }

    /// `GROUPS_PARAMETERS`.
    pub(crate) fn parameters(&self, launch: Launch) -> Launch {
        let (offsets, slots, ids, top_k, first) = match *self {
            RowGroups::Sorted { offsets, slots, top_k } => (Some(offsets), slots, None, top_k, 0),
            RowGroups::BySlot { ids, first, .. } => (None, None, Some(ids), Rows::of(ids).columns, first),
        };
        launch
            .maybe("offsets", offsets)
            .maybe("slots", slots)
            .maybe("ids", ids)
            .size("ids' stride", ids.map_or(0, |ids| Rows::of(ids).outer_stride))
            .count("groups", self.count())
            .count("top_k", top_k)
            .count("first", first)
    }
}

/// One call.
pub(crate) struct Groups<'a> {
    /// For errors.
    pub(crate) operator: &'static str,
    pub(crate) x: &'a Activations<'a, Cuda>,
    /// All of one spec, at least one.
    pub(crate) weights: &'a [CudaPacked],
    pub(crate) rows: RowGroups<'a>,
    /// F32 `[groups, weight_rows]`
    pub(crate) bias: Option<&'a Tensor<Cuda>>,
    pub(crate) out: &'a Tensor<Cuda>,
    /// Whether rows of `x` are tokens, each row of the result being a slot of one.
    pub(crate) gathered: bool,
    /// F32 `[tokens, top_k]`: what a token's scale is multiplied with for a slot.
    pub(crate) factors: Option<&'a Tensor<Cuda>>,
    /// Whether one scale for all rows is one for all rows of a group: there are as many as groups.
    pub(crate) own_scales: bool,
}

impl Groups<'_> {
    /// Queues a launch for every so many groups. Without weights there is nothing to multiply.
    pub(crate) fn queue(&self, stream: &mut CudaStream) -> Result<()> {
        for (number, weights) in self.weights.chunks(MOST_GROUPS).enumerate() {
            stream.launch(self.launch(number * MOST_GROUPS, weights, |call| self.choose(call))?)?;
        }
        Ok(())
    }

    /// Which kernel, and in which tile unless it is dot products.
    fn choose(&self, call: &Call<'_>) -> (Product, Option<Tile>) {
        let (product, aligned) = (Product::of(call.spec()), call.is_aligned());
        let share = call.rows().div_ceil(self.rows.count().max(1));
        match product {
            Product::Float(_) => (product, Some(if aligned { Tile::of(share) } else { Tile::DECODE })),
            Product::Int8 if aligned => (product, Some(Tile::of(share))),
            Product::GroupWise if aligned => (product, Some(group_wise::tile(share))),
            _ => (Product::Dot, None),
        }
    }

    /// Of those groups from `first` on whose weights these are.
    fn launch(
        &self,
        first: usize,
        weights: &[CudaPacked],
        choose: impl FnOnce(&Call<'_>) -> (Product, Option<Tile>),
    ) -> Result<Launch> {
        // All of one spec, so of one layout: the call is told of the first.
        let after = Epilogue { bias: self.bias, ..Epilogue::default() };
        let call = Call::new(self.operator, self.x, &weights[0], &after, self.out)?;
        let (spec, layout, rows) = (call.spec(), call.packed.layout(), call.rows());
        let (product, tile) = choose(&call);
        let (blocks, by_row) = match (tile, self.rows) {
            (Some(tile), RowGroups::Sorted { .. }) => tile.groups(rows, self.rows.count()),
            _ => (rows, true),
        };
        let launch = match (product, tile) {
            (Product::Float(dtype), Some(tile)) => {
                float::grouped(self.operator, dtype, tile, call.is_aligned())
            }
            (Product::Int8, Some(tile)) => int8::grouped(self.operator, &int8::GROUPED, tile),
            (Product::GroupWise, Some(tile)) => {
                group_wise::grouped(self.operator, group_wise::bits(spec), tile)
            }
            _ => dot(self.operator),
        };
        let launch = launch.structure(|launch| {
            let launch = weights.iter().fold(launch, |l, packed| l.bytes("weights", packed.buffer(), 0));
            (weights.len()..MOST_GROUPS).fold(launch, |launch, _| launch.bits(0))
        });
        let launch = call.epilogue(product.operands(launch, &call)?)?.structure(|launch| {
            launch
                .size("scales", layout.scales)
                .size("offsets", layout.offsets.unwrap_or(0))
                .size("sums", layout.sums.unwrap_or(0))
                .size("kept", layout.kept.unwrap_or(0))
                .size("outliers", layout.outliers.unwrap_or(0))
                .maybe("weights", self.factors)
                .size("weights' stride", self.factors.map_or(0, stride))
                .count("rows", rows)
                .count("first group", first)
                .count("groups", weights.len())
                .int(self.gathered.into())
                .int((self.own_scales && spec.activations.is_per_tensor()).into())
                .int(by_row.into())
        });
        let launch = self.rows.parameters(launch);
        Ok(match tile {
            Some(tile) => tile.blocks_of_groups(launch, blocks, spec.weight_rows(), product.w_bits(spec)),
            None => launch.grid([blocks, spec.out_features.div_ceil(RESULTS), 1]),
        })
    }
}

#[cfg(all(test, feature = "interpreter"))]
#[path = "groups_tests.rs"]
mod tests;
