//! Linear layers by the oracle.

use crate::{
    device::{Exact, Queue, read, values, write_some},
    fault::Fault,
};
use half::{bf16, f16};
use halite_hal::{DType, Error, Result};
use halite_kernels::{
    Checked, Support,
    linear::{Activations, HostWeights, Linear, LinearArgs, LinearSpec},
};
use halite_parity::{
    oracle::linear::{After, epilogue, float_sums, integer_sums, scaled},
    tolerance::Bound,
};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Packed(Arc<Contents>);

#[derive(Debug)]
struct Contents {
    spec: LinearSpec,
    floats: Vec<f64>,
    int8: Vec<i8>,
    scales: Vec<f32>,
}

impl AsRef<LinearSpec> for Packed {
    fn as_ref(&self) -> &LinearSpec {
        &self.0.spec
    }
}

impl Contents {
    fn bytes(&self) -> Vec<u8> {
        let floats = self.floats.iter().flat_map(|x| x.to_le_bytes());
        let scales = self.scales.iter().flat_map(|x| x.to_le_bytes());
        floats.chain(scales).chain(self.int8.iter().map(|&x| x as u8)).collect()
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
        let (n, k) = (weights.spec.weight_rows(), weights.spec.in_features);
        match x {
            Activations::Int8PerToken { q, scales } => {
                let mut x: Vec<i8> = read(q).into_iter().map(|x| x as i8).collect();
                if self.has(Fault::LinearTailOfK) {
                    x.chunks_exact_mut(k).for_each(|row| row[k - 1] = 0);
                }
                let mut weight_scales = weights.scales.clone();
                if self.has(Fault::LinearNeighbourScale) {
                    weight_scales.rotate_left(1);
                }
                let row_scales = read(scales);
                let mut sums = integer_sums(&x, &weights.int8, row_scales.len(), n);
                for (place, sum) in sums.iter_mut().enumerate() {
                    let (x, w) = (&x[place / n * k..][..k], &weights.int8[place % n * k..][..k]);
                    if self.has(Fault::LinearSaturatingPairs) {
                        let pair = |(x, w): (&[i8], &[i8])| -> i64 {
                            let sum: i32 = x.iter().zip(w).map(|(&x, &w)| i32::from(x) * i32::from(w)).sum();
                            i64::from(sum.clamp(-32_768, 32_767))
                        };
                        *sum = x.chunks(2).zip(w.chunks(2)).map(pair).sum();
                    }
                    if self.has(Fault::LinearF32Sums) {
                        let product = |(&x, &w): (&i8, &i8)| f32::from(x) * f32::from(w);
                        *sum = x.iter().zip(w).map(product).sum::<f32>() as i64;
                    }
                }
                let bare = weights.spec.output == DType::I32;
                let scaled = sums.into_iter().enumerate().map(|(place, sum)| {
                    let row_scale =
                        if self.has(Fault::LinearRowScaleMissing) { 1.0 } else { row_scales[place / n] };
                    if bare {
                        Bound::exact(sum as f64)
                    } else {
                        scaled(sum, f64::from(weight_scales[place % n]), row_scale)
                    }
                });
                scaled.collect()
            }
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
            _ => Vec::new(),
        }
    }
}

impl Linear for Exact {
    type Packed = Packed;

    fn linear_supports(&self, _: &LinearSpec) -> Support {
        Support::Native
    }

    fn linear_pack(&self, _: &mut Queue, weights: Checked<HostWeights<'_>, &LinearSpec>) -> Result<Packed> {
        let spec = (*weights.context()).clone();
        let mut packed = Contents { spec, floats: Vec::new(), int8: Vec::new(), scales: Vec::new() };
        match *weights {
            HostWeights::F32(data) => packed.floats = data.iter().map(|&x| f64::from(x)).collect(),
            HostWeights::F16(data) => packed.floats = data.iter().map(|x| x.to_f64()).collect(),
            HostWeights::Bf16(data) => packed.floats = data.iter().map(|x| x.to_f64()).collect(),
            HostWeights::Int8PerChannel { q, scales } => {
                (packed.int8, packed.scales) = (q.to_vec(), scales.to_vec());
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
        let (rows, count) = (spec.weight_rows(), spec.weight_rows() * spec.in_features);
        let int8 = spec.weights == halite_kernels::linear::WeightFormat::Int8PerChannel;
        let size = if int8 { 4 * rows + count } else { 8 * count };
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
        let mut packed =
            Contents { spec: spec.clone(), floats: Vec::new(), int8: Vec::new(), scales: Vec::new() };
        if int8 {
            let scale = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            packed.scales = body[..4 * rows].chunks_exact(4).map(scale).collect();
            packed.int8 = body[4 * rows..].iter().map(|&byte| byte as i8).collect();
        } else {
            let element = |bytes: &[u8]| f64::from_le_bytes(std::array::from_fn(|i| bytes[i]));
            packed.floats = body.chunks_exact(8).map(element).collect();
        }
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
            output: weights.spec.output,
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
        let out = out.into_iter().enumerate();
        write_some(args.out, out.map(|(i, y)| (!tail || (i + 1) % n != 0).then_some(y)));
        Ok(())
    }
}
