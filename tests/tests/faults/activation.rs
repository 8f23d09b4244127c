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
};
use halite_parity::{oracle, poison::stored, tolerance::Bound};

impl ActivationOps for Exact {
    fn activation_supports(&self, spec: &ActivationSpec) -> Support {
        if self.has(Fault::ActivationUnsupportedRuns) && spec.dtype == DType::F16 {
            return Support::No("says one thing and does another".into());
        }
        Support::Native
    }

    fn activation(&self, _: &mut Queue, args: Checked<ActivationArgs<'_, Self>>) -> Result<()> {
        let columns = match &args.out {
            ActivationOut::Float(out) => out.dims()[1],
            ActivationOut::Int8PerToken { q, .. } | ActivationOut::Int8Smoothed { q, .. } => q.dims()[1],
            _ => return Ok(()),
        };
        let mut x = read(args.x);
        if self.has(Fault::ActivationNanAsZero) {
            x.iter_mut().filter(|x| x.is_nan()).for_each(|x| *x = 0.0);
        }
        let mut y = self.activated(args.spec.function, &mut x, columns);
        match &args.out {
            ActivationOut::Int8PerToken { q, scales } | ActivationOut::Int8Smoothed { q, scales, .. } => {
                if let ActivationOut::Int8Smoothed { factors, .. } = &args.out {
                    self.smooth(&mut y, &read(factors));
                }
                if self.has(Fault::ActivationQuantisesRounded) {
                    y.iter_mut().for_each(|y| *y = stored(args.spec.dtype, *y as f32));
                }
                let rows = q.dims()[0];
                let (quantised, mut row_scales) = self.quantised(rows, columns, &y);
                if self.has(Fault::ActivationScaleOfInput) {
                    row_scales = self.quantised(rows, x.len() / rows.max(1), &x).1;
                }
                write(q, quantised);
                write(scales, row_scales);
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
    /// Divides the columns of rows by their factors.
    pub(crate) fn smooth(&self, y: &mut [f64], factors: &[f64]) {
        for (y, factor) in y.iter_mut().zip(factors.iter().cycle()) {
            if self.has(Fault::SmoothingMultiplies) {
                *y *= factor;
            } else if !self.has(Fault::SmoothingForgotten) {
                *y /= factor;
            }
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
