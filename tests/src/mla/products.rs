//! The absorbed form's products by themselves.

use super::{Weights, refused_pack};
use crate::{
    case::Verdict,
    judge::judge,
    oracle::mla::{absorb, up_project},
    poison::{Guarded, Layout},
    random::Rng,
};
use halite_kernels::{
    Backend, DType, Support,
    cache::KvSpec,
    linear::WeightFormat,
    mla::{AbsorbArgs, MlaForm, MlaSpec, UpProjectArgs},
};

/// Both products of some tokens.
#[derive(Clone, Debug)]
pub(super) struct Case {
    spec: MlaSpec,
    tokens: usize,
    layout: Layout,
}

pub(super) fn cases() -> Vec<Case> {
    let layouts = [Layout::Dense, Layout::Rows { before: 3, after: 5 }, Layout::Heads { after: 3 }];
    let weights = [WeightFormat::Bf16, WeightFormat::F32, WeightFormat::F16];
    let dtypes = [DType::F32, DType::Bf16, DType::F16];
    let mut cases = Vec::new();
    let mut push = |heads, [rank, rope_dim, nope_dim, value_head_dim]: [usize; 4], tokens| {
        let kv = KvSpec::latent(1, rank, rope_dim);
        let spec = MlaSpec::new(heads, kv, nope_dim, value_head_dim, MlaForm::Absorbed)
            .with_weights(weights[cases.len() % 3])
            .with_attention(|attention| attention.with_dtype(dtypes[cases.len() / 3 % 3]));
        cases.push(Case { spec, tokens, layout: layouts[(cases.len() / 2) % 3] });
    };
    for tokens in [3, 1, 2, 1, 14, 13, 1] {
        push(2, [512, 64, 128, 128], tokens);
    }
    for tokens in [0, 1, 2, 3, 4, 5, 11, 12, 13, 25, 33] {
        push(3, [40, 6, 10, 12], tokens);
        push(1, [33, 1, 17, 31], tokens);
    }
    for heads in [5, 16, 128] {
        push(heads, [16, 2, 7, 9], 2);
    }
    for (number, dim) in [1, 15, 16, 17, 31, 32, 33, 64, 65].into_iter().enumerate() {
        push(2, [dim, 1 + number, 66 - dim, dim], 4);
    }
    cases
}

pub(super) fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { spec, tokens, layout } = case;
    let (stream, dtype) = (&mut device.stream()?, spec.attention.dtype);
    if let Support::No(_) = device.mla_supports(spec) {
        return refused_pack(device, stream, spec);
    }
    let mut rng = Rng::new(*tokens as u64);
    let weights = Weights::new(&mut rng, spec);
    let packed = weights.pack(device, stream, spec)?;
    let [uk, uv] =
        [&weights.w_uk, &weights.w_uv].map(|w| w.iter().map(|&w| f64::from(w)).collect::<Vec<_>>());
    let dims = |dim| [*tokens, spec.heads(), dim];
    let (rank, row) = (spec.kv_lora_rank(), spec.attention.kv.head_dim);

    let q = rng.aways(tokens * spec.heads() * spec.query_dim());
    let (q, stored_q) = Guarded::<B>::input(stream, dtype, &q, &dims(spec.query_dim()), *layout)?;
    let out = Guarded::<B>::output(stream, dtype, &dims(row), *layout)?;
    device.absorb(stream, AbsorbArgs { weights: &packed, q: &q.view, out: &out.view }.check()?)?;
    let expected: Vec<_> = absorb(spec, &uk, &stored_q)
        .into_iter()
        .enumerate()
        // What turns goes through as it is.
        .map(|(place, y)| if place % row < rank { y.rounded(dtype) } else { y })
        .collect();
    judge("absorbed queries", &dims(row), &out.read(stream)?, &expected)?;

    let x = rng.aways(tokens * spec.heads() * rank);
    let (x, stored_x) = Guarded::<B>::input(stream, dtype, &x, &dims(rank), *layout)?;
    let out = Guarded::<B>::output(stream, dtype, &dims(spec.value_head_dim), *layout)?;
    device.up_project(stream, UpProjectArgs { weights: &packed, x: &x.view, out: &out.view }.check()?)?;
    let expected: Vec<_> = up_project(spec, &uv, &stored_x).into_iter().map(|y| y.rounded(dtype)).collect();
    judge("up-projected values", &dims(spec.value_head_dim), &out.read(stream)?, &expected)
}
