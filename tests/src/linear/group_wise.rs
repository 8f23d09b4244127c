//! Integer weights with scales along K, and all integer weights that meet floats: weights and cases.

use super::{
    Case, FLOATS, FUNCTIONS, Fill,
    operands::{floats, int8},
};
use crate::{
    oracle::linear::group_wise::{Outliers, RowScales, Weights, bare_sums, float_products, integer_products},
    poison::LAYOUTS,
    random::Rng,
    tolerance::Bound,
};
use half::f16;
use halite_kernels::{
    DType,
    linear::{
        ActivationFormat, GroupOffset, GroupOffsets, HostWeights, LinearSpec, MAX_INT8_IN_FEATURES,
        OutputScale, WeightFormat,
    },
};

const OFFSETS: [GroupOffset; 3] = [GroupOffset::Symmetric, GroupOffset::ZeroPoint, GroupOffset::Min];

/// Weights as the host has them, and by the element.
#[derive(Clone, Debug)]
pub(crate) struct GroupWise {
    format: WeightFormat,
    q: Vec<i8>,
    scales: Vec<f32>,
    zeros: Vec<u8>,
    mins: Vec<f32>,
    blocks: Vec<u8>,
    exact: Weights,
}

impl GroupWise {
    /// Whether weights of this layer are judged here.
    pub(super) fn has(spec: &LinearSpec) -> bool {
        let channels =
            matches!(spec.weights, WeightFormat::Int8PerChannel | WeightFormat::Int8PerChannelAsymmetric);
        spec.weights.is_integer() && !(channels && spec.activations.is_quantized())
    }

    pub(super) fn new(rng: &mut Rng, spec: &LinearSpec, fill: Fill) -> Self {
        let (format, rows, k) = (spec.weights, spec.weight_rows(), spec.in_features);
        let group = format.group_size(k).unwrap_or(k).min(k);
        let exact = Weights { rows, k, group, q: Vec::new(), scales: Vec::new(), mins: Vec::new() };
        let mut new = GroupWise {
            format,
            q: Vec::new(),
            scales: Vec::new(),
            zeros: Vec::new(),
            mins: Vec::new(),
            blocks: Vec::new(),
            exact,
        };
        if format.block().is_some() {
            new.blocks = blocks(rng, format, rows * k, fill);
            new.exact = Weights::of_blocks(format, &new.blocks, rows, k);
            return new;
        }
        let groups = k.div_ceil(group);
        new.q = match (format.is_int4(), format.offset()) {
            (false, _) if fill == Fill::Grid => (0..rows * k).map(|_| rng.below(31) as i8 - 15).collect(),
            (false, _) => int8(rng, rows * k, fill, [-128, -128, 127], 4),
            (true, offset) => codes(rng, rows * k, fill)
                .map(|code| if offset == GroupOffset::Symmetric { code - 8 } else { code })
                .collect(),
        };
        let one_scale = format == WeightFormat::Int8PerTensor;
        let scale = scale(rng, fill, format);
        new.scales = (0..rows * groups)
            .map(|_| if one_scale { scale } else { self::scale(rng, fill, format) })
            .collect();
        match format.offset() {
            GroupOffset::ZeroPoint if !format.is_int4() => {
                let zeros = int8(rng, rows, fill, [127, 127, -128], 0);
                let small = fill == Fill::Grid;
                new.zeros = zeros.into_iter().map(|zero| if small { zero / 8 } else { zero } as u8).collect();
            }
            GroupOffset::ZeroPoint => {
                new.zeros = (0..rows * groups).map(|_| rng.below(16) as u8).collect();
            }
            GroupOffset::Min => {
                let min = |rng: &mut Rng| -(rng.below(9) as f32) * self::scale(rng, fill, format);
                new.mins = (0..rows * groups).map(|_| min(rng)).collect();
            }
            _ => {}
        }
        let zero = |place: usize| new.zeros.get(place).map_or(0, |&zero| i64::from(zero as i8));
        let q = new.q.iter().enumerate();
        new.exact.q = q.map(|(i, &q)| i64::from(q) - zero(i / k * groups + i % k / group)).collect();
        new.exact.scales = new.scales.iter().map(|&scale| f64::from(scale)).collect();
        new.exact.mins = new.mins.iter().map(|&min| f64::from(min)).collect();
        new
    }

