//! Inputs of INT8 products that broke other projects, each a case by its name.

use super::{Case, body, integer_specs};
use crate::{
    case::{Fault, Shown, Verdict, ensure},
    judge::{judge, refused, same_bits, unsupported},
    ledger::denied,
    poison::{Guarded, LAYOUTS, Layout},
    tolerance::Bound,
};
use half::f16;
use halite_kernels::{
    Backend, DType, Stream, Tensor,
    linear::{
        ActivationFormat, Activations, Epilogue, HostWeights, LinearArgs, LinearSpec, MAX_INT8_IN_FEATURES,
        OutputScale, Quantized, WeightFormat,
    },
};

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("u8 255 by s8 127 and by s8 -128, every K from 1 to 130", unsigned_by_signed),
        ("-128 by -128 throughout", least_by_least),
        ("K of 65,793 and 33,025 where one more would leave i32, and 133,144", at_the_end_of_i32),
        ("127 by 127 over K of 2,049, inexact in F32", beyond_f32),
        ("6 by 4 over K of 3,072, beyond F16", beyond_f16),
        ("scales of 2^-126 and 1e-23", tiny_scales),
        ("N and K of 1, 15, 17, 1,368; 5,120 with groups of 32; 73,448", odd_sizes),
        ("operands at odd addresses", odd_addresses),
        ("an output full of NaN", nan_in_the_output),
        ("narrowing to I8 and U8 beyond the range, and ties", narrowing),
        ("zero points of the other end, and a channel of its zero point", zero_points),
    ]
}

/// One product of tensors without gaps.
struct Direct<'a> {
    spec: LinearSpec,
    weights: HostWeights<'a>,
    q: &'a [i32],
    scales: &'a [f32],
    zero_points: &'a [i32],
    output_scale: Option<OutputScale>,
}

impl Direct<'_> {
    fn run<B: Backend>(&self, device: &B) -> Result<Vec<f64>, Fault> {
        let (spec, stream) = (&self.spec, &mut device.stream()?);
        let rows = self.q.len() / spec.in_features;
        let packed = device.linear_pack(stream, self.weights.check(spec)?)?;
        let dims = [rows, spec.in_features];
        let q = Guarded::<B>::integers(stream, spec.activations.dtype(), self.q, &dims, Layout::Dense)?;
        let dims = spec.activations.scale_dims(rows, spec.in_features);
        let scales = Tensor::<B>::from_slice(stream, self.scales, &dims)?;
        let mut x = Quantized::new(&q.view, &scales);
        let zero_points;
        if spec.activations.has_zero_points() {
            zero_points = Tensor::<B>::from_slice(stream, self.zero_points, &dims)?;
            x = x.with_zero_points(&zero_points);
        }
        let out = Guarded::<B>::output(stream, spec.output, &[rows, spec.out_features], Layout::Dense)?;
        stream.reserve(device.linear_workspace(&packed, rows))?;
        let epilogue = Epilogue { output_scale: self.output_scale, ..Epilogue::default() };
        let x = Activations::Quantized(x);
        device.linear(stream, LinearArgs::<B> { x, weights: &packed, epilogue, out: &out.view }.check()?)?;
        out.read(stream)
    }

    fn gives<B: Backend>(&self, device: &B, expected: &[f64]) -> Verdict {
        if denied(device.linear_supports(&self.spec)) {
            let stream = &mut device.stream()?;
            return unsupported("linear", device.linear_pack(stream, self.weights.check(&self.spec)?));
        }
        let got = self.run(device)?;
        ensure(got == expected, || format!("{:?}: expected {expected:?}, got {got:?}", self.spec))
    }
}

fn unsigned(k: usize, n: usize) -> LinearSpec {
    let format = ActivationFormat::AsymmetricPerTensor(DType::U8);
    LinearSpec::w8a8(k, n).with_activation_format(format).with_output(DType::I32)
}

fn unsigned_by_signed<B: Backend>(device: &B) -> Verdict {
    for k in 1..=130 {
        let weights = [vec![127i8; k], vec![-128; k]].concat();
        Direct {
            spec: unsigned(k, 2),
            weights: HostWeights::Int8PerChannel { q: &weights, scales: &[1.0; 2] },
            q: &vec![255; k],
            scales: &[1.0],
            zero_points: &[0],
            output_scale: None,
        }
        .gives(device, &[(255 * 127 * k) as f64, -((255 * 128 * k) as f64)])?;
    }
    Ok(())
}

/// The sum of equal products.
fn constant<B: Backend>(device: &B, k: usize, [x, w]: [i8; 2]) -> Verdict {
    Direct {
        spec: LinearSpec::w8a8(k, 1).with_output(DType::I32),
        weights: HostWeights::Int8PerChannel { q: &vec![w; k], scales: &[1.0] },
        q: &vec![i32::from(x); k],
        scales: &[1.0],
        zero_points: &[],
        output_scale: None,
    }
    .gives(device, &[k as f64 * f64::from(x) * f64::from(w)])
}

