//! Packed weights: saved and restored, and refused where they belong elsewhere.

use super::{Case, Operand, Weights, group_wise, integer_specs, specs};
use crate::{
    case::{Fault, Shown, Verdict, ensure},
    judge::same_bits,
    ledger::denied,
    poison::{Guarded, Layout},
    random::Rng,
};
use halite_kernels::{
    Backend, DType, Error, Stream,
    activation::Activation,
    linear::{Epilogue, GroupOffset, LinearArgs, LinearSpec, WeightFormat},
};

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("saved and restored: the same bytes, the same results", round_trip),
        ("saved for another spec", other_spec),
        ("truncated, extended, corrupted, empty", damaged),
        ("specs whose packed size overflows", overflowing),
        ("one packing serves every number of rows, and clones share it", shared),
    ]
}

/// All formats, plain and gated, that the backend runs.
fn supported<B: Backend>(device: &B) -> Vec<LinearSpec> {
    let shapes = [(1, 1), (33, 17), (64, 48), (130, 65)];
    let plain = shapes.into_iter().flat_map(|(k, n)| specs(k, n));
    let gated = plain.clone().filter(|spec| spec.output != DType::I32).map(|s| s.gated(Activation::Silu));
    let integers = integer_specs(65, 18).into_iter().flat_map(|spec| {
        let with_outliers = spec.clone().with_outliers(3, DType::Bf16);
        [spec, with_outliers]
    });
    let groups = group_wise::specs(33, 17).into_iter().chain(group_wise::specs(256, 40));
    let kept_groups = group_wise::specs(256, 17).into_iter().filter(|spec| spec.activations.is_quantized());
    let kept_groups = kept_groups.map(|spec| spec.with_outliers(4, DType::F32));
    let gated_groups = group_wise::specs(48, 17).into_iter().map(|spec| spec.gated(Activation::Silu));
    plain
        .chain(gated)
        .chain(integers)
        .chain(groups)
        .chain(kept_groups)
        .chain(gated_groups)
        .filter(|spec| !denied(device.linear_supports(spec)))
        .collect()
}

fn run<B: Backend>(
    device: &B,
    stream: &mut B::Stream,
    packed: &B::Packed,
    rows: usize,
) -> Result<Vec<u8>, Fault> {
    let spec = packed.as_ref().clone();
    let out = Guarded::<B>::output(stream, spec.output, &[rows, spec.out_features], Layout::Dense)?;
    let case = Case::new(spec, rows);
    let operand = Operand::<B>::new(stream, &mut Rng::new(77), &case)?;
    stream.reserve(device.linear_workspace(packed, rows))?;
    let views = operand.rows(0..rows, packed.as_ref().activations)?;
    let (x, epilogue) = (views.activations(), Epilogue::default());
    device.linear(stream, LinearArgs::<B> { x, weights: packed, epilogue, out: &out.view }.check()?)?;
    out.read_bytes(stream)
}

fn pack<B: Backend>(device: &B, stream: &mut B::Stream, spec: &LinearSpec) -> Result<B::Packed, Fault> {
    let weights = Weights::new(&mut Rng::new(5), spec, super::Fill::Away);
    weights.pack(device, stream, spec)
}

fn layout_error<T>(what: &str, result: Result<T, Error>) -> Verdict {
    match result {
        Err(Error::Layout { operator: "linear", .. }) => Ok(()),
        Err(error) => Err(Fault(format!("{what}: expected a layout error of linear, got {error:?}"))),
        Ok(_) => Err(Fault(format!("{what}: saved weights were taken that do not fit"))),
    }
}

fn round_trip<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    for spec in supported(device) {
        let packed = pack(device, stream, &spec)?;
        let saved = device.linear_save(stream, &packed)?;
        // At an odd address too: saved weights come from files.
        let shifted: Vec<u8> = std::iter::once(0xEE).chain(saved.iter().copied()).collect();
        for bytes in [&saved[..], &shifted[1..]] {
            let restored = device.linear_restore(stream, &spec, bytes)?;
            ensure(*restored.as_ref() == spec, || format!("restored as {:?}", restored.as_ref()))?;
            same_bits("saved again", &device.linear_save(stream, &restored)?, &saved)?;
            for rows in [1, 5] {
                let (before, after) =
                    (run(device, stream, &packed, rows)?, run(device, stream, &restored, rows)?);
                same_bits(&format!("{spec:?}, {rows} rows, restored"), &after, &before)?;
            }
        }
    }
    Ok(())
}

