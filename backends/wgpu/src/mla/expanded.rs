//! The expanded form: attention over latents, round by round, with products before and behind it.

use super::{HeadProducts, HeadRows, WgpuMlaPacked, WgpuMlaPlan};
use crate::{
    attention::{Call, Queries, RowTensors},
    cache::WgpuKvCache,
    operand::Operand,
    room,
    rows::Rows,
    stream::WgpuStream,
};
use halite_hal::{DType, Result};

/// F32 elements of absorbed queries, of states of latents, and of states of values.
fn elements(plan: &WgpuMlaPlan) -> [usize; 3] {
    let (mla, rows) = (&plan.mla, plan.plan.slots().saturating_mul(plan.mla.heads()));
    let values = mla.value_head_dim.saturating_add(2);
    [rows.saturating_mul(mla.attention.kv.head_dim), plan.plan.scratch(), rows.saturating_mul(values)]
}

pub(super) fn workspace(plan: &WgpuMlaPlan) -> u64 {
    let bytes = elements(plan).map(|elements| room::bytes(DType::F32, elements));
    bytes.into_iter().fold(0, u64::saturating_add)
}

pub(super) fn run(
    stream: &mut WgpuStream,
    plan: &WgpuMlaPlan,
    weights: &WgpuMlaPacked,
    (cache, layer): (&WgpuKvCache, usize),
    tensors: RowTensors<'_>,
) -> Result<()> {
    let (mla, inner) = (&plan.mla, &plan.plan);
    let call = Call { operator: "mla", plan: inner, cache, layer, tensors };
    let mut room = stream.scratch("mla", workspace(plan))?;
    let [queries, latents, values] = elements(plan).map(|elements| room.take("mla", DType::F32, elements));
    let (queries, latents, values) = (queries?, latents?, values?);
    let (heads, rank, dim) = (mla.heads(), mla.kv_lora_rank(), mla.value_head_dim);
    let row = mla.attention.kv.head_dim;
    let dense = |elements: &Operand, row: usize| HeadRows {
        elements: elements.clone(),
        token: heads * row,
        head: row,
    };
    let (q, q_rows) = (Operand::tensor(tensors.q), Rows::of(tensors.q));
    for round in inner.rounds() {
        let tokens = inner.tokens_of(round);
        let start = (tokens.start * q_rows.outer_stride * tensors.q.dtype().size()) as u64;
        let x = HeadRows {
            elements: q.part(start.min(q.len())..q.len()),
            token: q_rows.outer_stride,
            head: q_rows.inner_stride,
        };
        let absorb = HeadProducts {
            weights: weights.uk(),
            carried: mla.rope_dim(),
            tokens: tokens.len(),
            heads,
            x,
            out: dense(&queries, row),
        };
        absorb.run(stream)?;
        let absorbed =
            Queries { elements: queries.clone(), first: tokens.start, token: heads * row, head: row };
        call.attend(stream, round, absorbed, None, Some(latents.clone()))?;
        // The greatest score and the sum go through.
        let project = HeadProducts {
            weights: weights.uv(),
            carried: 2,
            tokens: round.slots,
            heads,
            x: dense(&latents, rank + 2),
            out: dense(&values, dim + 2),
        };
        project.run(stream)?;
        call.join(stream, round, values.clone(), dim)?;
    }
    Ok(())
}