fn least_by_least<B: Backend>(device: &B) -> Verdict {
    (1..=130).chain([4096, 65_793, MAX_INT8_IN_FEATURES]).try_for_each(|k| constant(device, k, [-128, -128]))
}

fn at_the_end_of_i32<B: Backend>(device: &B) -> Verdict {
    let k = 65_793;
    let one = Direct {
        spec: unsigned(k, 1),
        weights: HostWeights::Int8PerChannel { q: &vec![-128; k], scales: &[1.0] },
        q: &vec![255; k],
        scales: &[1.0],
        zero_points: &[0],
        output_scale: None,
    };
    one.gives(device, &[-255.0 * 128.0 * k as f64])?;
    let asymmetric = |k| unsigned(k, 1).with_weights(WeightFormat::Int8PerChannelAsymmetric);
    let k = 33_025;
    let weights =
        HostWeights::Int8PerChannelAsymmetric { q: &vec![-128; k], scales: &[1.0], zero_points: &[127] };
    let both = Direct { spec: asymmetric(k), weights, q: &vec![0; k], zero_points: &[255], ..one };
    both.gives(device, &[255.0 * 255.0 * k as f64])?;
    for spec in [unsigned(65_794, 1), asymmetric(33_026), LinearSpec::w8a8(133_144, 1)] {
        refused("linear", "in_features", spec.check())?;
    }
    Ok(())
}

fn beyond_f32<B: Backend>(device: &B) -> Verdict {
    constant(device, 2049, [127, 127])
}

fn beyond_f16<B: Backend>(device: &B) -> Verdict {
    constant(device, 3072, [6, 4])?;
    let stream = &mut device.stream()?;
    let spec = LinearSpec::float(3072, 1, WeightFormat::F16).with_activations(DType::F16);
    let weights = vec![f16::from_f32(4.0); 3072];
    let packed = device.linear_pack(stream, HostWeights::F16(&weights).check(&spec)?);
    if denied(device.linear_supports(&spec)) {
        return unsupported("linear", packed);
    }
    let packed = packed?;
    let x = Tensor::<B>::from_slice(stream, &vec![f16::from_f32(6.0); 3072], &[1, 3072])?;
    let out = Tensor::<B>::new(device, DType::F32, &[1, 1])?;
    stream.reserve(device.linear_workspace(&packed, 1))?;
    let (x, epilogue) = (Activations::Float(&x), Epilogue::default());
    device.linear(stream, LinearArgs::<B> { x, weights: &packed, epilogue, out: &out }.check()?)?;
    let got = out.to_vec::<f32>(stream)?;
    ensure(got == [73_728.0], || format!("6 · 4 · 3,072 gave {got:?}"))
}

fn tiny_scales<B: Backend>(device: &B) -> Verdict {
    let weights = HostWeights::Int8PerChannel { q: &[100; 64], scales: &[1.0] };
    let tiny = Direct {
        spec: LinearSpec::w8a8(64, 1),
        weights,
        q: &[100; 64],
        scales: &[f32::MIN_POSITIVE],
        zero_points: &[],
        output_scale: None,
    };
    tiny.gives(device, &[640_000.0 * f64::from(f32::MIN_POSITIVE)])?;
    let spec =
        LinearSpec::w8a8(64, 1).with_activation_format(ActivationFormat::Int8PerGroup { group_size: 32 });
    let scales = [1e-23, f32::MIN_POSITIVE];
    if denied(device.linear_supports(&spec)) {
        return unsupported("linear", device.linear_pack(&mut device.stream()?, weights.check(&spec)?));
    }
    let got = Direct { spec, scales: &scales, ..tiny }.run(device)?;
    let exact = 320_000.0 * (f64::from(scales[0]) + f64::from(scales[1]));
    judge("out", &[1], &got, &[Bound::exact(exact).times(Bound::exact(1.0)).plus(Bound::exact(0.0))])
}

fn odd_sizes<B: Backend>(device: &B) -> Verdict {
    for (k, n) in [(1, 1), (1, 15), (15, 17), (17, 1), (15, 1368), (1368, 15), (1368, 17)] {
        let usual = [LinearSpec::w8a8(k, n)];
        for spec in usual.into_iter().chain(integer_specs(k, n)) {
            body(device, &Case::new(spec, 2))?;
        }
    }
    let group = ActivationFormat::Int8PerGroup { group_size: 32 };
    body(device, &Case::new(LinearSpec::w8a8(5120, 3).with_activation_format(group), 2))?;
    body(device, &Case::new(LinearSpec::w8a8(3, 73_448).with_activation_format(group), 1))
}

