//! Low-rank adapters: a row alone against the row in batches of any adapters.

use super::rows::{ROWS, same_rows};
use crate::{
    case::{Fault, Verdict},
    ledger::denied,
    linear::lora::{Adapters, Case},
    poison::{Guarded, Layout},
    random::Rng,
};
use halite_kernels::{
    Backend, DType, Stream, Tensor,
    linear::{LoraArgs, LoraStep, WeightFormat},
};
use std::ops::Range;

pub(super) fn rows<B: Backend>(device: &B) -> Verdict {
    run(device, |width, run| same_rows("adapters", width, run))
}

/// The largest batch, for comparisons between devices.
pub(super) fn all_rows<B: Backend>(device: &B) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    run(device, |_, run| {
        bytes = run(0..ROWS)?;
        Ok(())
    })?;
    Ok(bytes)
}

/// Hands over the bytes of a row's result, and what gives the results of some rows.
fn run<B: Backend>(
    device: &B,
    look: impl FnOnce(usize, &mut dyn FnMut(Range<usize>) -> Result<Vec<u8>, Fault>) -> Verdict,
) -> Verdict {
    let stream = &mut device.stream()?;
    let mut rng = Rng::new(11);
    let rows: Vec<i32> = (0..ROWS).map(|row| [0, 0, 2, -1, 1, 1, 1, 2][row % 8]).collect();
    let case = Case {
        in_features: 300,
        out_features: 70,
        ranks: vec![16, 3, 33],
        rows,
        weights: WeightFormat::Bf16,
        activations: DType::F16,
        output: DType::F32,
        layout: Layout::Dense,
        seed: 11,
    };
    if denied(device.lora_supports(&case.spec())) {
        return Ok(());
    }
    let all = Adapters::<B>::new(device, stream, &mut rng, &case)?;
    let mut plan = device.lora_plan(&case.spec(), ROWS)?;
    let (x, _) = Guarded::<B>::input(
        stream,
        DType::F16,
        &rng.spreads(ROWS * case.in_features),
        &[ROWS, case.in_features],
        Layout::Dense,
    )?;
    let before = rng.spreads(ROWS * case.out_features);
    let arguments = all.arguments();
    stream.reserve(device.lora_workspace(&plan, &arguments))?;
    look(case.out_features * 4, &mut |rows| {
        let step = LoraStep { adapters: &case.rows[rows.clone()] }.check(&plan)?;
        device.lora_update(stream, &mut plan, &step)?;
        let n = case.out_features;
        let out = Tensor::<B>::from_slice(stream, &before[rows.start * n..rows.end * n], &[rows.len(), n])?;
        let x = x.view.narrow(0, rows)?;
        let args = LoraArgs::<B> { plan: &plan, x: &x, adapters: &arguments, out: &out };
        device.lora(stream, args.check()?)?;
        Ok(out.to_vec::<f32>(stream)?.into_iter().flat_map(f32::to_le_bytes).collect())
    })
}
