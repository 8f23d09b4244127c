//! Bad arguments of latent attention.

use super::Weights;
use crate::{
    case::{Shown, Verdict},
    judge::refused,
    poison::{Guarded, Layout},
    random::Rng,
};
use half::bf16;
use halite_kernels::{
    Backend, DType,
    attention::{AttentionCapacity, AttentionOut, AttentionStep, Sinks},
    cache::KvSpec,
    linear::{HostWeights, WeightFormat},
    mla::{AbsorbArgs, MlaArgs, MlaForm, MlaSpec, MlaWeights, UpProjectArgs},
};

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("specs that make no sense", specs),
        ("weights that do not fit", weights),
        ("products of other shapes and forms", products),
        ("tensors, caches and weights that do not fit the plan", layers),
    ]
}

fn spec(form: MlaForm) -> MlaSpec {
    let kv = KvSpec::latent(2, 8, 4).with_block_size(4).with_dtype(DType::F32);
    MlaSpec::new(3, kv, 6, 5, form).with_weights(WeightFormat::F32)
}

const CAPACITY: AttentionCapacity =
    AttentionCapacity { max_tokens: 4, max_sequences: 2, max_blocks_per_sequence: 3, cache_blocks: 5 };

fn specs<B: Backend>(device: &B) -> Verdict {
    let with = |change: fn(&mut MlaSpec)| {
        let mut spec = spec(MlaForm::Expanded);
        change(&mut spec);
        spec
    };
    for (argument, bad) in [
        ("kv", with(|s| s.attention.kv = KvSpec::new(2, 1, 12).with_value_head_dim(8))),
        ("kv", with(|s| s.attention.kv.kv_heads = 3)),
        ("rope_dim", with(|s| s.attention.kv.head_dim = 8)),
        ("nope_dim", with(|s| s.nope_dim = 0)),
        ("value_head_dim", with(|s| s.value_head_dim = 0)),
        ("weights", with(|s| s.weights = WeightFormat::Int8PerChannel)),
        ("weight bytes", with(|s| s.nope_dim = usize::MAX)),
        ("weight bytes", with(|s| s.value_head_dim = usize::MAX / 64)),
        ("form", with(|s| s.form = MlaForm::Absorbed)),
    ] {
        refused("mla", argument, device.mla_plan(&bad, &CAPACITY))?;
        if argument != "form" {
            refused("mla", argument, bad.check())?;
        }
    }
    // What is wrong with the attention in it, attention says.
    for (argument, bad) in [
        ("query_heads", with(|s| s.attention.query_heads = 0)),
        ("scale", with(|s| s.attention.scale = f32::INFINITY)),
        ("soft_cap", with(|s| s.attention.soft_cap = Some(-1.0))),
        ("kv_split", with(|s| s.attention.kv_split = 24)),
    ] {
        refused("attention", argument, device.mla_plan(&bad, &CAPACITY))?;
        refused("attention", argument, bad.check())?;
    }
    Ok(())
}

fn weights<B: Backend>(_: &B) -> Verdict {
    let spec = spec(MlaForm::Absorbed);
    let (uk, uv) = (vec![0.5; 3 * 6 * 8], vec![0.5; 3 * 5 * 8]);
    let half: Vec<bf16> = uk.iter().map(|&w| bf16::from_f32(w)).collect();
    let (q, scales) = (vec![1i8; 3 * 5 * 8], vec![1.0; 15]);
    let good = || MlaWeights { w_uk: HostWeights::F32(&uk), w_uv: HostWeights::F32(&uv) };
    good().check(&spec)?;
    for (argument, bad) in [
        ("w_uk", MlaWeights { w_uk: HostWeights::F32(&uk[1..]), ..good() }),
        ("w_uk", MlaWeights { w_uk: HostWeights::F32(&uv), ..good() }),
        ("w_uk", MlaWeights { w_uk: HostWeights::Bf16(&half), ..good() }),
        ("w_uv", MlaWeights { w_uv: HostWeights::F32(&uk), ..good() }),
        ("w_uv", MlaWeights { w_uv: HostWeights::Int8PerChannel { q: &q, scales: &scales }, ..good() }),
    ] {
        refused("mla", argument, bad.check(&spec))?;
    }
    let mut no_dim = spec.clone();
    no_dim.nope_dim = 0;
    refused("mla", "nope_dim", good().check(&no_dim))
}

