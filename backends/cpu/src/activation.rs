//! Functions of one element and gated linear units, as an operator of their own.

use crate::{
    device::Cpu,
    quantize::quantize_row,
    row::{Row, Smoothed},
    simd::{Isa, Kernel, LANES, StoredFloat, activation},
    stream::CpuStream,
    view::{Reader, Rows, read, with_float, write},
};
use halite_hal::{Result, Tensor};
use halite_kernels::{
    Checked, Support,
    activation::{
        Activation, ActivationArgs, ActivationOps, ActivationOut, ActivationSpec, Function, GateLayout, Glu,
    },
};

impl ActivationOps for Cpu {
    fn activation_supports(&self, spec: &ActivationSpec) -> Support {
        crate::float_only(spec.dtype)
    }

    fn activation(&self, _stream: &mut CpuStream, args: Checked<ActivationArgs<'_, Self>>) -> Result<()> {
        self.activation_supports(args.spec).require("activation", self, args.spec)?;
        with_float!(args.spec.dtype, Float => {
            let x = read::<Float>(args.x)?;
            let input = Input { function: args.spec.function, x: x.data(), rows: x.rows };
            match &args.out {
                ActivationOut::Float(out) => {
                    let mut out = write::<Float>(out)?;
                    let layout = out.rows;
                    let per_task = self.team().units_per_task(layout.outer, layout.columns);
                    let tasks = out.data().chunks_mut(layout.outer_stride * per_task).enumerate();
                    self.team().each(tasks, |(task, out)| {
                        let (first, count) = (task * per_task, per_task.min(layout.outer - task * per_task));
                        self.tier().run(ActivateRows { input, first, count, out, layout });
                    });
                    Ok(())
                }
                ActivationOut::Int8PerToken { q, scales } => self.activation_quantized(input, q, scales, None),
                ActivationOut::Int8Smoothed { q, scales, factors } => {
                    self.activation_quantized(input, q, scales, Some(factors))
                }
                other => Err(crate::unsupported("activation", "this form of output", other)),
            }
        })
    }
}

impl Cpu {
    fn activation_quantized<T: StoredFloat>(
        &self,
        input: Input<'_, T>,
        q: &Tensor<Cpu>,
        scales: &Tensor<Cpu>,
        factors: Option<&Tensor<Cpu>>,
    ) -> Result<()> {
        let (mut q, mut scales) = (write::<i8>(q)?, write::<f32>(scales)?);
        let factors = factors.map(read::<f32>).transpose()?;
        let factors = factors.as_ref().map(Reader::data);
        let layout = q.rows;
        if layout.columns == 0 {
            // Rows of nothing are rows of zeros, and have no chunks below.
            scales.data().fill(f32::MIN_POSITIVE);
            return Ok(());
        }
        let per_task = self.team().units_per_task(layout.outer, 2 * layout.columns);
        let tasks =
            q.data().chunks_mut(layout.outer_stride * per_task).zip(scales.data().chunks_mut(per_task));
        self.team().each(tasks.enumerate(), |(task, (q, scales))| {
            self.tier().run(QuantizeRows { input, factors, first: task * per_task, q, layout, scales });
        });
        Ok(())
    }
}

/// What is computed, and of what.
#[derive(Clone, Copy)]
struct Input<'a, T> {
    function: Function,
    x: &'a [T],
    rows: Rows,
}

impl<'a, T> Input<'a, T> {
    fn row(&self, row: usize, columns: usize) -> Activated<'a, T> {
        Activated { function: self.function, x: self.rows.row(self.x, row), columns }
    }
}

/// Rows `first..first + count`, as floats.
struct ActivateRows<'a, T> {
    input: Input<'a, T>,
    first: usize,
    count: usize,
    out: &'a mut [T],
    layout: Rows,
}

impl<T: StoredFloat> Kernel for ActivateRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let columns = self.layout.columns;
        for row in 0..self.count {
            let y = self.input.row(self.first + row, columns);
            let out = &mut self.out[row * self.layout.outer_stride..][..columns];
            for (vector, out) in out.chunks_mut(LANES).enumerate() {
                T::store_partial(isa, y.at(isa, vector * LANES), out);
            }
        }
    }
}

/// Rows `first..first + scales.len()`, quantised. A row is computed twice, which spares scratch memory.
struct QuantizeRows<'a, T> {
    input: Input<'a, T>,
    factors: Option<&'a [f32]>,
    first: usize,
    q: &'a mut [i8],
    layout: Rows,
    scales: &'a mut [f32],
}

impl<T: StoredFloat> Kernel for QuantizeRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let columns = self.layout.columns;
        for (row, scale) in self.scales.iter_mut().enumerate() {
            let q = &mut self.q[row * self.layout.outer_stride..][..columns];
            let row = self.input.row(self.first + row, columns);
            *scale = quantize_row(isa, &Smoothed { row, factors: self.factors }, q);
        }
    }
}

/// A row after the function.
struct Activated<'a, T> {
    function: Function,
    x: &'a [T],
    columns: usize,
}

impl<T: StoredFloat> Row for Activated<'_, T> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.columns
    }

    #[inline(always)]
    fn at<I: Isa>(&self, isa: I, start: usize) -> I::F32 {
        let end = self.columns.min(start + LANES);
        // Every function is 0 where its arguments are, so lanes beyond the row stay zeros.
        match self.function {
            Function::Gated { glu, layout: GateLayout::Interleaved } => {
                let (mut gate, mut up) = ([T::ZERO; LANES], [T::ZERO; LANES]);
                let pairs = self.x[2 * start..2 * end].as_chunks::<2>().0;
                for ((gate, up), pair) in gate.iter_mut().zip(&mut up).zip(pairs) {
                    (*gate, *up) = (pair[0], pair[1]);
                }
                gated(isa, glu, T::load(isa, &gate), T::load(isa, &up))
            }
            Function::Gated { glu, .. } => {
                let (gate, up) = self.x.split_at(self.columns);
                gated(
                    isa,
                    glu,
                    T::load_partial(isa, &gate[start..end]),
                    T::load_partial(isa, &up[start..end]),
                )
            }
            Function::Plain(activation) => {
                activate(isa, activation, T::load_partial(isa, &self.x[start..end]))
            }
            _ => isa.splat(f32::NAN),
        }
    }
}

/// One vector.
#[inline(always)]
pub(crate) fn activate<I: Isa>(isa: I, activation: Activation, x: I::F32) -> I::F32 {
    match activation {
        Activation::GeluErf => activation::gelu_erf(isa, x),
        Activation::GeluTanh => activation::gelu_tanh(isa, x),
        Activation::QuickGelu => activation::sigmoid_gate(isa, x, 1.702),
        Activation::Relu => activation::relu(isa, x),
        Activation::ReluSquared => {
            let x = activation::relu(isa, x);
            isa.mul(x, x)
        }
        _ => activation::silu(isa, x),
    }
}

/// One vector of gates and what they gate.
#[inline(always)]
pub(crate) fn gated<I: Isa>(isa: I, glu: Glu, gate: I::F32, up: I::F32) -> I::F32 {
    match glu {
        Glu::Plain(activation) => isa.mul(activate(isa, activation, gate), up),
        Glu::Clamped { alpha, limit } => {
            // The limits come first, so that NaN stays.
            let (above, below) = (isa.splat(limit), isa.splat(-limit));
            let gate = activation::sigmoid_gate(isa, isa.min(above, gate), alpha);
            let up = isa.max(below, isa.min(above, up));
            isa.mul(gate, isa.add(up, isa.splat(1.0)))
        }
        _ => isa.splat(f32::NAN),
    }
}
