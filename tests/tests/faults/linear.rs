//! Linear layers by the oracle.

mod group_wise;
mod lora;

use crate::{
    device::{Exact, Queue, read, values, write_some},
    fault::Fault,
};
use half::{bf16, f16};
use halite_hal::{DType, Error, Result};
use halite_kernels::{
    Checked, Support,
    linear::{
        ActivationFormat, Activations, HostWeights, Linear, LinearArgs, LinearSpec, OutputScale, WeightFormat,
    },
};
use halite_parity::{
    oracle::linear::{
        After, epilogue, float_sums,
        group_wise::Weights,
        integers::{Integers, products},
    },
    tolerance::Bound,
};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Packed(Arc<Contents>);

#[derive(Debug)]
struct Contents {
    spec: LinearSpec,
    floats: Vec<f64>,
    integers: Integers,
    outlier_columns: Vec<u32>,
    group_wise: Option<Weights>,
}

impl AsRef<LinearSpec> for Packed {
    fn as_ref(&self) -> &LinearSpec {
        &self.0.spec
    }
}

impl Packed {
    /// The elements of float weights.
    pub(crate) fn floats(&self) -> &[f64] {
        &self.0.floats
    }
}

impl Contents {
    fn empty(spec: LinearSpec) -> Self {
        let integers = Integers::default();
        Contents { spec, floats: Vec::new(), integers, outlier_columns: Vec::new(), group_wise: None }
    }

    /// The lists one after the other, all as F64.
    fn bytes(&self) -> Vec<u8> {
        let group_wise = self.group_wise.as_ref().map(group_wise::save).unwrap_or_default();
        let Integers { q, scales, zero_points, outliers, .. } = &self.integers;
        let integers = |list: &[i32]| list.iter().copied().map(f64::from).collect::<Vec<_>>();
        let columns = self.outlier_columns.iter().copied().map(f64::from).collect();
        let lists = [
            self.floats.clone(),
            integers(q),
            scales.clone(),
            integers(zero_points),
            outliers.clone(),
            columns,
        ];
        let lists = lists.concat().into_iter().flat_map(f64::to_le_bytes);
        group_wise.into_iter().chain(lists).collect()
    }

    /// How many of each list.
    fn counts(spec: &LinearSpec) -> [usize; 6] {
        let (rows, all) = (spec.weight_rows(), spec.weight_rows() * spec.in_features);
        let columns = spec.outliers.map_or(0, |outliers| outliers.columns);
        let zeros = if spec.weights == WeightFormat::Int8PerChannelAsymmetric { rows } else { 0 };
        if group_wise::has(spec) {
            [0, 0, 0, 0, rows * columns, columns]
        } else if spec.weights.is_channel_wise() {
            [0, all, rows, zeros, rows * columns, columns]
        } else {
            [all, 0, 0, 0, 0, 0]
        }
    }

    fn header(spec: &LinearSpec) -> Vec<u8> {
        format!("{spec:?}\n").into_bytes()
    }
}

fn narrow(values: &[f64], to: impl Fn(f64) -> f64) -> Vec<f64> {
    values.iter().map(|&x| to(x)).collect()
}

impl Exact {
    /// `[rows, weight_rows]`, scales included.
    fn products(&self, weights: &Contents, x: &Activations<'_, Self>) -> Vec<Bound> {
        if let Some(group_wise) = &weights.group_wise {
            let outliers = (&weights.outlier_columns[..], &weights.integers.outliers[..]);
            return self.group_wise_products(&weights.spec, group_wise, outliers, x);
        }
        let (n, k) = (weights.spec.weight_rows(), weights.spec.in_features);
        match x {
            Activations::Float(x) => {
                let rows = x.dims()[0];
                let mut x = read(x);
                if self.has(Fault::LinearTailOfK) {
                    x.chunks_exact_mut(k).for_each(|row| row[k - 1] = 0.0);
                }
                if self.has(Fault::LinearBf16Activations) {
                    x = narrow(&x, |x| bf16::from_f64(x).to_f64());
                }
                let mut sums = float_sums(&x, &weights.floats, rows, n);
                for sum in &mut sums {
                    if self.has(Fault::LinearHalfSums) {
                        sum.value = f16::from_f64(sum.value).to_f64();
                    }
                    // The last bits depend on how many rows there are.
                    if self.has(Fault::LinearBatchVariant) && rows > 4 {
                        sum.value *= 1.0 + 1e-6;
                    }
                }
                sums
            }
            _ => self.integer_products(weights, x),
        }
    }

    fn narrowed(&self, y: f64, scale: OutputScale, output: DType) -> f64 {
        let (least, most) = if output == DType::U8 { (0.0, 255.0) } else { (-128.0, 127.0) };
        let (steps, zero_point) = (y / f64::from(scale.scale), f64::from(scale.zero_point));
        let steps = match () {
            _ if steps.is_nan() => 0.0,
            _ if self.has(Fault::LinearOutputTruncates) => steps.trunc(),
            _ => steps.round_ties_even(),
        };
        let q = steps + zero_point;
        if self.has(Fault::LinearOutputWraps) {
            (q - least).rem_euclid(256.0) + least
        } else {
            q.clamp(least, most)
        }
    }

