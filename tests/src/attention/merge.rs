//! Merging partial results, of made-up parts; [`cascade`](super::cascade) merges those of attention.

use crate::{
    case::{Shown, Verdict},
    judge::{judge, refused, unsupported},
    ledger::denied,
    oracle::attention::{Partial, merge},
    poison::{Guarded, Layout},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType,
    attention::{AttentionMergeArgs, AttentionMergeSpec, AttentionPart},
};

/// One merge.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct MergeCase {
    /// What is merged.
    pub spec: AttentionMergeSpec,
    /// `[tokens, query_heads, value_head_dim]`.
    pub dims: [usize; 3],
    /// The parts' log-sum-exps lie about here: a part's own, of which each row is off by less than 1.
    pub parts: Vec<f32>,
    /// How all tensors lie in memory.
    pub layout: Layout,
    /// Whether the merged log-sum-exp is asked for.
    pub log_sum_exp: bool,
}

const EMPTY: f32 = f32::NEG_INFINITY;

/// One part and many; near and far; empty ones, whose outputs are NaN.
pub(super) fn cases() -> Vec<MergeCase> {
    let mut cases = Vec::new();
    for dtype in [DType::F32, DType::F16, DType::Bf16, DType::I8] {
        for (number, parts) in [
            &[0.0][..],
            &[0.0, 0.0],
            &[-3.0, 4.0],
            &[EMPTY],
            &[EMPTY, EMPTY],
            &[EMPTY, 2.0, EMPTY],
            &[5.0, EMPTY],
            &[-6e4, -6e4],
            &[1e4, -1e4, 1e4],
            &[90.0, -90.0],
            &[1.0; 17],
        ]
        .into_iter()
        .enumerate()
        {
            for dims in [[1, 1, 1], [3, 2, 16], [5, 3, 33], [0, 2, 8], [2, 7, 64], [9, 1, 130]] {
                let layout =
                    [Layout::Dense, Layout::Rows { before: 3, after: 5 }, Layout::Heads { after: 3 }];
                cases.push(MergeCase {
                    spec: AttentionMergeSpec::new().with_dtype(dtype),
                    dims,
                    parts: parts.to_vec(),
                    layout: layout[(number + dims[2]) % 3],
                    log_sum_exp: number % 4 != 1,
                });
            }
        }
    }
    cases
}

/// One merge of a few rows.
pub(super) fn of(spec: AttentionMergeSpec, parts: &[f32]) -> MergeCase {
    MergeCase { spec, dims: [3, 2, 40], parts: parts.to_vec(), layout: Layout::Dense, log_sum_exp: true }
}

pub(super) fn body<B: Backend>(device: &B, case: &MergeCase) -> Verdict {
    let MergeCase { spec, dims, layout, .. } = case;
    let (stream, rows) = (&mut device.stream()?, dims[0] * dims[1]);
    let mut rng = Rng::new(rows as u64);
    let log_layout = Layout::Rows { before: 1, after: 2 };
    let (mut tensors, mut partials) = (Vec::new(), Vec::new());
    for &about in &case.parts {
        // One row of a part may be empty where the others are not.
        let logs: Vec<f32> =
            (0..rows).map(|row| if row % 5 == 4 { EMPTY } else { about + rng.unit() }).collect();
        let mut out = rng.aways(rows * dims[2]);
        for (row, &log) in out.chunks_mut(dims[2]).zip(&logs) {
            if log == EMPTY {
                row.fill(f32::NAN);
            }
        }
        let (out, out_values) = Guarded::<B>::input(stream, spec.dtype, &out, dims, *layout)?;
        let (log, log_values) = Guarded::<B>::input(stream, DType::F32, &logs, &dims[..2], log_layout)?;
        tensors.push((out, log));
        let exact = |values: Vec<f64>| values.into_iter().map(Bound::exact).collect();
        partials.push(Partial { out: exact(out_values), log_sum_exp: exact(log_values) });
    }
    let parts: Vec<AttentionPart<'_, B>> =
        tensors.iter().map(|(out, log)| AttentionPart { out: &out.view, log_sum_exp: &log.view }).collect();
    let out = Guarded::<B>::output(stream, spec.dtype, dims, *layout)?;
    let log = Guarded::<B>::output(stream, DType::F32, &dims[..2], log_layout)?;
    let log_sum_exp = case.log_sum_exp.then_some(&log.view);
    let args = AttentionMergeArgs { spec, parts: &parts, out: &out.view, log_sum_exp };
    let ran = device.attention_merge(stream, args.check()?);
    if denied(device.attention_merge_supports(spec)) {
        return unsupported("attention_merge", ran);
    }
    ran?;
    let merged = merge(dims[2], &partials);
    let round = |y: &Bound| if *y == Bound::exact(0.0) { *y } else { y.rounded(spec.dtype) };
    judge("out", dims, &out.read(stream)?, &merged.out.iter().map(round).collect::<Vec<_>>())?;
    if case.log_sum_exp {
        judge("log_sum_exp", &dims[..2], &log.read(stream)?, &merged.log_sum_exp)
    } else {
        log.untouched(stream)
    }
}

pub(super) fn errors<B: Backend>() -> Vec<Shown<B>> {
    vec![("parts that do not fit", tensors)]
}

fn tensors<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let spec = AttentionMergeSpec::new();
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let (out, log) = (tensor(DType::F32, &[3, 2, 4])?, tensor(DType::F32, &[3, 2])?);
    let (x, x_log) = (tensor(DType::F32, &[3, 2, 4])?, tensor(DType::F32, &[3, 2])?);
    let (half, flat, short) =
        (tensor(DType::F16, &[3, 2, 4])?, tensor(DType::F32, &[3, 8])?, tensor(DType::F32, &[3, 1])?);
    let nothing = tensor(DType::F32, &[3, 2, 0])?;
    let good = AttentionPart::<B> { out: &x.view, log_sum_exp: &x_log.view };
    let of_out = out.view.narrow(2, 0..1)?.narrow(1, 0..2)?;
    let check = |parts: &[AttentionPart<'_, B>], out, log_sum_exp| {
        AttentionMergeArgs { spec: &spec, parts, out, log_sum_exp }.check().map(drop)
    };
    let operator = "attention_merge";
    let part_of_nothing = AttentionPart { out: &nothing.view, ..good };
    refused(operator, "out", check(&[part_of_nothing], &nothing.view, Some(&log.view)))?;
    refused(operator, "parts", check(&[], &out.view, None))?;
    refused(operator, "out", check(&[good], &flat.view, None))?;
    refused(operator, "out", check(&[good], &half.view, None))?;
    refused(operator, "out", check(&[good], &x.view, None))?;
    refused(operator, "log_sum_exp", check(&[good], &out.view, Some(&short.view)))?;
    refused(operator, "log_sum_exp", check(&[good], &out.view, Some(&x_log.view)))?;
    for (argument, part) in [
        ("parts.out", AttentionPart { out: &half.view, ..good }),
        ("parts.out", AttentionPart { out: &of_out, ..good }),
        ("parts.log_sum_exp", AttentionPart { log_sum_exp: &short.view, ..good }),
        ("out", AttentionPart { out: &out.view, ..good }),
    ] {
        refused(operator, argument, check(&[good, part], &out.view, Some(&log.view)))?;
    }
    check(&[good, good], &out.view, Some(&log.view))?;
    out.untouched(stream)
}
