//! A call: one launch where no row needs scratch memory, otherwise two for as many rows as it holds.

use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    attention::{
        AttentionCompute, AttentionOut, AttentionPlan, AttentionState, ValueProducts,
        cut::{ITEM, Round, TILE},
        visible,
    },
    cache::{KvSpec, KvValues},
};

use super::{CudaAttentionPlan, mma, shape};
use crate::{
    cache::CudaKvCache,
    compile::{Program, Source},
    device::Cuda,
    launch::Launch,
    rows::Rows,
    stream::CudaStream,
    support::unsupported,
};

static ATTEND: Source = Source::new("attention/attend.cu", include_str!("attend.cu"));
static JOIN: Source = Source::new("attention/join.cu", include_str!("join.cu"));

pub(super) fn attend(operator: &'static str, rows: usize, int8: bool) -> Launch {
    Launch::new(operator, &ATTEND, "attend").constant("ROWS", rows).constant("INT8", int8.into())
}

/// A kernel of join.cu, by blocks of as many threads as it says.
pub(super) fn joining(operator: &'static str, entry: &'static str) -> Launch {
    Launch::new(operator, &JOIN, entry).block(128)
}

pub(super) fn programs() -> Vec<Program> {
    let rooms = shape::ROOMS.into_iter();
    let of = |rows| [false, true].map(|int8| attend("attention", rows, int8).program());
    rooms.flat_map(of).chain(mma::programs()).collect()
}

/// The number that kernels know a type by.
pub(crate) fn code(dtype: DType) -> i32 {
    match dtype {
        DType::F32 => 0,
        DType::F16 => 1,
        _ => 2,
    }
}

/// A call's tensors.
#[derive(Clone, Copy)]
pub(crate) struct RowTensors<'a> {
    /// `[tokens, query_heads, head_dim]`
    pub(crate) q: &'a Tensor<Cuda>,
    /// Where the rows begin, if not with the empty state.
    pub(crate) state_in: Option<AttentionState<'a, Cuda>>,
    /// `[tokens, query_heads, value_head_dim]`
    pub(crate) out: AttentionOut<'a, Cuda>,
    /// `[query_heads]`
    pub(crate) sinks: Option<&'a Tensor<Cuda>>,
    /// `[tokens, query_heads]`
    pub(crate) log_sum_exp: Option<&'a Tensor<Cuda>>,
}

/// Queries `[tokens, query_heads, head_dim]` of the spec's type, of the tokens from `first` on.
#[derive(Clone, Copy)]
pub(crate) struct Queries<'a> {
    pub(crate) q: &'a Tensor<Cuda>,
    pub(crate) first: usize,
}

/// A layer of a cache, and a plan's step over it.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) operator: &'static str,
    pub(crate) plan: &'a CudaAttentionPlan,
    pub(crate) cache: &'a CudaKvCache,
    pub(crate) layer: usize,
    pub(crate) tensors: RowTensors<'a>,
}