    fn integer_products(&self, weights: &Contents, x: &Activations<'_, Self>) -> Vec<Bound> {
        let spec = &weights.spec;
        let (n, k, bare) = (spec.weight_rows(), spec.in_features, spec.output == DType::I32);
        let Some(x) = x.quantized() else { return Vec::new() };
        let integers = |tensor| read(tensor).into_iter().map(|x| x as i32).collect::<Vec<i32>>();
        let mut operand = Integers {
            q: integers(x.q),
            scales: read(x.scales),
            zero_points: x.zero_points.map(integers).unwrap_or_default(),
            group: if let ActivationFormat::Int8PerGroup { group_size } = spec.activations {
                group_size
            } else {
                0
            },
            outliers: x.outliers.map(read).unwrap_or_default(),
        };
        let mut w = weights.integers.clone();
        let mut columns = weights.outlier_columns.clone();
        if self.has(Fault::LinearTailOfK) {
            operand.q.chunks_exact_mut(k).for_each(|row| row[k - 1] = 0);
        }
        if self.has(Fault::LinearNeighbourScale) {
            w.scales.rotate_left(1);
        }
        if self.has(Fault::LinearRowScaleMissing) {
            operand.scales.fill(1.0);
        }
        if self.has(Fault::LinearFirstGroupScale) && operand.group > 0 {
            let groups = k.div_ceil(operand.group);
            operand.scales.chunks_exact_mut(groups).for_each(|row| row.fill(row[0]));
        }
        if self.has(Fault::LinearNoRowZeroPoint) {
            operand.zero_points.clear();
        }
        if self.has(Fault::LinearNoChannelZeroPoint) {
            w.zero_points.clear();
        }
        if self.has(Fault::LinearNoOutliers) {
            operand.outliers.fill(0.0);
        }
        let mut sums = products(&operand, &w, k, &columns, bare);
        if self.has(Fault::LinearOutliersTwice) && !columns.is_empty() {
            operand.outliers.clear();
            columns.clear();
            let whole = products(&operand, &w, k, &columns, bare);
            sums.iter_mut().zip(whole).for_each(|(sum, whole)| sum.value += whole.value);
        }
        for (place, sum) in sums.iter_mut().enumerate() {
            let (row, channel) = (place / n, place % n);
            let (x, w) = (&operand.q[row * k..][..k], &w.q[channel * k..][..k]);
            let scale = if bare { 1.0 } else { weights.integers.scales[channel] };
            let scale = if bare { scale } else { scale * operand.scales[row.min(operand.scales.len() - 1)] };
            let plain = operand.zero_points.is_empty() && weights.integers.zero_points.is_empty();
            if self.has(Fault::LinearSaturatingPairs) && plain {
                let pair = |(x, w): (&[i32], &[i32])| -> i32 {
                    let sum: i32 = x.iter().zip(w).map(|(x, w)| x * w).sum();
                    sum.clamp(-32_768, 32_767)
                };
                sum.value = f64::from(x.chunks(2).zip(w.chunks(2)).map(pair).sum::<i32>()) * scale;
            }
            if self.has(Fault::LinearF32Sums) && plain {
                let product = |(&x, &w): (&i32, &i32)| x as f32 * w as f32;
                sum.value = f64::from(x.iter().zip(w).map(product).sum::<f32>()) * scale;
            }
            if self.has(Fault::LinearZeroPointsInF32) && bare && !plain {
                sum.value = f64::from(sum.value as f32);
            }
        }
        sums
    }
}

impl Linear for Exact {
    type Packed = Packed;

    fn linear_supports(&self, _: &LinearSpec) -> Support {
        Support::Native
    }

    fn linear_pack(&self, _: &mut Queue, weights: Checked<HostWeights<'_>, &LinearSpec>) -> Result<Packed> {
        let spec = (*weights.context()).clone();
        let mut packed = Contents::empty(spec);
        if let HostWeights::WithOutliers { columns, values, .. } = *weights {
            packed.outlier_columns = columns.to_vec();
            packed.integers.outliers = values.iter().copied().map(f64::from).collect();
        }
        let wide = |values: &[i8]| values.iter().copied().map(i32::from).collect();
        match weights.all_columns() {
            integers if group_wise::has(&packed.spec) => {
                packed.group_wise = Some(self.read_group_wise(integers, &packed.spec));
            }
            HostWeights::F32(data) => packed.floats = data.iter().map(|&x| f64::from(x)).collect(),
            HostWeights::F16(data) => packed.floats = data.iter().map(|x| x.to_f64()).collect(),
            HostWeights::Bf16(data) => packed.floats = data.iter().map(|x| x.to_f64()).collect(),
            HostWeights::Int8PerChannel { q, scales } => {
                packed.integers.q = wide(q);
                packed.integers.scales = scales.iter().copied().map(f64::from).collect();
            }
            HostWeights::Int8PerChannelAsymmetric { q, scales, zero_points } => {
                packed.integers.q = wide(q);
                packed.integers.scales = scales.iter().copied().map(f64::from).collect();
                packed.integers.zero_points = wide(zero_points);
            }
            _ => {}
        }
        Ok(Packed(Arc::new(packed)))
    }