fn other_spec<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let all = supported(device);
    for spec in &all {
        let packed = pack(device, stream, spec)?;
        let saved = device.linear_save(stream, &packed)?;
        // The output type does not change the packing, but the packed weights carry the whole spec.
        for other in all.iter().filter(|other| *other != spec) {
            layout_error(
                &format!("saved for {spec:?}, asked for {other:?}"),
                device.linear_restore(stream, other, &saved),
            )?;
        }
    }
    Ok(())
}

fn damaged<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let groups = WeightFormat::Int4PerGroup { group_size: 16, offset: GroupOffset::ZeroPoint };
    for spec in [
        LinearSpec::w8a8(33, 17),
        LinearSpec::w8a8(33, 17).with_weights(groups),
        LinearSpec::w8a8(33, 17).with_weights(groups).with_outliers(3, DType::F16),
        LinearSpec::float(33, 17, WeightFormat::F32),
        LinearSpec::w8a8(33, 17)
            .with_weights(WeightFormat::Int8PerChannelAsymmetric)
            .with_outliers(2, DType::F32),
    ] {
        if denied(device.linear_supports(&spec)) {
            continue;
        }
        let packed = pack(device, stream, &spec)?;
        let saved = device.linear_save(stream, &packed)?;
        for length in [0, 1, 4, 7, 8, 16, 31, saved.len() / 2, saved.len() - 1] {
            let result = device.linear_restore(stream, &spec, &saved[..length.min(saved.len() - 1)]);
            layout_error(&format!("{length} of {} bytes", saved.len()), result)?;
        }
        let longer: Vec<u8> = saved.iter().copied().chain([0]).collect();
        layout_error("a byte too many", device.linear_restore(stream, &spec, &longer))?;
        // The header begins with what names the format; a flipped byte there is no longer ours.
        for place in 0..4 {
            let mut wrong = saved.clone();
            wrong[place] ^= 0x20;
            layout_error(&format!("byte {place} flipped"), device.linear_restore(stream, &spec, &wrong))?;
        }
        let noise: Vec<u8> = (0..saved.len()).map(|i| (i * 37) as u8).collect();
        layout_error("noise of the right length", device.linear_restore(stream, &spec, &noise))?;
    }
    Ok(())
}

/// The spec alone must not decide what is computed with: what was saved is compared with it first.
fn overflowing<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let small = LinearSpec::w8a8(4, 1);
    let packed = pack(device, stream, &small)?;
    ensure(device.linear_workspace(&packed, usize::MAX) >= device.linear_workspace(&packed, 1), || {
        "the workspace of the most rows wrapped around".into()
    })?;
    let saved = String::from_utf8_lossy(&device.linear_save(stream, &packed)?).into_owned();
    let huge = [
        LinearSpec::float(1 << 60, 1, WeightFormat::F32),
        LinearSpec::float(1 << 60, 1, WeightFormat::Bf16),
        LinearSpec::float(1, 1 << 60, WeightFormat::F16),
        LinearSpec::w8a8(1, 1 << 60),
        LinearSpec::w8a8(1, 1 << 60).with_weights(WeightFormat::Int8PerGroup { group_size: 16 }),
        LinearSpec::float(1 << 60, 1, WeightFormat::Q4K),
        LinearSpec::w8a8(8, 1 << 57).with_outliers(8, DType::F32),
        LinearSpec::w8a8(1, 1 << 59).gated(Activation::Silu),
    ];
    for spec in huge {
        spec.check()?;
        // A backend that writes the spec into its header gets one that names this one, and no weights.
        let header = saved.replace(&format!("{small:?}"), &format!("{spec:?}"));
        let end = header.find('\n').map_or(header.len(), |end| end + 1);
        for bytes in [&header.as_bytes()[..end], header.as_bytes(), &[]] {
            let restored = device.linear_restore(stream, &spec, bytes);
            ensure(restored.is_err(), || format!("{spec:?} was restored from {} bytes", bytes.len()))?;
        }
    }
    Ok(())
}

fn shared<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    for spec in supported(device) {
        let packed = pack(device, stream, &spec)?;
        let clone = packed.clone();
        let before = run(device, stream, &packed, 3)?;
        drop(packed);
        for rows in [0, 1, 16, 2] {
            run(device, stream, &clone, rows)?;
        }
        same_bits(&format!("{spec:?} by a clone"), &run(device, stream, &clone, 3)?, &before)?;
    }
    Ok(())
}
