//! Activations of the exact device.

use crate::{
    device::{Exact, Queue, read, values, write, write_beyond, write_some},
    fault::Fault,
};
use halite_hal::Result;
use halite_kernels::{
    Checked, DType, Support,
    activation::{
        Activation, ActivationArgs, ActivationOps, ActivationOut, ActivationSpec, Function, GateLayout, Glu,
    },
    quantize::{QuantizeOut, QuantizeSpec, Rotation, ScaleSource},
};
use halite_parity::{oracle, poison::stored, tolerance::Bound};

impl ActivationOps for Exact {
    fn activation_supports(&self, spec: &ActivationSpec) -> Support {
        if self.has(Fault::ActivationUnsupportedRuns) && spec.dtype == DType::F16 {
            return Support::No("says one thing and does another".into());
        }
        Support::Native
    }

    fn activation_quantize_supports(&self, _: &ActivationSpec, _: &QuantizeSpec) -> Support {
        Support::Native
    }

    fn activation_quantize_workspace(&self, _: &ActivationSpec, _: &QuantizeSpec, _: usize, _: usize) -> u64 {
        0
    }

    fn activation(&self, _: &mut Queue, args: Checked<ActivationArgs<'_, Self>>) -> Result<()> {
        let columns = match &args.out {
            ActivationOut::Float(out) => out.dims()[1],
            ActivationOut::Quantized { out, .. } => out.q.dims()[1],
            _ => return Ok(()),
        };
        let mut x = read(args.x);
        if self.has(Fault::ActivationNanAsZero) {
            x.iter_mut().filter(|x| x.is_nan()).for_each(|x| *x = 0.0);
        }
        let mut y = self.activated(args.spec.function, &mut x, columns);
        match &args.out {
            ActivationOut::Quantized { spec, out } => {
                if self.has(Fault::ActivationQuantisesRounded) {
                    y.iter_mut().for_each(|y| *y = stored(args.spec.dtype, *y as f32));
                }
                self.fused_integers(spec, out, &y);
                if self.has(Fault::ActivationScaleOfInput) && out.scales.dims() == &out.q.dims()[..1] {
                    let rows = out.q.dims()[0];
                    write(out.scales, self.quantised(rows, x.len() / rows.max(1), &x).1);
                }
            }
            ActivationOut::Float(out) => {
                let tail = self.has(Fault::ActivationTail);
                let some = |(i, y)| (!tail || (i + 1) % columns != 0).then_some(y);
                write_some(out, y.into_iter().enumerate().map(some));
                if self.has(Fault::ActivationBeyond) {
                    write_beyond(out);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl Exact {
    /// A result as integers, with the faults of operators that quantise in the same pass.
    pub(crate) fn fused_integers(&self, spec: &QuantizeSpec, out: &QuantizeOut<'_, Exact>, y: &[f64]) {
        // What is quantised is the F32 result.
        let mut y: Vec<f64> = y.iter().map(|&y| f64::from(y as f32)).collect();
        if let Some(factors) = out.smoothing.map(read) {
            for (y, factor) in y.iter_mut().zip(factors.iter().cycle()) {
                if self.has(Fault::FusedSmoothingMultiplies) {
                    *y *= factor * factor;
                } else if self.has(Fault::FusedSmoothingForgotten) {
                    *y *= factor;
                }
            }
        }
        let (mut spec, mut out) = (spec.clone(), *out);
        if self.has(Fault::FusedRotationForgotten) {
            spec.rotation = Rotation::None;
        }
        if self.has(Fault::FusedOutliersForgotten) {
            out.outliers = None;
        }
        self.integers(&spec, &out, &y);
        let zero_points = out.zero_points.filter(|_| spec.scales == ScaleSource::Dynamic);
        if let Some(zero_points) = zero_points.filter(|_| self.has(Fault::FusedZeroPointsUnsigned)) {
            let all = read(zero_points);
            write(zero_points, all.into_iter().map(|zero| if zero < 0.0 { zero + 128.0 } else { zero }));
        }
    }

    fn activated(&self, mut function: Function, x: &mut [f64], columns: usize) -> Vec<f64> {
        match &mut function {
            Function::Plain(activation) | Function::Gated { glu: Glu::Plain(activation), .. }
                if self.has(Fault::ActivationTanhForErf) && *activation == Activation::GeluErf =>
            {
                *activation = Activation::GeluTanh;
            }
            Function::Plain(Activation::Relu) if self.has(Fault::ActivationReluKeepsNegatives) => {
                return x.to_vec();
            }
            Function::Gated { layout, .. } => {
                if self.has(Fault::ActivationGateSwapped) && columns > 0 {
                    x.chunks_exact_mut(2 * columns).for_each(|row| row.rotate_left(columns));
                }
                if self.has(Fault::GluInterleavedAsSplit) {
                    *layout = GateLayout::Split;
                }
            }
            _ => {}
        }
        let x: Vec<Bound> = x.iter().map(|&x| Bound::exact(x)).collect();
        let faulty = [Fault::GluUpWithoutOne, Fault::GluGateClampedBelow, Fault::GluUpClampedAbove];
        match function {
            Function::Gated { glu: Glu::Clamped { alpha, limit }, layout: GateLayout::Split }
                if faulty.into_iter().any(|fault| self.has(fault)) =>
            {
                let (alpha, limit) = (f64::from(alpha), f64::from(limit));
                let rows = x.chunks_exact((2 * columns).max(1)).map(|row| row.split_at(columns));
                let pairs = rows.flat_map(|(gates, ups)| gates.iter().zip(ups));
                pairs.map(|(gate, up)| self.clamped(alpha, limit, gate.value, up.value)).collect()
            }
            _ => values(oracle::activation::rows(function, &x, columns)),
        }
    }

    fn clamped(&self, alpha: f64, limit: f64, gate: f64, up: f64) -> f64 {
        // By comparisons, so that no fault is found by a NaN that it loses.
        let above = |x: f64| if x > limit { limit } else { x };
        let below = |x: f64| if x < -limit { -limit } else { x };
        let gate = if self.has(Fault::GluGateClampedBelow) { below(above(gate)) } else { above(gate) };
        let up = if self.has(Fault::GluUpClampedAbove) { above(up) } else { below(above(up)) };
        let one = if self.has(Fault::GluUpWithoutOne) { 0.0 } else { 1.0 };
        gate / (1.0 + (-alpha * gate).exp()) * (up + one)
    }
}
