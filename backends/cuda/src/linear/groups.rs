//! Products of groups of rows with weights of their own, by dot products: the device alone knows which rows are a group's. One
//! launch serves as many groups as it has addresses of weights for; a row's bits are those of its own layer.

use halite_hal::{Result, Tensor};
use halite_kernels::linear::{Activations, Epilogue};

use super::{
    call::{Call, stride},
    dot::{self, RESULTS},
    packed::CudaPacked,
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

fn start(operator: &'static str) -> Launch {
    Launch::new(operator, &SOURCE, "grouped_dot")
}

pub(super) fn program() -> Program {
    start("grouped").program()
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
            stream.launch(self.launch(number * MOST_GROUPS, weights)?)?;
        }
        Ok(())
    }

    fn launch(&self, first: usize, weights: &[CudaPacked]) -> Result<Launch> {
        // All of one spec, so of one layout: the call is told of the first.
        let after = Epilogue { bias: self.bias, ..Epilogue::default() };
        let call = Call::new(self.operator, self.x, &weights[0], &after, self.out)?;
        let (spec, layout) = (call.spec(), call.packed.layout());
        let launch = start(self.operator).structure(|launch| {
            let launch = weights.iter().fold(launch, |l, packed| l.bytes("weights", packed.buffer(), 0));
            (weights.len()..MOST_GROUPS).fold(launch, |launch, _| launch.bits(0))
        });
        let launch = dot::operands(launch, &call)?
            .structure(|launch| {
                launch
                    .size("scales", layout.scales)
                    .size("offsets", layout.offsets.unwrap_or(0))
                    .size("kept", layout.kept.unwrap_or(0))
                    .size("outliers", layout.outliers.unwrap_or(0))
            })
            .maybe("weights", self.factors)
            .size("weights' stride", self.factors.map_or(0, stride))
            .count("first group", first)
            .count("groups", weights.len())
            .int(self.gathered.into())
            .int((self.own_scales && spec.activations.is_per_tensor()).into());
        let grid = [call.rows(), spec.out_features.div_ceil(RESULTS), 1];
        Ok(self.rows.parameters(launch).grid(grid))
    }
}
