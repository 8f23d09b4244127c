//! A call: one dispatch where no row needs scratch memory, otherwise up to three for as many rows as it holds.

use super::{WgpuAttentionPlan, shape};
use crate::{
    cache::WgpuKvCache,
    device::Wgpu,
    launch::{Access, Launch, Shader, spread},
    operand::Operand,
    rows::Rows,
    stream::WgpuStream,
    support::unsupported,
};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    attention::{
        AttentionCompute, AttentionOut, AttentionState, ValueProducts,
        cut::{ITEM, Round, TILE},
    },
    cache::{KvSpec, KvValues},
};

pub(super) const STATE: &str = include_str!("state.wgsl");
const PLAN: &str = include_str!("plan.wgsl");
const VISIBLE: &str = include_str!("visible.wgsl");
const ROWS: &str = include_str!("rows.wgsl");
const QUADS: &str = include_str!("quads.wgsl");
const ELEMENTS: &str = include_str!("elements.wgsl");
const FLOAT: &str = include_str!("float.wgsl");
const INT8: &str = include_str!("int8.wgsl");
const SCORE: &str = include_str!("score.wgsl");
const WEIGH: &str = include_str!("weigh.wgsl");
const MAIN: &str = include_str!("attend.wgsl");

/// By whether keys and values are read 16 bytes at once, and by whether scores are from INT8.
static ATTEND: [[Shader; 2]; 2] = [
    [
        Shader {
            name: "attention",
            source: &[PLAN, VISIBLE, STATE, ROWS, ELEMENTS, FLOAT, SCORE, WEIGH, MAIN],
        },
        Shader {
            name: "attention",
            source: &[PLAN, VISIBLE, STATE, ROWS, ELEMENTS, INT8, SCORE, WEIGH, MAIN],
        },
    ],
    [
        Shader { name: "attention", source: &[PLAN, VISIBLE, STATE, ROWS, QUADS, FLOAT, SCORE, WEIGH, MAIN] },
        Shader { name: "attention", source: &[PLAN, VISIBLE, STATE, ROWS, QUADS, INT8, SCORE, WEIGH, MAIN] },
    ],
];
static BEGIN: Shader = Shader { name: "attention_begin", source: &[include_str!("begin.wgsl")] };
static JOIN: Shader = Shader { name: "attention_join", source: &[STATE, include_str!("join.wgsl")] };

/// A call's tensors.
#[derive(Clone, Copy)]
pub(crate) struct RowTensors<'a> {
    /// `[tokens, query_heads, head_dim]`
    pub(crate) q: &'a Tensor<Wgpu>,
    /// Where the rows begin, if not with the empty state.
    pub(crate) state_in: Option<AttentionState<'a, Wgpu>>,
    /// `[tokens, query_heads, value_head_dim]`
    pub(crate) out: AttentionOut<'a, Wgpu>,
    /// `[query_heads]`
    pub(crate) sinks: Option<&'a Tensor<Wgpu>>,
    /// `[tokens, query_heads]`
    pub(crate) log_sum_exp: Option<&'a Tensor<Wgpu>>,
}

/// Queries `[tokens, query_heads, head_dim]` of the tokens from `first` on, with the elements between them.
pub(crate) struct Queries {
    pub(crate) elements: Operand,
    pub(crate) first: usize,
    pub(crate) token: usize,
    pub(crate) head: usize,
}

impl Queries {
    fn all(q: &Tensor<Wgpu>) -> Self {
        let rows = Rows::of(q);
        let elements = Operand::tensor(q);
        Queries { elements, first: 0, token: rows.outer_stride, head: rows.inner_stride }
    }
}

/// A layer of a cache, and a plan's step over it.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) operator: &'static str,
    pub(crate) plan: &'a WgpuAttentionPlan,
    pub(crate) cache: &'a WgpuKvCache,
    pub(crate) layer: usize,
    pub(crate) tensors: RowTensors<'a>,
}