impl Call<'_> {
    pub(super) fn run(self, stream: &mut CudaStream) -> Result<()> {
        let Call { plan, tensors, .. } = self;
        let queries = Queries { q: tensors.q, first: 0 };
        let direct = match tensors.out {
            AttentionOut::Normalised(out) if !plan.cut.parted => Some(out),
            AttentionOut::Normalised(_) | AttentionOut::State(_) => None,
            other => return Err(unsupported(self.operator, "this form of output", &other)),
        };
        if let Some(out) = direct {
            let all = plan.cut.whole();
            return self.attend(stream, &all, queries, Some(out), None);
        }
        let mut room = stream.scratch(self.operator, plan.workspace())?;
        let scratch = room.tensor(self.operator, DType::F32, &[plan.scratch()])?;
        for round in &plan.cut.rounds {
            self.attend(stream, round, queries, None, Some(&scratch))?;
            self.join(stream, round, &scratch, plan.spec.kv.value_head_dim)?;
        }
        Ok(())
    }

    /// Reads keys and values for the items of a round, to the result or to states in scratch memory: what is read whole begins
    /// with the state that came in.
    pub(crate) fn attend(
        self,
        stream: &mut CudaStream,
        round: &Round,
        queries: Queries<'_>,
        out: Option<&Tensor<Cuda>>,
        scratch: Option<&Tensor<Cuda>>,
    ) -> Result<()> {
        let (spec, tile) = (&self.plan.spec, self.plan.tile);
        let launch = if mma::has(spec) {
            mma::start(self.operator, &mma::SOURCE, spec, tile.rows())
        } else {
            let int8 = matches!(spec.compute, AttentionCompute::Int8 { .. });
            attend(self.operator, shape::room(tile), int8).shared(shape::shared(spec, tile.rows()))
        };
        stream.launch(self.described(launch, round, queries, out, scratch))
    }

    /// `CALL_PARAMETERS` in call.cuh, and a block for each item and tile of heads.
    pub(super) fn described(
        self,
        launch: Launch,
        round: &Round,
        queries: Queries<'_>,
        out: Option<&Tensor<Cuda>>,
        scratch: Option<&Tensor<Cuda>>,
    ) -> Launch {
        let Call { plan, cache, layer, tensors, .. } = self;
        let (spec, tile, places) = (&plan.spec, plan.tile, plan.places);
        let (kv, layer) = (&spec.kv, cache.layer(layer));
        let values = if kv.values == KvValues::KeyPrefix { &layer.keys } else { &layer.values };
        let table = |launch: Launch, word: usize| {
            let table = plan.table();
            launch.bytes("plan", table.buffer(), table.offset() + 4 * word as u64)
        };
        let q = Rows::of(queries.q);
        let to = out.map(Rows::of);
        let log = tensors.log_sum_exp.filter(|_| out.is_some());
        let whole_values = spec.compute == AttentionCompute::Int8 { values: ValueProducts::Int8 };
        let launch = launch
            .tensor("q", queries.q)
            .bytes("cache", &layer.keys, 0)
            .bytes("cache", values, 0)
            .bytes("cache", &layer.key_scales, 0)
            .bytes("cache", &layer.value_scales, 0);
        let launch = match spec.alibi_slopes {
            Some(_) => table(launch, places.slopes),
            None => launch.bits(0),
        };
        let launch = [places.blocks, places.tree, places.tiles, places.items + ITEM * round.items.start]
            .into_iter()
            .fold(launch, table);
        let launch = launch
            .maybe("out", out)
            .maybe("log_sum_exp", log)
            .maybe("sinks", tensors.sinks.filter(|_| out.is_some()))
            .maybe("scratch", scratch);
        let launch = from_state(launch, tensors.state_in.as_ref(), |launch| {
            launch
                .size("q's stride", q.outer_stride)
                .size("q's stride", q.inner_stride)
                .size("out's stride", to.map_or(0, |to| to.outer_stride))
                .size("out's stride", to.map_or(0, |to| to.inner_stride))
                .size("log_sum_exp's stride", stride(log))
        });
        launch
            .size("value's stride", value_stride(kv))
            .size("blocks of a sequence", plan.capacity().max_blocks_per_sequence)
            .count("tokens", queries.first)
            .int(code(queries.q.dtype()))
            .count("head_dim", kv.head_dim)
            .count("value_head_dim", kv.value_head_dim)
            .count("block_size", kv.block_size)
            .count("kv_heads", kv.kv_heads)
            .count("query heads of a KV head", spec.group())
            .count("heads of a tile", tile.heads)
            .count("rows of a tile", tile.rows())
            .count("kv_split", spec.kv_split)
            .int(visible::code(spec.mask))
            .int(visible::span(spec.mask))
            .int(cache.format())
            .int(whole_values.into())
            .float(spec.scale)
            .float(spec.soft_cap.unwrap_or(0.0))
            .grid([round.items.len().saturating_mul(kv.kv_heads).saturating_mul(tile.head_tiles(spec)), 1, 1])
    }

    /// Makes the states of a round's rows, of values of `value_dim` elements, what the call is to give.
    pub(crate) fn join(
        self,
        stream: &mut CudaStream,
        round: &Round,
        scratch: &Tensor<Cuda>,
        value_dim: usize,
    ) -> Result<()> {
        let (plan, tensors) = (self.plan, self.tensors);
        let (out, state) = match tensors.out {
            AttentionOut::Normalised(out) => (out, None),
            AttentionOut::State(state) => (state.values, Some(state)),
            other => return Err(unsupported(self.operator, "this form of output", &other)),
        };
        let (to, table, heads) = (Rows::of(out), plan.table(), plan.spec.query_heads);
        let (max, sum) = (state.map(|state| state.max), state.map(|state| state.sum));
        let tiles = 4 * (plan.places.tiles + TILE * round.tiles.start);
        let launch = joining(self.operator, "join")
            .tensor("scratch", scratch)
            .bytes("plan", table.buffer(), table.offset() + tiles as u64)
            .tensor("out", out)
            .maybe("out.max", max)
            .maybe("out.sum", sum)
            .maybe("log_sum_exp", tensors.log_sum_exp)
            .maybe("sinks", tensors.sinks);
        let launch = from_state(launch, tensors.state_in.as_ref(), |launch| {
            launch
                .size("out's stride", to.outer_stride)
                .size("out's stride", to.inner_stride)
                .size("out.max's stride", stride(max))
                .size("out.sum's stride", stride(sum))
                .size("log_sum_exp's stride", stride(tensors.log_sum_exp))
        });
        let launch = launch
            .int(code(out.dtype()))
            .count("value_head_dim", value_dim)
            .count("query_heads", heads)
            .count("tokens of a tile", plan.tile.tokens);
        stream.launch(launch.grid([round.tiles.len() * plan.tile.tokens * heads, 1, 1]))
    }
}

/// Elements from a value to the next.
fn value_stride(kv: &KvSpec) -> usize {
    if kv.values == KvValues::KeyPrefix { kv.head_dim } else { kv.value_head_dim }
}

fn stride(tensor: Option<&Tensor<Cuda>>) -> usize {
    tensor.map_or(0, |tensor| Rows::of(tensor).outer_stride)
}

/// The state that came in: its tensors, and after those strides that come before, how it lies.
fn from_state(
    launch: Launch,
    state: Option<&AttentionState<'_, Cuda>>,
    strides: impl FnOnce(Launch) -> Launch,
) -> Launch {
    let [max, sum, values] =
        [state.map(|state| state.max), state.map(|state| state.sum), state.map(|state| state.values)];
    let launch =
        launch.maybe("state_in.max", max).maybe("state_in.sum", sum).maybe("state_in.values", values);
    strides(launch)
        .size("state_in.max's stride", stride(max))
        .size("state_in.sum's stride", stride(sum))
        .size("state_in.values' stride", stride(values))
        .size("state_in.values' stride", values.map_or(0, |values| Rows::of(values).inner_stride))
}
