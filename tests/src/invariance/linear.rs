//! Linear layers: rows alone against rows in a batch.

use super::rows::{ROWS, same_rows};
use crate::{
    case::{Fault, Shown, Verdict},
    ledger::denied,
    linear::{Case, Fill, Operand, Weights, group_wise, integer_specs, specs},
    poison::{Guarded, Layout},
    random::Rng,
};
use halite_kernels::{
    Backend, DType, Stream,
    activation::Activation,
    linear::{ActivationFormat, Epilogue, GroupOffset, LinearArgs, LinearSpec, WeightFormat},
};
use std::ops::Range;

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![("layers of every format", rows), ("low-rank adapters", super::lora::rows)]
}

/// The layers that are tried: every format, plain and gated, K across blocks, N across tiles.
fn layers<B: Backend>(device: &B) -> Vec<LinearSpec> {
    let shapes = [(33, 17), (576, 100), (1536, 40), (2049, 33)];
    let plain = shapes.into_iter().flat_map(|(k, n)| specs(k, n));
    let gated = plain.clone().filter(|spec| spec.output != DType::I32).map(|s| s.gated(Activation::Silu));
    let halves = plain.clone().filter(|spec| spec.output == DType::F32).map(|s| s.with_output(DType::Bf16));
    let integers = integer_specs(130, 35).into_iter().map(|spec| spec.with_outliers(5, DType::F16));
    let kept_groups = group_wise::specs(256, 20).into_iter().filter(|spec| spec.activations.is_quantized());
    let kept_groups = kept_groups.map(|spec| spec.with_outliers(5, DType::Bf16));
    let gated_groups = group_wise::specs(100, 20).into_iter().map(|spec| spec.gated(Activation::Silu));
    let row_groups = LinearSpec::w8a8(256, 17)
        .with_weights(WeightFormat::Q4K)
        .with_activation_format(ActivationFormat::Int8PerGroup { group_size: 128 });
    // Rows that lie as far apart as cache sets repeat.
    let apart = LinearSpec::w8a8(4096, 17);
    let nibbles = WeightFormat::Int4PerGroup { group_size: 64, offset: GroupOffset::Min };
    let apart = [
        apart.clone(),
        apart.clone().with_activation_format(ActivationFormat::AsymmetricPerToken(DType::U8)),
        apart.clone().with_weights(nibbles),
        apart.with_weights(nibbles).with_outliers(5, DType::F32),
    ];
    let half_rows = [DType::F16, DType::Bf16]
        .map(|dtype| LinearSpec::float(65, 35, WeightFormat::Bf16).with_activations(dtype));
    plain
        .chain(gated)
        .chain(halves)
        .chain(integers)
        .chain(half_rows)
        .chain(group_wise::specs(256, 17))
        .chain(kept_groups)
        .chain(gated_groups)
        .chain([row_groups])
        .chain(apart)
        .filter(|spec| !denied(device.linear_supports(spec)))
        .collect()
}

/// One layer over part of an operand's rows.
fn run_linear<B: Backend>(
    device: &B,
    stream: &mut B::Stream,
    packed: &B::Packed,
    operand: &Operand<B>,
    rows: Range<usize>,
) -> Result<Vec<u8>, Fault> {
    let spec = packed.as_ref().clone();
    let out = Guarded::<B>::output(stream, spec.output, &[rows.len(), spec.out_features], Layout::Dense)?;
    let views = operand.rows(rows.clone(), spec.activations)?;
    let activations = views.activations();
    stream.reserve(device.linear_workspace(packed, rows.len()))?;
    // A third of the layers, those with BF16 output.
    let soft_cap = (spec.output == DType::Bf16).then_some(5.0);
    let epilogue = Epilogue { soft_cap, ..Epilogue::default() };
    device.linear(
        stream,
        LinearArgs::<B> { x: activations, weights: packed, epilogue, out: &out.view }.check()?,
    )?;
    out.read_bytes(stream)
}

fn rows<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    for spec in layers(device) {
        let mut rng = Rng::new(3);
        let weights = Weights::new(&mut rng, &spec, Fill::Spread);
        let packed = weights.pack(device, stream, &spec)?;
        let case = Case { fill: Fill::Spread, ..Case::new(spec.clone(), ROWS) };
        let operand = Operand::<B>::new(stream, &mut rng, &case)?;
        let row_bytes = spec.out_features * spec.output.size();
        same_rows(&format!("{spec:?}"), row_bytes, |rows| {
            run_linear(device, stream, &packed, &operand, rows)
        })?;
    }
    Ok(())
}

/// Results of layers, for comparisons between devices.
pub(super) fn prints<B: Backend>(device: &B) -> Result<Vec<(String, Vec<u8>)>, Fault> {
    let stream = &mut device.stream()?;
    let mut prints = Vec::new();
    for spec in layers(device) {
        let mut rng = Rng::new(3);
        let weights = Weights::new(&mut rng, &spec, Fill::Spread);
        let packed = weights.pack(device, stream, &spec)?;
        let case = Case { fill: Fill::Spread, ..Case::new(spec.clone(), ROWS) };
        let operand = Operand::<B>::new(stream, &mut rng, &case)?;
        for rows in [0..1, 0..5, 0..ROWS] {
            let what = format!("{spec:?}, rows {rows:?}");
            prints.push((what, run_linear(device, stream, &packed, &operand, rows)?));
        }
    }
    prints.push(("low-rank adapters".to_owned(), super::lora::all_rows(device)?));
    Ok(prints)
}