fn products<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let pack = |stream: &mut B::Stream, form| {
        Weights::new(&mut Rng::new(1), &spec(form)).pack(device, stream, &spec(form))
    };
    let (absorbed, expanded) = (pack(stream, MlaForm::Absorbed)?, pack(stream, MlaForm::Expanded)?);
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let (q, out) = (tensor(DType::F32, &[2, 3, 10])?, tensor(DType::F32, &[2, 3, 12])?);
    let (x, y) = (tensor(DType::F32, &[2, 3, 8])?, tensor(DType::F32, &[2, 3, 5])?);
    let (half, flat) = (tensor(DType::F16, &[2, 3, 10])?, tensor(DType::F32, &[6, 12])?);
    let (long, heads) = (tensor(DType::F32, &[3, 3, 10])?, tensor(DType::F32, &[2, 4, 12])?);
    let inside = out.view.narrow(2, 0..10)?;
    let absorb = |weights, q, out| AbsorbArgs::<B> { weights, q, out };
    absorb(&absorbed, &q.view, &out.view).check()?;
    for (argument, args) in [
        ("weights", absorb(&expanded, &q.view, &out.view)),
        ("q", absorb(&absorbed, &half.view, &out.view)),
        ("q", absorb(&absorbed, &long.view, &out.view)),
        ("q", absorb(&absorbed, &x.view, &out.view)),
        ("out", absorb(&absorbed, &q.view, &flat.view)),
        ("out", absorb(&absorbed, &q.view, &q.view)),
        ("out", absorb(&absorbed, &q.view, &heads.view)),
        ("out", absorb(&absorbed, &inside, &out.view)),
    ] {
        refused("mla", argument, args.check())?;
    }
    let up = |weights, x, out| UpProjectArgs::<B> { weights, x, out };
    up(&absorbed, &x.view, &y.view).check()?;
    let inside = x.view.narrow(2, 0..5)?;
    for (argument, args) in [
        ("weights", up(&expanded, &x.view, &y.view)),
        ("x", up(&absorbed, &y.view, &y.view)),
        ("x", up(&absorbed, &q.view, &y.view)),
        ("out", up(&absorbed, &x.view, &x.view)),
        ("out", up(&absorbed, &x.view, &inside)),
    ] {
        refused("mla", argument, args.check())?;
    }
    out.untouched(stream)?;
    y.untouched(stream)
}

fn layers<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let spec = spec(MlaForm::Expanded);
    let packed = |stream: &mut B::Stream, spec: &MlaSpec| {
        Weights::new(&mut Rng::new(1), spec).pack(device, stream, spec)
    };
    let weights = packed(stream, &spec)?;
    let absorbed = packed(stream, &spec.clone().with_form(MlaForm::Absorbed))?;
    let mut more = spec.clone();
    more.nope_dim = 7;
    let wider = packed(stream, &more)?;
    let half = packed(stream, &spec.clone().with_weights(WeightFormat::Bf16))?;
    let mut plan = device.mla_plan(&spec, &CAPACITY)?;
    let table = [0, 9, 9, 1, 9, 9];
    let step = AttentionStep {
        cu_seqlens: &[0, 2, 3],
        kv_lens: &[2, 3],
        kv_ranges: &[],
        block_table: &table,
        tree_parents: &[],
    };
    let step = step.check(&plan)?;
    device.mla_update(stream, &mut plan, &step)?;
    // A step belongs to plans of the limits that it was checked against.
    let mut other = device.mla_plan(&spec, &AttentionCapacity { max_tokens: 3, ..CAPACITY })?;
    refused("mla", "step", device.mla_update(stream, &mut other, &step))?;
    let kv = &spec.attention.kv;
    let (cache, small) = (device.kv_cache(kv, 5)?, device.kv_cache(kv, 4)?);
    let ordinary = device.kv_cache(&KvSpec::new(2, 1, 12).with_block_size(4).with_dtype(DType::F32), 5)?;
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let (q, out) = (tensor(DType::F32, &[3, 3, 10])?, tensor(DType::F32, &[3, 3, 5])?);
    let (q_half, q_long) = (tensor(DType::F16, &[3, 3, 10])?, tensor(DType::F32, &[4, 3, 10])?);
    let (lse, short) = (tensor(DType::F32, &[3, 3])?, tensor(DType::F32, &[3, 2])?);
    let sinks = tensor(DType::F32, &[3])?;
    let (inside_q, inside_out) = (q.view.narrow(2, 0..5)?, out.view.narrow(2, 0..3)?.narrow(1, 0..1)?);
    let plain = || MlaArgs::<B> {
        plan: &plan,
        cache: &cache,
        layer: 1,
        weights: &weights,
        q: &q.view,
        state_in: None,
        out: AttentionOut::Normalised(&out.view),
        sinks: None,
        log_sum_exp: Some(&lse.view),
    };
    plain().check()?;
    for (argument, args) in [
        ("cache", MlaArgs { cache: &small, ..plain() }),
        ("cache", MlaArgs { cache: &ordinary, ..plain() }),
        ("layer", MlaArgs { layer: 2, ..plain() }),
        ("weights", MlaArgs { weights: &absorbed, ..plain() }),
        ("weights", MlaArgs { weights: &wider, ..plain() }),
        ("weights", MlaArgs { weights: &half, ..plain() }),
        ("q", MlaArgs { q: &q_half.view, ..plain() }),
        ("q", MlaArgs { q: &q_long.view, ..plain() }),
        ("q", MlaArgs { q: &out.view, ..plain() }),
        ("out", MlaArgs { out: AttentionOut::Normalised(&q.view), ..plain() }),
        ("out", MlaArgs { out: AttentionOut::Normalised(&inside_q), ..plain() }),
        ("out", MlaArgs { log_sum_exp: Some(&inside_out), ..plain() }),
        ("log_sum_exp", MlaArgs { log_sum_exp: Some(&short.view), ..plain() }),
        ("sinks", MlaArgs { sinks: Some(&sinks.view), ..plain() }),
    ] {
        refused("mla", argument, args.check())?;
    }
    let with_sinks = spec.clone().with_attention(|attention| attention.with_sinks(Sinks::PerHead));
    let mut plan = device.mla_plan(&with_sinks, &CAPACITY)?;
    device.mla_update(stream, &mut plan, &step)?;
    refused("mla", "sinks", MlaArgs { plan: &plan, ..plain() }.check())?;
    out.untouched(stream)?;
    lse.untouched(stream)
}
