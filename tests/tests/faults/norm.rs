//! Norms of the exact device.

use crate::{
    device::{Exact, Queue, read, values, write},
    fault::Fault,
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    norm::{Norm, NormArgs, NormKind, NormOut, NormResidual, NormSpec},
    quantize::QuantizeSpec,
};
use halite_parity::{oracle, tolerance::Bound};

impl Exact {
    fn norm_row(&self, spec: &NormSpec, x: &[f64], weight: Option<&[f64]>, bias: Option<&[f64]>) -> Vec<f64> {
        let (columns, mut x, mut spec) = (x.len(), x.to_vec(), spec.clone());
        if self.has(Fault::NormTail) && x.len() > 1 {
            x.truncate(x.len() - 1);
        }
        if self.has(Fault::NormNoWeightOffset) {
            spec.weight_offset = 0.0;
        }
        let bounds: Vec<Bound> = x.iter().map(|&x| Bound::exact(x)).collect();
        let mut y = values(oracle::norm::row(&spec, &bounds, weight, bias));
        let n = x.len() as f64;
        let weight_of = |i: usize| weight.map_or(1.0, |weight| weight[i]);
        if self.has(Fault::NormEpsOutside) && spec.kind == NormKind::Rms {
            let root = (x.iter().map(|x| x * x).sum::<f64>() / n).sqrt() + f64::from(spec.eps);
            y = (0..x.len()).map(|i| x[i] / root * weight_of(i)).collect();
        }
        if self.has(Fault::NormOnePass) && spec.kind == NormKind::Layer {
            let mean = x.iter().map(|&x| x as f32).sum::<f32>() / n as f32;
            let square = x.iter().map(|&x| (x * x) as f32).sum::<f32>() / n as f32;
            let root = f64::from((square - mean * mean + spec.eps).sqrt());
            let bias = |i: usize| bias.map_or(0.0, |bias| bias[i]);
            y = (0..x.len()).map(|i| (x[i] - f64::from(mean)) / root * weight_of(i) + bias(i)).collect();
        }
        y.resize(columns, 0.0);
        y
    }
}

/// The part of a weight that belongs to a row.
fn own(vector: Option<&Vec<f64>>, row: usize, columns: usize) -> Option<&[f64]> {
    vector.map(|vector| &vector[row * columns % vector.len()..][..columns])
}

impl Norm for Exact {
    fn norm_supports(&self, _: &NormSpec) -> Support {
        Support::Native
    }

    fn norm_quantize_supports(&self, _: &NormSpec, _: &QuantizeSpec) -> Support {
        Support::Native
    }

    fn norm_quantize_workspace(&self, _: &NormSpec, _: &QuantizeSpec, _: usize, _: usize) -> u64 {
        0
    }

    fn norm(&self, _: &mut Queue, args: Checked<NormArgs<'_, Self>>) -> Result<()> {
        let (mut weight, bias) = (args.weight.map(read), args.bias.map(read));
        let columns = args.x.dims().last().copied().unwrap_or(1);
        if self.has(Fault::NormFirstHeadsWeight) {
            weight.iter_mut().for_each(|weight| weight.truncate(columns));
        }
        if self.has(Fault::NormMissingWeightsNotOne) && weight.is_none() {
            weight = Some(vec![0.9; columns]);
        }
        let mut x = read(args.x);
        if let Some(NormResidual::Before { residual, sum }) = &args.residual {
            if !self.has(Fault::NormNoResidual) {
                x.iter_mut().zip(read(residual)).for_each(|(x, residual)| *x += residual);
            }
            if !self.has(Fault::NormSumUnwritten) {
                write(sum, x.iter().copied());
                x = read(sum);
            }
        }
        let mut after = match &args.residual {
            Some(NormResidual::After { residual }) => Some(read(residual)),
            _ => None,
        };
        if self.has(Fault::NormResidualBefore) {
            x.iter_mut().zip(after.take().into_iter().flatten()).for_each(|(x, residual)| *x += residual);
        }
        let mut y: Vec<f64> = x
            .chunks_exact(columns)
            .enumerate()
            .flat_map(|(number, row)| {
                let (weight, bias) =
                    (own(weight.as_ref(), number, columns), own(bias.as_ref(), number, columns));
                self.norm_row(args.spec, row, weight, bias)
            })
            .collect();
        let quantised = !matches!(args.out, NormOut::Float(_));
        let forgotten =
            self.has(Fault::NormResidualForgotten) || quantised && self.has(Fault::NormResidualNotQuantised);
        if !forgotten {
            y.iter_mut().zip(after.into_iter().flatten()).for_each(|(y, residual)| *y += residual);
        }
        match &args.out {
            NormOut::Float(out) => write(out, y),
            NormOut::Quantized { spec, out } => self.fused_integers(spec, out, &y),
            _ => {}
        }
        Ok(())
    }
}