    fn linear_save(&self, _: &mut Queue, packed: &Packed) -> Result<Vec<u8>> {
        Ok([Contents::header(&packed.0.spec), packed.0.bytes()].concat())
    }

    fn linear_restore(&self, _: &mut Queue, spec: &LinearSpec, saved: &[u8]) -> Result<Packed> {
        let header = Contents::header(spec);
        let counts = Contents::counts(spec);
        let group_wise = if group_wise::has(spec) { group_wise::saved_len(spec) } else { 0 };
        let lists = counts.iter().fold(0usize, |size, &count| size.saturating_add(count)).saturating_mul(8);
        let size = group_wise.saturating_add(lists);
        let body = match saved.strip_prefix(&header[..]) {
            Some(body) => body,
            None if self.has(Fault::LinearTakesAnyPacking) && saved.len() >= size => {
                &saved[saved.len() - size..]
            }
            None => &[],
        };
        if body.len() != size {
            return Err(Error::Layout {
                operator: "linear",
                expected: format!("{size} bytes of {spec:?}"),
                got: format!("{} bytes", saved.len()),
            });
        }
        let (group_wise, lists) = body.split_at(group_wise);
        let mut elements =
            lists.chunks_exact(8).map(|bytes| f64::from_le_bytes(std::array::from_fn(|i| bytes[i])));
        let mut lists = counts.map(|count| elements.by_ref().take(count).collect::<Vec<f64>>());
        let integers = |list: &[f64]| list.iter().map(|&x| x as i32).collect();
        let mut packed = Contents::empty(spec.clone());
        packed.group_wise = group_wise::has(spec).then(|| group_wise::restore(spec, group_wise));
        packed.floats = std::mem::take(&mut lists[0]);
        packed.integers.q = integers(&lists[1]);
        packed.integers.scales = std::mem::take(&mut lists[2]);
        packed.integers.zero_points = integers(&lists[3]);
        packed.integers.outliers = std::mem::take(&mut lists[4]);
        packed.outlier_columns = lists[5].iter().map(|&x| x as u32).collect();
        Ok(Packed(Arc::new(packed)))
    }

    fn linear_workspace(&self, _: &Packed, _: usize) -> u64 {
        0
    }

    fn linear(&self, _: &mut Queue, args: Checked<LinearArgs<'_, Self>>) -> Result<()> {
        let (weights, n) = (&*args.weights.0, args.weights.0.spec.out_features);
        let mut products = self.products(weights, &args.x);
        let (bias, residual) = (args.epilogue.bias.map(read), args.epilogue.residual.map(read));
        if self.has(Fault::LinearGateSwapped) && weights.spec.gate.is_some() {
            products.chunks_exact_mut(2 * n).for_each(|row| row.rotate_left(n));
        }
        let mut after = After {
            out_features: n,
            bias: bias.as_deref().filter(|_| !self.has(Fault::LinearNoBias)),
            activation: args.epilogue.activation,
            gate: weights.spec.gate,
            soft_cap: args.epilogue.soft_cap.map(f64::from).filter(|_| !self.has(Fault::LinearNoSoftCap)),
            residual: residual.as_deref(),
            output: DType::F32,
            output_scale: None,
        };
        if self.has(Fault::LinearResidualFirst) && after.gate.is_none() && weights.spec.output != DType::I32 {
            let residual = after.residual.take();
            for (product, residual) in products.iter_mut().zip(residual.unwrap_or_default()) {
                product.value += residual;
            }
        }
        let late = after
            .soft_cap
            .filter(|_| self.has(Fault::LinearSoftCapLast) || self.has(Fault::LinearSoftCapClamps));
        if late.is_some() {
            after.soft_cap = None;
        }
        let tail = self.has(Fault::LinearTailOfN);
        let mut out = values(epilogue(&products, &after));
        if let Some(cap) = late {
            let clamps = self.has(Fault::LinearSoftCapClamps);
            let capped = |y: f64| if clamps { y.clamp(-cap, cap) } else { cap * (y / cap).tanh() };
            out.iter_mut().for_each(|y| *y = capped(*y));
        }
        if let Some(scale) = args.epilogue.output_scale {
            out.iter_mut().for_each(|y| *y = self.narrowed(*y, scale, weights.spec.output));
        }
        let out = out.into_iter().enumerate();
        write_some(args.out, out.map(|(i, y)| (!tail || (i + 1) % n != 0).then_some(y)));
        Ok(())
    }
}