    pub(super) fn host(&self) -> HostWeights<'_> {
        let (q, scales) = (&self.q, &self.scales);
        match self.format {
            WeightFormat::Int8PerTensor => {
                HostWeights::Int8PerTensor { q, scale: scales.first().copied().unwrap_or(1.0) }
            }
            WeightFormat::Int8PerChannelAsymmetric => {
                let zero_points = bytemuck::cast_slice(&self.zeros);
                HostWeights::Int8PerChannelAsymmetric { q, scales, zero_points }
            }
            WeightFormat::Int8PerGroup { group_size } => HostWeights::Int8PerGroup { q, scales, group_size },
            WeightFormat::Int4PerGroup { group_size, offset } => {
                let offsets = match offset {
                    GroupOffset::ZeroPoint => GroupOffsets::ZeroPoints(&self.zeros),
                    GroupOffset::Min => GroupOffsets::Mins(&self.mins),
                    _ => GroupOffsets::Symmetric,
                };
                HostWeights::Int4PerGroup { q, scales, offsets, group_size }
            }
            WeightFormat::Q4_0 => HostWeights::Q4_0(&self.blocks),
            WeightFormat::Q4_1 => HostWeights::Q4_1(&self.blocks),
            WeightFormat::Q4K => HostWeights::Q4K(&self.blocks),
            _ => HostWeights::Int8PerChannel { q, scales },
        }
    }

    /// `[weight_rows, in_features]`.
    pub(super) fn dequantised(&self) -> Vec<f64> {
        let Weights { k, group, q, scales, mins, .. } = &self.exact;
        let groups = k.div_ceil(*group);
        let of = |(i, &q): (usize, &i64)| {
            let place = i / k * groups + i % k / group;
            q as f64 * scales[place] + mins.get(place).copied().unwrap_or(0.0)
        };
        q.iter().enumerate().map(of).collect()
    }

    /// Times floats.
    pub(super) fn times_floats(&self, x: &[f64]) -> Vec<Bound> {
        float_products(x, &self.exact)
    }

    /// Times integers; bare where the output is I32.
    pub(super) fn times_integers(
        &self,
        x: &[i32],
        scales: RowScales<'_>,
        outliers: Outliers<'_>,
        output: DType,
    ) -> Vec<Bound> {
        match output {
            DType::I32 => bare_sums(x, &self.exact).iter().map(|&sum| Bound::exact(sum as f64)).collect(),
            _ => integer_products(x, scales, &self.exact, outliers),
        }
    }
}

/// Far apart, so that one in another's place shows.
fn scale(rng: &mut Rng, fill: Fill, format: WeightFormat) -> f32 {
    match fill {
        Fill::Grid => (1 << rng.below(3)) as f32,
        Fill::Tiny => 1e-23 * (1.0 + rng.unit()),
        _ => (if format.is_int4() { 2e-3 } else { 2e-4 }) * (1.0 + 30.0 * rng.unit()),
    }
}

/// 4-bit codes.
fn codes(rng: &mut Rng, count: usize, fill: Fill) -> impl Iterator<Item = i8> {
    let codes: Vec<i8> = (0..count)
        .map(|_| match fill {
            Fill::Least | Fill::Opposite => 0,
            Fill::Most => 15,
            Fill::SixTimesFour => 12,
            _ => rng.below(16) as i8,
        })
        .collect();
    codes.into_iter()
}

/// Stored blocks of `count` values.
fn blocks(rng: &mut Rng, format: WeightFormat, count: usize, fill: Fill) -> Vec<u8> {
    let Some(block) = format.block() else { return Vec::new() };
    let mut bytes = Vec::new();
    for _ in 0..count / block.values {
        // F16 has no 1e-23; its smallest is 6e-8.
        let scale = match fill {
            Fill::Tiny => 6e-8,
            Fill::Grid if format == WeightFormat::Q4K => 1.0,
            _ => scale(rng, fill, format),
        };
        let sign = if rng.coin() { 1.0 } else { -1.0 };
        bytes.extend(f16::from_f32(sign * scale).to_le_bytes());
        if format.offset() == GroupOffset::Min {
            let min = scale * rng.below(9) as f32;
            bytes.extend(
                f16::from_f32(if format == WeightFormat::Q4K { min.min(1.0) } else { -min }).to_le_bytes(),
            );
        }
        if format == WeightFormat::Q4K {
            bytes.extend((0..12).map(|_| rng.below(256) as u8));
        }
        let pairs: Vec<i8> = codes(rng, block.values, fill).collect();
        bytes.extend(pairs.chunks_exact(2).map(|pair| (pair[0] | pair[1] << 4) as u8));
    }
    bytes
}

