//! Functions of one element and gated linear units, as an operator of their own.

use crate::{
    cost,
    device::Cpu,
    quantize::{Call, fused_supports},
    row::{FloatRows, Row, Target},
    simd::{Isa, Kernel, LANES, StoredFloat, activation},
    stream::CpuStream,
    view::{Rows, read, with_float, write},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    activation::{
        Activation, ActivationArgs, ActivationOps, ActivationOut, ActivationSpec, Function, GateLayout, Glu,
    },
    quantize::QuantizeSpec,
};

impl ActivationOps for Cpu {
    fn activation_supports(&self, spec: &ActivationSpec) -> Support {
        let activation = match spec.function {
            Function::Plain(activation) => Some(activation),
            Function::Gated { glu, layout: GateLayout::Split | GateLayout::Interleaved } => match glu {
                Glu::Plain(activation) => Some(activation),
                Glu::Clamped { .. } => None,
                other => return Support::No(format!("{other:?} is not implemented")),
            },
            other => return Support::No(format!("{other:?} is not implemented")),
        };
        let support = activation.map_or(Support::Native, element_supports);
        if support == Support::Native { crate::float_only(spec.dtype) } else { support }
    }

    fn activation_quantize_supports(&self, spec: &ActivationSpec, quantize: &QuantizeSpec) -> Support {
        fused_supports(self.activation_supports(spec), quantize)
    }

    fn activation_quantize_workspace(
        &self,
        _: &ActivationSpec,
        quantize: &QuantizeSpec,
        max_rows: usize,
        columns: usize,
    ) -> u64 {
        self.fused_workspace(quantize, max_rows, columns)
    }

    fn activation(&self, stream: &mut CpuStream, args: Checked<ActivationArgs<'_, Self>>) -> Result<()> {
        self.activation_supports(args.spec).require("activation", self, args.spec)?;
        with_float!(args.spec.dtype, Float => {
            let x = read::<Float>(args.x)?;
            let input = Input { function: args.spec.function, x: x.data(), rows: x.rows };
            match &args.out {
                ActivationOut::Float(out) => {
                    let mut out = write::<Float>(out)?;
                    let layout = out.rows;
                    let columns = layout.columns;
                    self.each_rows(&mut out, cost::activated(columns), |first, count, out| {
                        let target = FloatRows { out, layout };
                        self.tier().run(ActivateRows { input, first, count, columns, target });
                    });
                    Ok(())
                }
                ActivationOut::Quantized { spec, out } => {
                    let q = out.q.dims();
                    let (rows, columns) = (x.rows.count(), q.last().copied().unwrap_or(0));
                    let bytes = self.fused_workspace(spec, rows, columns);
                    let scratch = stream.scratch_floats("activation", bytes)?;
                    let call = Call { spec, out, scratch, shape: [rows, 1, columns] };
                    self.rows_to_integers::<f32>(call, cost::activated_to_int8(columns), |first, count, target| {
                        self.tier().run(ActivateRows { input, first, count, columns, target });
                    })
                }
                other => Err(crate::unsupported("activation", "this form of output", other)),
            }
        })
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

/// Rows `first..first + count`.
struct ActivateRows<'a, T, O> {
    input: Input<'a, T>,
    first: usize,
    count: usize,
    /// Of the result.
    columns: usize,
    target: O,
}

impl<T: StoredFloat, O: Target> Kernel for ActivateRows<'_, T, O> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self, isa: I) {
        for row in 0..self.count {
            let y = self.input.row(self.first + row, self.columns);
            self.target.store(isa, row, 0, &y);
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
            Function::Gated { glu, layout: GateLayout::Split } => {
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

/// Whether [`activate`] has this function.
pub(crate) fn element_supports(activation: Activation) -> Support {
    match activation {
        Activation::Silu
        | Activation::GeluErf
        | Activation::GeluTanh
        | Activation::QuickGelu
        | Activation::Relu
        | Activation::ReluSquared => Support::Native,
        other => Support::No(format!("{other:?} is not implemented")),
    }
}

/// One vector.
#[inline(always)]
pub(crate) fn activate<I: Isa>(isa: I, activation: Activation, x: I::F32) -> I::F32 {
    match activation {
        Activation::Silu => activation::silu(isa, x),
        Activation::GeluErf => activation::gelu_erf(isa, x),
        Activation::GeluTanh => activation::gelu_tanh(isa, x),
        Activation::QuickGelu => activation::sigmoid_gate(isa, x, 1.702),
        Activation::Relu => activation::relu(isa, x),
        Activation::ReluSquared => {
            let x = activation::relu(isa, x);
            isa.mul(x, x)
        }
        _ => isa.splat(f32::NAN),
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