impl Call<'_> {
    pub(super) fn run(self, stream: &mut WgpuStream) -> Result<()> {
        let Call { plan, tensors, .. } = self;
        let direct = match tensors.out {
            AttentionOut::Normalised(out) if tensors.state_in.is_none() && !plan.cut.parted => Some(out),
            AttentionOut::Normalised(_) | AttentionOut::State(_) => None,
            other => return Err(unsupported(self.operator, "this form of output", &other)),
        };
        if let Some(out) = direct {
            let all = plan.cut.whole();
            return self.attend(stream, &all, Queries::all(tensors.q), Some(out), None);
        }
        let mut room = stream.scratch(self.operator, plan.workspace())?;
        let scratch = room.take(self.operator, DType::F32, plan.scratch())?;
        for round in &plan.cut.rounds {
            if let Some(state) = &tensors.state_in {
                let launch = self.of_rows(Launch::new(&BEGIN), round, plan.spec.kv.value_head_dim);
                let launch = from_state(launch, Some(state)).operand("scratch", Access::Out, scratch.clone());
                stream.launch(launch, self.row_groups(round))?;
            }
            self.attend(stream, round, Queries::all(tensors.q), None, Some(scratch.clone()))?;
            self.join(stream, round, scratch.clone(), plan.spec.kv.value_head_dim)?;
        }
        Ok(())
    }

    /// Reads keys and values for the items of a round, to the result or to states in scratch memory.
    pub(crate) fn attend(
        self,
        stream: &mut WgpuStream,
        round: &Round,
        q: Queries,
        out: Option<&Tensor<Wgpu>>,
        scratch: Option<Operand>,
    ) -> Result<()> {
        let Call { plan, cache, layer, tensors, .. } = self;
        let (spec, tile, places) = (&plan.spec, plan.tile, plan.places);
        let (kv, room) = (&spec.kv, shape::room(tile, spec));
        let size = kv.format.element().size();
        let wide = (kv.head_dim * size).is_multiple_of(16) && (value_stride(kv) * size).is_multiple_of(16);
        let int8_values = spec.compute == AttentionCompute::Int8 { values: ValueProducts::Int8 };
        let int8 = matches!(spec.compute, AttentionCompute::Int8 { .. });
        let access = if wide { Access::Quads } else { Access::In };
        let to = out.map(Rows::of);
        let log = tensors.log_sum_exp.filter(|_| out.is_some());
        let sinks = tensors.sinks.filter(|_| out.is_some());
        // In place of a tensor that is not given, and not touched then: so it takes no kernel of its own.
        let none = || out.map(|_| Operand::tensor(&plan.table).with_type(DType::F32));
        let launch = Launch::new(&ATTEND[usize::from(wide)][usize::from(int8)])
            .operand("q", Access::In, q.elements)
            .operand("keys", access, cache.keys(layer))
            .operand("values", access, cache.values(layer))
            .optional("scales", Access::In, DType::F32, cache.all_scales(layer))
            .input("tables", &plan.table)
            .maybe("out", Access::Out, spec.dtype, out)
            .optional("log_sum_exp", Access::Out, DType::F32, log.map(Operand::tensor).or_else(none))
            .optional("sinks", Access::In, DType::F32, sinks.map(Operand::tensor).or_else(none))
            .optional("scratch", Access::InOut, DType::F32, scratch)
            .constant("FORMAT", cache.format())
            .constant("ROWS", room.rows)
            .constant("SCORES", room.scores)
            .constant("QUERY_QUADS", room.query_quads)
            .constant("PART_ROOM", room.part)
            .flag("INT8_VALUES", int8_values)
            .size("items_at", places.items + ITEM * round.items.start)
            .size("items", round.items.len())
            .size("begins", tensors.state_in.is_some().into())
            .size("has_sinks", sinks.is_some().into())
            .size("has_log", log.is_some().into())
            .size("value_scales", cache.value_scales_at())
            .size("q_first", q.first)
            .size("q_token", q.token)
            .size("q_head", q.head)
            .size("out_token", to.map_or(0, |to| to.outer_stride))
            .size("out_head", to.map_or(0, |to| to.inner_stride))
            .size("log_token", log.map_or(0, |log| Rows::of(log).outer_stride));
        let groups = round.items.len() * kv.kv_heads * tile.head_tiles(spec);
        stream.launch(launch, spread(groups))
    }

    /// Makes the states of a round's rows, of values of `value_dim` elements, what the call is to give.
    pub(crate) fn join(
        self,
        stream: &mut WgpuStream,
        round: &Round,
        scratch: Operand,
        value_dim: usize,
    ) -> Result<()> {
        let tensors = self.tensors;
        let (out, state) = match tensors.out {
            AttentionOut::Normalised(out) => (out, None),
            AttentionOut::State(state) => (state.values, Some(state)),
            other => return Err(unsupported(self.operator, "this form of output", &other)),
        };
        let to = Rows::of(out);
        let stride = |tensor: Option<&Tensor<Wgpu>>| tensor.map_or(0, |tensor| Rows::of(tensor).outer_stride);
        let (max, sum) = (state.map(|state| state.max), state.map(|state| state.sum));
        let launch =
            from_state(self.of_rows(Launch::new(&JOIN), round, value_dim), tensors.state_in.as_ref())
                .operand("scratch", Access::In, scratch)
                .operand("out", Access::Out, Operand::tensor(out))
                .maybe("out_max", Access::Out, DType::F32, max)
                .maybe("out_sum", Access::Out, DType::F32, sum)
                .maybe("log_sum_exp", Access::Out, DType::F32, tensors.log_sum_exp)
                .maybe("sinks", Access::In, DType::F32, tensors.sinks)
                .size("out_token", to.outer_stride)
                .size("out_head", to.inner_stride)
                .size("out_max_token", stride(max))
                .size("out_sum_token", stride(sum))
                .size("log_token", stride(tensors.log_sum_exp));
        stream.launch(launch, self.row_groups(round))
    }

    /// The tables and numbers of a dispatch of a workgroup a row.
    fn of_rows(self, launch: Launch, round: &Round, value_dim: usize) -> Launch {
        let plan = self.plan;
        launch
            .input("tables", &plan.table)
            .size("value_dim", value_dim)
            .size("tiles_at", plan.places.tiles + TILE * round.tiles.start)
            .size("tiles", round.tiles.len())
            .size("tile_tokens", plan.tile.tokens)
            .size("heads", plan.spec.query_heads)
    }

    fn row_groups(self, round: &Round) -> [usize; 3] {
        spread(round.tiles.len() * self.plan.tile.tokens * self.plan.spec.query_heads)
    }
}

/// Elements from a value to the next.
pub(super) fn value_stride(kv: &KvSpec) -> usize {
    if kv.values == KvValues::KeyPrefix { kv.head_dim } else { kv.value_head_dim }
}

/// The state that came in, and how it lies.
fn from_state(launch: Launch, state: Option<&AttentionState<'_, Wgpu>>) -> Launch {
    let rows = |tensor: Option<&Tensor<Wgpu>>| tensor.map(Rows::of);
    let [max, sum, values] =
        [state.map(|state| state.max), state.map(|state| state.sum), state.map(|state| state.values)];
    launch
        .maybe("in_max", Access::In, DType::F32, max)
        .maybe("in_sum", Access::In, DType::F32, sum)
        .maybe("in_values", Access::In, DType::F32, values)
        .size("in_max_token", rows(max).map_or(0, |rows| rows.outer_stride))
        .size("in_sum_token", rows(sum).map_or(0, |rows| rows.outer_stride))
        .size("in_token", rows(values).map_or(0, |rows| rows.outer_stride))
        .size("in_head", rows(values).map_or(0, |rows| rows.inner_stride))
}