/// The formats of integer weights that rows of `k` can have.
fn formats(k: usize) -> Vec<WeightFormat> {
    let mut formats = vec![WeightFormat::Int8PerTensor];
    formats.extend([32, 64, 128].map(|group_size| WeightFormat::Int8PerGroup { group_size }));
    for offset in OFFSETS {
        formats.extend([32, 128].map(|group_size| WeightFormat::Int4PerGroup { group_size, offset }));
    }
    formats.extend([WeightFormat::Q4_0, WeightFormat::Q4_1, WeightFormat::Q4K]);
    formats.retain(|format| format.block().is_none_or(|block| k.is_multiple_of(block.values)));
    formats
}

/// Every format of integer weights that rows of `k` can have.
pub(crate) fn integer_weights(k: usize) -> Vec<WeightFormat> {
    let channels = [WeightFormat::Int8PerChannel, WeightFormat::Int8PerChannelAsymmetric];
    channels.into_iter().chain(formats(k)).collect()
}

/// The layers of every format of integer weights, times INT8 and times floats.
pub(crate) fn specs(k: usize, n: usize) -> Vec<LinearSpec> {
    let int8 = formats(k).into_iter().map(move |format| LinearSpec::w8a8(k, n).with_weights(format));
    let channels = [WeightFormat::Int8PerChannel, WeightFormat::Int8PerChannelAsymmetric];
    let floats = formats(k).into_iter().chain(channels);
    int8.chain(floats.map(move |format| LinearSpec::float(k, n, format))).collect()
}

/// Other activations: groups of their own, one scale for all, halves; and integers as the output.
fn around(k: usize, n: usize) -> Vec<(LinearSpec, Option<OutputScale>)> {
    let zeros = LinearSpec::float(k, n, WeightFormat::Int8PerChannelAsymmetric);
    let mut cases = vec![
        (zeros.clone().with_activations(DType::F16), None),
        (zeros.clone().with_activations(DType::Bf16), None),
        (zeros.with_output(DType::U8), Some(OutputScale::new(0.3).with_zero_point(100))),
    ];
    for format in formats(k) {
        let int8 = LinearSpec::w8a8(k, n).with_weights(format);
        for activations in [
            ActivationFormat::Int8PerTensor,
            ActivationFormat::Int8PerGroup { group_size: 32 },
            ActivationFormat::Int8PerGroup { group_size: 128 },
            ActivationFormat::AsymmetricPerToken(DType::U8),
            ActivationFormat::AsymmetricPerTensor(DType::I8),
        ] {
            let spec = int8.clone().with_activation_format(activations);
            let bare = spec.clone().with_output(DType::I32);
            // Zero points only beside one scale for all, bare sums too.
            cases.extend(
                [spec, bare].into_iter().filter(|spec| spec.check().is_ok()).map(|spec| (spec, None)),
            );
        }
        let float = LinearSpec::float(k, n, format);
        cases.push((float.clone().with_activations(DType::F16), None));
        cases.push((float.clone().with_activations(DType::Bf16), None));
        for (columns, dtype) in [(1, DType::F32), (5, DType::Bf16), (k / 2, DType::F16), (k, DType::F32)] {
            let kept = int8.clone().with_outliers(columns, dtype);
            cases.push((kept.clone().with_activation_format(ActivationFormat::Int8PerTensor), None));
            cases.push((
                kept.clone().with_activation_format(ActivationFormat::Int8PerGroup { group_size: 128 }),
                None,
            ));
            cases.push((kept, None));
        }
        cases.push((float.with_output(DType::I8), Some(OutputScale::new(0.05))));
        cases.push((int8.with_output(DType::U8), Some(OutputScale::new(0.3).with_zero_point(100))));
    }
    cases
}

