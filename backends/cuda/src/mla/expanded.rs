//! The expanded form: attention over latents, round by round, with products before and behind it.

use halite_hal::{DType, Result};

use super::{CudaMlaPacked, CudaMlaPlan, project};
use crate::{
    attention::{Call, Queries, RowTensors},
    cache::CudaKvCache,
    room,
    stream::CudaStream,
};

/// Dimensions of absorbed queries, of states of latents, and of states of values, all F32. A state is the values, and then
/// the greatest score and the sum.
fn dims(plan: &CudaMlaPlan) -> [[usize; 3]; 3] {
    let (mla, slots) = (&plan.mla, plan.plan.slots());
    let rows = |columns: usize| [slots, mla.heads(), columns];
    [
        rows(mla.attention.kv.head_dim),
        rows(mla.kv_lora_rank().saturating_add(2)),
        rows(mla.value_head_dim.saturating_add(2)),
    ]
}

pub(super) fn workspace(plan: &CudaMlaPlan) -> u64 {
    let bytes = |dims: [usize; 3]| {
        room::bytes(DType::F32, dims.into_iter().fold(1, |elements: usize, dim| elements.saturating_mul(dim)))
    };
    dims(plan).map(bytes).into_iter().fold(0, u64::saturating_add)
}

pub(super) fn run(
    stream: &mut CudaStream,
    plan: &CudaMlaPlan,
    weights: &CudaMlaPacked,
    (cache, layer): (&CudaKvCache, usize),
    tensors: RowTensors<'_>,
) -> Result<()> {
    let (mla, inner) = (&plan.mla, &plan.plan);
    let call = Call { operator: "mla", plan: inner, cache, layer, tensors };
    let mut room = stream.scratch("mla", workspace(plan))?;
    let [queries, latents, values] = dims(plan).map(|dims| room.tensor("mla", DType::F32, &dims));
    let (queries, latents, values) = (queries?, latents?, values?);
    for round in &inner.cut().rounds {
        let tokens = inner.cut().tokens_of(round);
        let absorbed = queries.narrow(0, 0..tokens.len())?;
        let q = tensors.q.narrow(0, tokens.clone())?;
        project::run(stream, weights.uk(), mla.rope_dim(), &q, &absorbed)?;
        call.attend(stream, round, Queries { q: &absorbed, first: tokens.start }, None, Some(&latents))?;
        // The greatest score and the sum go through.
        let (from, to) = (latents.narrow(0, 0..round.slots)?, values.narrow(0, 0..round.slots)?);
        project::run(stream, weights.uv(), 2, &from, &to)?;
        call.join(stream, round, &values, mla.value_head_dim)?;
    }
    Ok(())
}
