//! Bad arguments of dispatch and combine.

use crate::{case::Verdict, judge::refused};
use halite_kernels::{
    Backend, DType, Tensor,
    linear::{Activations, Quantized},
    moe::{CombineArgs, DispatchArgs, LocalExperts},
};

pub(super) fn args<B: Backend>(device: &B) -> Verdict {
    let tensor = |dtype, dims: &[usize]| Tensor::<B>::new(device, dtype, dims);
    let (x, half, q) =
        (tensor(DType::F32, &[3, 5])?, tensor(DType::F16, &[3, 5])?, tensor(DType::I8, &[3, 5])?);
    let (rows, half_rows, few) =
        (tensor(DType::F32, &[6, 5])?, tensor(DType::F16, &[6, 5])?, tensor(DType::F32, &[5, 5])?);
    let (q_rows, scales, row_scales) =
        (tensor(DType::I8, &[6, 5])?, tensor(DType::F32, &[3])?, tensor(DType::F32, &[6])?);
    let (ids, places, narrow_ids) =
        (tensor(DType::I32, &[3, 2])?, tensor(DType::I32, &[3, 2])?, tensor(DType::I32, &[3, 1])?);
    let (weights, offsets, long) =
        (tensor(DType::F32, &[3, 2])?, tensor(DType::I32, &[5])?, tensor(DType::I32, &[6])?);
    let no_slots = tensor(DType::I32, &[3, 0])?;
    let args = || DispatchArgs::<B> {
        local: LocalExperts::all(4),
        x: Activations::Float(&x),
        ids: &ids,
        weights: Some(&weights),
        rows: Activations::Float(&rows),
        offsets: &offsets,
        places: &places,
    };
    args().check()?;
    let int8 = |q, scales| Activations::int8_per_token(q, scales);
    let zeros = |q, scales| Activations::Quantized(Quantized::new(q, scales).with_zero_points(&ids));
    for (argument, args) in [
        ("count", DispatchArgs { local: LocalExperts::all(0), ..args() }),
        ("first + count", DispatchArgs { local: LocalExperts::range(usize::MAX, 4), ..args() }),
        ("first + count", DispatchArgs { local: LocalExperts::range(i32::MAX as usize, 4), ..args() }),
        ("ids", DispatchArgs { ids: &weights, ..args() }),
        ("top_k", DispatchArgs { ids: &no_slots, ..args() }),
        ("x", DispatchArgs { x: Activations::Float(&ids), ..args() }),
        ("x", DispatchArgs { x: Activations::Float(&rows), ..args() }),
        ("x scales", DispatchArgs { x: int8(&q, &row_scales), ..args() }),
        ("x", DispatchArgs { x: zeros(&q, &scales), rows: int8(&q_rows, &row_scales), ..args() }),
        ("rows", DispatchArgs { x: int8(&q, &scales), ..args() }),
        ("rows", DispatchArgs { rows: Activations::Float(&few), ..args() }),
        ("rows", DispatchArgs { rows: Activations::Float(&half_rows), ..args() }),
        ("row scales", DispatchArgs { x: int8(&q, &scales), rows: int8(&q_rows, &scales), ..args() }),
        ("weights", DispatchArgs { weights: Some(&x), ..args() }),
        ("offsets", DispatchArgs { offsets: &long, ..args() }),
        ("places", DispatchArgs { places: &narrow_ids, ..args() }),
        ("places", DispatchArgs { places: &ids, ..args() }),
        ("rows", DispatchArgs { x: Activations::Float(&rows.narrow(0, 0..3)?), ..args() }),
    ] {
        refused("dispatch", argument, args.check())?;
    }
    let args = || CombineArgs::<B> {
        rows: Activations::Float(&rows),
        places: &places,
        weights: Some(&weights),
        added: &[],
        out: &x,
    };
    args().check()?;
    for (argument, args) in [
        ("rows", CombineArgs { rows: Activations::Float(&weights), ..args() }),
        ("rows", CombineArgs { rows: Activations::Float(&ids), ..args() }),
        ("row scales", CombineArgs { rows: int8(&q_rows, &scales), ..args() }),
        ("places", CombineArgs { places: &weights, ..args() }),
        ("weights", CombineArgs { weights: Some(&x), ..args() }),
        ("out", CombineArgs { out: &few, ..args() }),
        ("out", CombineArgs { out: &q, ..args() }),
        ("out", CombineArgs { rows: Activations::Float(&x), ..args() }),
        ("added", CombineArgs { added: &[&half], ..args() }),
        ("out", CombineArgs { added: &[&x], ..args() }),
    ] {
        refused("combine", argument, args.check())?;
    }
    Ok(())
}
