//! Packed up-projections: saved, restored, and refused where they belong elsewhere.

use super::{Call, Weights, tokens};
use crate::{
    attention::{Fill, fill},
    case::{Fault, Shown, Verdict, ensure},
    judge::same_bits,
    poison::Layout,
    random::Rng,
};
use halite_kernels::{
    Backend, Error, Support,
    cache::KvSpec,
    linear::{HostWeights, LinearSpec, WeightFormat},
    mla::{MlaForm, MlaSpec},
};

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("what was saved gives the same bits", restored),
        ("what was saved for something else, or is damaged, is refused", refused),
    ]
}

fn specs<B: Backend>(device: &B) -> Vec<MlaSpec> {
    let mut specs = Vec::new();
    for form in [MlaForm::Absorbed, MlaForm::Expanded] {
        for weights in [WeightFormat::F32, WeightFormat::F16, WeightFormat::Bf16] {
            let kv = KvSpec::latent(1, 40, 6).with_block_size(4);
            specs.push(MlaSpec::new(3, kv, 10, 12, form).with_weights(weights));
        }
    }
    specs.retain(|spec| !matches!(device.mla_supports(spec), Support::No(_)));
    specs
}

fn restored<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    for spec in specs(device) {
        let mut rng = Rng::new(3);
        let packed = Weights::new(&mut rng, &spec).pack(device, stream, &spec)?;
        let saved = device.mla_save(stream, &packed)?;
        // Scale and mask are no part of the weights.
        let other = spec.clone().with_attention(|attention| attention.with_scale(0.5));
        let again = device.mla_restore(stream, &other, &saved)?;
        same_bits("saved twice", &device.mla_save(stream, &again)?, &saved)?;
        let (q, rows) = tokens(&mut rng, &spec, Fill::Away, 5, 21);
        let filled = fill(device, stream, &spec.attention, 0, &[rows], 1)?;
        let mut run = |packed: &B::MlaPacked| -> Result<Vec<u8>, Fault> {
            let call = Call {
                spec: &spec,
                packed,
                filled: &filled,
                layer: 0,
                cu_seqlens: &[0, 5],
                kv_lens: &[21],
                table: &filled.table,
                tree_parents: &[],
                q: &q,
                sinks: None,
                layout: Layout::Dense,
                log_sum_exp: false,
                ends: &[],
            };
            call.run(device, stream)?[0].read_bytes(stream)
        };
        let first = run(&packed)?;
        same_bits("restored weights", &run(&again)?, &first)?;
    }
    Ok(())
}

fn refused<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let refuse = |what: &str, result: Result<B::MlaPacked, Error>| match result {
        Err(Error::Layout { operator: "mla", .. }) => Ok(()),
        Err(error) => Err(Fault(format!("{what}: expected an error of the layout, got {error:?}"))),
        Ok(_) => Err(Fault(format!("{what} was taken"))),
    };
    let specs = specs(device);
    for spec in &specs {
        let packed = Weights::new(&mut Rng::new(3), spec).pack(device, stream, spec)?;
        let saved = device.mla_save(stream, &packed)?;
        for other in &specs {
            if other != spec {
                refuse(&format!("{other:?}"), device.mla_restore(stream, other, &saved))?;
            }
        }
        for (what, bytes) in [
            ("a byte less", &saved[..saved.len() - 1]),
            ("a byte more", &[&saved[..], &[0]].concat()),
            ("nothing", &[]),
            ("no header", &saved[saved.len() / 2..]),
        ] {
            refuse(what, device.mla_restore(stream, spec, bytes))?;
        }
        // 12 rows for each of 3 heads, and as many of K: a linear layer of the same weights.
        let linear = LinearSpec::float(40, 36, WeightFormat::F32);
        if !matches!(device.linear_supports(&linear), Support::No(_)) {
            let data = vec![0.5; 40 * 36];
            let packed = device.linear_pack(stream, HostWeights::F32(&data).check(&linear)?)?;
            let saved = device.linear_save(stream, &packed)?;
            refuse("a linear layer", device.mla_restore(stream, spec, &saved))?;
        }
    }
    ensure(!specs.is_empty() || !device_has_mla(device), || "no spec was tried".into())
}

fn device_has_mla<B: Backend>(device: &B) -> bool {
    let spec = MlaSpec::new(3, KvSpec::latent(1, 40, 6).with_block_size(4), 10, 12, MlaForm::Absorbed);
    !matches!(device.mla_supports(&spec), Support::No(_))
}
