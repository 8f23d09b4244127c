//! The rotation alone, judged: against the matrix product, and against its own inverse.

use super::{Row, options::MODERATE, row};
use crate::{
    case::{Shown, Verdict},
    judge::{judge, refused, unsupported},
    ledger::denied,
    oracle,
    poison::{Guarded, LAYOUTS, Layout},
    random::Rng,
    tolerance::{Bound, summing},
};
use halite_kernels::{
    Backend, DType,
    quantize::{MAX_ROTATION_BLOCK, RotateArgs, RotateSpec},
};

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Which rotation.
    pub spec: RotateSpec,
    /// What the rows hold.
    pub rows: Vec<Row>,
    /// Columns.
    pub columns: usize,
    /// How both lie in memory.
    pub layout: Layout,
    /// Of the data.
    pub seed: u64,
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let sizes = [(0, 16), (1, 1), (7, 1), (6, 2), (12, 4), (8, 8), (48, 16), (96, 32), (192, 64), (384, 128)];
    for (number, (columns, block)) in sizes.into_iter().enumerate() {
        for (place, dtype) in super::FLOATS.into_iter().enumerate() {
            for rows in [vec![], vec![Row::Spread], MODERATE.to_vec()] {
                let spec = RotateSpec::hadamard(block).with_dtype(dtype);
                let layout = LAYOUTS[(number + place) % 3];
                cases.push(Case { spec, rows, columns, layout, seed: number as u64 });
            }
        }
    }
    for (columns, block) in [(2048, 1024), (MAX_ROTATION_BLOCK, MAX_ROTATION_BLOCK)] {
        let spec = RotateSpec::hadamard(block);
        cases.push(Case { spec, rows: vec![Row::Spread], columns, layout: LAYOUTS[1], seed: 1 });
    }
    cases
}

pub(super) fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { spec, columns, layout, .. } = case;
    let dims = [case.rows.len(), *columns];
    let stream = &mut device.stream()?;
    let mut rng = Rng::new(case.seed);
    let values: Vec<f32> =
        case.rows.iter().flat_map(|&kind| row(&mut rng, kind, spec.dtype, *columns)).collect();
    let (x, values) = Guarded::<B>::input(stream, spec.dtype, &values, &dims, *layout)?;
    let out = Guarded::<B>::output(stream, spec.dtype, &dims, *layout)?;
    let ran = device.rotate(stream, RotateArgs { spec, x: &x.view, out: &out.view }.check()?);
    if denied(device.rotate_supports(spec)) {
        unsupported("rotate", ran)?;
        return out.untouched(stream);
    }
    ran?;
    let expected = |x: &[f64]| -> Vec<Bound> {
        let x: Vec<Bound> = x.iter().map(|&x| Bound::exact(x)).collect();
        let y = oracle::quantize::prepared(&x, *columns, None, &[], Some(spec.block));
        y.into_iter().map(|y| y.rounded(spec.dtype)).collect()
    };
    let turned = out.read(stream)?;
    judge("out", &dims, &turned, &expected(&values))?;

    // Turned again: the input, but for the roundings.
    let again = Guarded::<B>::output(stream, spec.dtype, &dims, *layout)?;
    device.rotate(stream, RotateArgs { spec, x: &out.view, out: &again.view }.check()?)?;
    let back = again.read(stream)?;
    judge("twice", &dims, &back, &expected(&turned))?;
    let finite = case.rows.iter().all(|row| !matches!(row, Row::Nan | Row::Infinite));
    // An element turned is at most the block's sum over √block, and so is what its roundings weigh when turned again.
    let least = Bound::exact(0.0).rounded(spec.dtype).error;
    let near = values.chunks(spec.block).flat_map(|block| {
        let sum: f64 = block.iter().map(|x| x.abs()).sum();
        let roundings = 2.0 * Bound::exact(sum).rounded(spec.dtype).error + 4.0 * summing(block.len()) * sum;
        let error = roundings + (block.len() as f64).sqrt() * least;
        block.iter().map(move |&value| Bound { value, error })
    });
    if finite { judge("twice", &dims, &back, &near.collect::<Vec<_>>()) } else { Ok(()) }
}

pub(super) fn errors<B: Backend>() -> Shown<B> {
    ("rotations of wrong sizes, shapes, types and in place", |device| {
        let stream = &mut device.stream()?;
        let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
        let (x, out) = (tensor(DType::F32, &[2, 48])?, tensor(DType::F32, &[2, 48])?);
        let (half, narrow, flat) =
            (tensor(DType::F16, &[2, 48])?, tensor(DType::F32, &[2, 32])?, tensor(DType::F32, &[96])?);
        for (argument, block, x, out) in [
            ("block", 0, &x.view, &out.view),
            ("block", 3, &x.view, &out.view),
            ("block", 32, &x.view, &out.view),
            ("block", 2 * MAX_ROTATION_BLOCK, &x.view, &out.view),
            ("x", 16, &half.view, &out.view),
            ("x", 16, &flat.view, &out.view),
            ("out", 16, &x.view, &half.view),
            ("out", 16, &x.view, &narrow.view),
            ("out", 16, &x.view, &flat.view),
            ("out", 16, &x.view, &x.view),
        ] {
            let spec = RotateSpec::hadamard(block);
            refused("rotate", argument, RotateArgs { spec: &spec, x, out }.check())?;
        }
        out.untouched(stream)
    })
}
