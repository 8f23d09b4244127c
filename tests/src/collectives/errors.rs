//! What one rank passes wrong by itself.

use crate::{
    case::{Fault, Shown, Verdict},
    judge::refused,
    poison::{Guarded, Layout},
};
use halite_kernels::{
    Backend, DType,
    collectives::{AllGatherArgs, AllReduceArgs, AllToAllArgs, ReduceScatterArgs, Reduction},
};

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("no devices", |_: &B| refused("collectives", "devices", B::communicators(&[]).map(drop))),
        ("tensors and counts that do not fit", tensors),
    ]
}

fn tensors<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let ends = B::communicators(&vec![device.clone(); 3])?;
    let communicator = ends.first().ok_or_else(|| Fault::new("no communicators"))?;
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let (x, out) = (tensor(DType::F32, &[6, 4])?, tensor(DType::F32, &[6, 4])?);
    let (half, wide) = (tensor(DType::F16, &[6, 4])?, tensor(DType::F32, &[6, 5])?);
    let (part, whole, scalar) =
        (tensor(DType::F32, &[2, 4])?, tensor(DType::F32, &[18, 4])?, tensor(DType::F32, &[])?);
    let strided = wide.view.narrow(1, 0..4)?;
    let (five, inside) = (x.view.narrow(0, 0..5)?, whole.view.narrow(0, 3..9)?);
    let overlapping = whole.view.narrow(0, 6..12)?;
    let reduction = Reduction::Sum;
    for (argument, x, out) in [
        ("x", &strided, &out.view),
        ("x", &scalar.view, &scalar.view),
        ("out", &x.view, &strided),
        ("out", &x.view, &half.view),
        ("out", &x.view, &five),
        ("out", &inside, &overlapping),
    ] {
        let args = AllReduceArgs::<B> { communicator, reduction, x, out };
        refused("collectives", argument, args.check())?;
    }
    for (argument, x, out) in [
        ("x", &five, &part.view),
        ("x", &strided, &part.view),
        ("out", &x.view, &x.view),
        ("out", &x.view, &half.view),
        ("out", &x.view, &x.view.narrow(0, 2..4)?),
    ] {
        let args = ReduceScatterArgs::<B> { communicator, reduction, x, out };
        refused("collectives", argument, args.check())?;
    }
    for (argument, x, out) in [
        ("x", &strided, &whole.view),
        ("out", &x.view, &x.view),
        ("out", &part.view, &half.view),
        ("out", &inside, &whole.view),
    ] {
        refused("collectives", argument, AllGatherArgs::<B> { communicator, x, out }.check())?;
    }
    for (argument, send_counts, receive_counts) in [
        ("send_counts", &[6, 0][..], &[6, 0, 0][..]),
        ("send_counts", &[6, 0, 0, 0], &[6, 0, 0]),
        ("send_counts", &[6, 1, 0], &[6, 0, 0]),
        ("send_counts", &[usize::MAX, 7, 0], &[6, 0, 0]),
        ("receive_counts", &[1, 2, 3], &[6]),
        ("receive_counts", &[1, 2, 3], &[usize::MAX, 1, 0]),
        ("out", &[1, 2, 3], &[1, 2, 2]),
    ] {
        let (x, out) = (&x.view, &out.view);
        let args = AllToAllArgs::<B> { communicator, x, send_counts, receive_counts, out };
        refused("collectives", argument, args.check())?;
    }
    out.untouched(stream)?;
    part.untouched(stream)?;
    whole.untouched(stream)
}