fn odd_addresses<B: Backend>(device: &B) -> Verdict {
    for spec in integer_specs(70, 19) {
        for before in 0..4 {
            let layout = Layout::Rows { before, after: 5 - before };
            body(device, &Case { layout, ..Case::new(spec.clone().with_outliers(3, DType::Bf16), 3) })?;
        }
    }
    Ok(())
}

/// What was in the output does not matter, poison or zeros.
fn nan_in_the_output<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let spec = LinearSpec::w8a8(33, 35);
    let weights = HostWeights::Int8PerChannel { q: &[3; 33 * 35], scales: &[0.5; 35] };
    let packed = device.linear_pack(stream, weights.check(&spec)?)?;
    let q = Tensor::<B>::from_slice(stream, &[7i8; 5 * 33], &[5, 33])?;
    let scales = Tensor::<B>::from_slice(stream, &[0.25f32; 5], &[5])?;
    stream.reserve(device.linear_workspace(&packed, 5))?;
    for layout in LAYOUTS {
        let out = Guarded::<B>::output(stream, DType::F32, &[5, 35], layout)?;
        let zeros = Tensor::<B>::from_slice(stream, &[0f32; 5 * 35], &[5, 35])?;
        for out in [&out.view, &zeros] {
            let x = Activations::int8_per_token(&q, &scales);
            let args = LinearArgs::<B> { x, weights: &packed, epilogue: Epilogue::default(), out };
            device.linear(stream, args.check()?)?;
        }
        let expected = [33.0f32 * 21.0 * 0.125; 5 * 35].map(f32::to_le_bytes).concat();
        same_bits("over NaN", &out.read_bytes(stream)?, &expected)?;
        let zeros: Vec<u8> = zeros.to_vec::<f32>(stream)?.into_iter().flat_map(f32::to_le_bytes).collect();
        same_bits("over zeros", &zeros, &expected)?;
    }
    Ok(())
}

/// `x · 1` for each `x`, in steps of 2.
fn narrowing<B: Backend>(device: &B) -> Verdict {
    let q: Vec<i32> = (-128..=127).collect();
    for (output, zero_point, least, most) in
        [(DType::I8, 0, -128.0, 127.0), (DType::I8, -100, -128.0, 127.0), (DType::U8, 3, 0.0, 255.0)]
    {
        for (weight, step) in [(1, 2.0f32), (127, 2.0), (-127, 0.5)] {
            let half = |x: i32| f64::from(x * i32::from(weight)) / f64::from(step);
            let exact = q.iter().map(|&x| half(x).round_ties_even() + f64::from(zero_point));
            let expected: Vec<f64> = exact.map(|steps| steps.clamp(least, most)).collect();
            Direct {
                spec: LinearSpec::w8a8(1, 1).with_output(output),
                weights: HostWeights::Int8PerChannel { q: &[weight], scales: &[1.0] },
                q: &q,
                scales: &[1.0; 256],
                zero_points: &[],
                output_scale: Some(OutputScale::new(step).with_zero_point(zero_point)),
            }
            .gives(device, &expected)?;
        }
    }
    // Infinities saturate and a NaN is the zero point.
    let special = Direct {
        spec: LinearSpec::w8a8(1, 1).with_output(DType::I8),
        weights: HostWeights::Int8PerChannel { q: &[1], scales: &[1.0] },
        q: &[1, -1, 1],
        scales: &[f32::INFINITY, f32::INFINITY, f32::NAN],
        zero_points: &[],
        output_scale: Some(OutputScale::new(1.0).with_zero_point(5)),
    };
    special.gives(device, &[127.0, -128.0, 5.0])
}

fn zero_points<B: Backend>(device: &B) -> Verdict {
    for k in [1, 4, 31, 130] {
        let weights = [vec![-128i8; k], vec![127; k], vec![-5; k]].concat();
        Direct {
            spec: LinearSpec::w8a8(k, 3)
                .with_weights(WeightFormat::Int8PerChannelAsymmetric)
                .with_activation_format(ActivationFormat::AsymmetricPerToken(DType::I8))
                .with_output(DType::I32),
            weights: HostWeights::Int8PerChannelAsymmetric {
                q: &weights,
                scales: &[1.0; 3],
                zero_points: &[127, -128, -5],
            },
            q: &[vec![-128; k], vec![127; k], vec![9; k]].concat(),
            scales: &[1.0; 3],
            zero_points: &[127, -128, 9],
            output_scale: None,
        }
        .gives(
            device,
            &[65_025, -65_025, 0, -65_025, 65_025, 0, 0, 0, 0].map(|sum| (sum * k as i64) as f64),
        )?;
    }
    Ok(())
}