pub(super) fn edges() -> Vec<Case> {
    let rows = [0, 1, 2, 3, 4, 5, 11, 12, 13, 17];
    let ks = [1, 15, 17, 31, 32, 33, 64, 100, 127, 128, 129, 160, 256, 300, 512, 1368];
    let ns = [1, 2, 15, 16, 17, 31, 32, 33, 65];
    let mut shapes: Vec<(usize, usize, usize)> = Vec::new();
    shapes.extend(rows.map(|rows| (rows, 96, 33)));
    shapes.extend(ks.map(|k| (3, k, 17)));
    shapes.extend(ns.map(|n| (2, 64, n)));
    shapes.push((5, 5120, 2));
    let mut cases = Vec::new();
    for (number, (rows, k, n)) in shapes.into_iter().enumerate() {
        for spec in specs(k, n) {
            cases.push(Case { layout: LAYOUTS[number % 3], ..Case::new(spec, rows) });
        }
    }
    for (rows, k, n) in [(1, 64, 17), (5, 256, 33), (13, 160, 16)] {
        for (spec, output_scale) in around(k, n) {
            cases.push(Case { output_scale, layout: LAYOUTS[rows % 3], ..Case::new(spec, rows) });
        }
    }
    // The smallest and largest of what four and eight bits hold, and factors that all but vanish.
    for spec in specs(256, 17) {
        for fill in [Fill::Least, Fill::Opposite, Fill::Most, Fill::Tiny] {
            cases.push(Case { fill, ..Case::new(spec.clone(), 3) });
        }
    }
    let wide = LinearSpec::w8a8(32, 73_448);
    let format = WeightFormat::Int4PerGroup { group_size: 32, offset: GroupOffset::ZeroPoint };
    cases.push(Case::new(wide.with_weights(format), 1));
    cases
}

/// Factors are powers of two, sums small: every step is exact in F32, and so must the result be.
pub(super) fn exact() -> Vec<Case> {
    let mut cases = Vec::new();
    for (rows, k, n) in [(1, 32, 17), (2, 48, 33), (5, 256, 40), (13, 200, 5), (3, 512, 64)] {
        for spec in specs(k, n) {
            cases.push(Case { fill: Fill::Grid, layout: LAYOUTS[k % 3], ..Case::new(spec, rows) });
        }
    }
    // Sums of a channel and of one long group, as large as i32 holds.
    let bare = LinearSpec::w8a8(MAX_INT8_IN_FEATURES, 2).with_weights(WeightFormat::Int8PerTensor);
    let group_size = (MAX_INT8_IN_FEATURES / 16 - 1) * 16;
    let long = LinearSpec::w8a8(group_size + 100, 2).with_weights(WeightFormat::Int8PerGroup { group_size });
    for fill in [Fill::Least, Fill::Opposite, Fill::Most] {
        cases.push(Case { fill, ..Case::new(bare.clone().with_output(DType::I32), 2) });
        cases.push(Case { fill, ..Case::new(long.clone(), 2) });
    }
    cases
}

pub(super) fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let (k, n) = (1 + rng.below(400), 1 + rng.below(100));
    let k = if rng.coin() { k.next_multiple_of(256) } else { k };
    let mut specs = specs(k, n);
    let mut spec = specs.swap_remove(rng.below(specs.len()));
    let group = 16 * (1 + rng.below(12));
    match &mut spec.weights {
        WeightFormat::Int8PerGroup { group_size: own }
        | WeightFormat::Int4PerGroup { group_size: own, .. } => *own = group,
        _ => {}
    }
    if spec.activations.is_quantized() && rng.coin() {
        let group = spec.weights.group_size(k).unwrap_or(k).next_multiple_of(32);
        let own = spec.clone().with_activation_format(ActivationFormat::Int8PerGroup { group_size: group });
        spec = if own.check().is_ok() { own } else { spec };
    }
    if spec.activations.is_quantized() && rng.coin() {
        spec = spec.with_outliers(1 + rng.below(k.min(9)), rng.pick(&FLOATS));
    }
    let gated = rng.below(3) == 0;
    if gated {
        spec = spec.gated(rng.pick(&FUNCTIONS));
    }
    spec = spec.with_output(rng.pick(&FLOATS));
    Case {
        bias: rng.coin(),
        residual: rng.coin(),
        activation: (!gated && rng.coin()).then(|| rng.pick(&FUNCTIONS)),
        soft_cap: rng.coin().then(|| 0.1 + 20.0 * rng.unit()),
        layout: rng.pick(&LAYOUTS),
        seed,
        ..Case::new(spec, rng.below(30))
    }
}

/// Values of activations that fit [`Fill::Grid`] and [`Fill::Tiny`].
pub(super) fn activations(rng: &mut Rng, count: usize, fill: Fill) -> Vec<f32> {
    match fill {
        Fill::Grid => (0..count).map(|_| rng.below(31) as f32 - 15.0).collect(),
        Fill::Tiny => rng.spreads(count).into_iter().map(|x| x * 6e-38 / 32.0).collect(),
        _ => floats(rng, count, fill, 6.0),
    }
}
