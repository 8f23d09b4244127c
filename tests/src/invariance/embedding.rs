//! Pooled and normalised sequences, alone and in a batch.

use super::rows::{ROWS, same_rows};
use crate::{
    case::Verdict,
    embedding::pooling::{POOLINGS, cu_seqlens},
    poison::{Guarded, Layout},
    random::Rng,
};
use halite_kernels::{
    Backend, DType, Tensor,
    embedding::{L2NormalizeArgs, L2NormalizeSpec, PoolArgs, PoolingSpec, PoolingStep},
};

/// Row `i` of a batch is a sequence of `i % 5` tokens, pooled, then normalised.
pub(super) fn rows<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let hidden = 45;
    let starts = cu_seqlens(&(0..ROWS).map(|row| row % 5).collect::<Vec<_>>());
    let values = Rng::new(9).spreads(starts[ROWS] as usize * hidden);
    for pooling in POOLINGS {
        let mut plan = device.pooling_plan(&PoolingSpec::new(pooling), ROWS, starts[ROWS] as usize)?;
        same_rows(&format!("{pooling:?}"), hidden * 4, |rows| {
            let first = starts[rows.start];
            let own: Vec<u32> = starts[rows.start..=rows.end].iter().map(|end| end - first).collect();
            let step = PoolingStep { cu_seqlens: &own }.check(&plan)?;
            device.pooling_update(stream, &mut plan, &step)?;
            let values = &values[first as usize * hidden..starts[rows.end] as usize * hidden];
            let x = Tensor::<B>::from_slice(stream, values, &[values.len() / hidden, hidden])?;
            let row = Tensor::<B>::new(device, DType::F32, &[rows.len(), hidden])?;
            device.pool(stream, PoolArgs { plan: &plan, x: &x, out: &row }.check()?)?;
            let out = Guarded::<B>::output(stream, DType::F32, &[rows.len(), hidden], Layout::Dense)?;
            let spec = L2NormalizeSpec::new(1e-12);
            let args = L2NormalizeArgs { spec: &spec, x: &row, out: &out.view };
            device.l2_normalize(stream, args.check()?)?;
            out.read_bytes(stream)
        })?;
    }
    Ok(())
}
