//! Functions of one element, in F32 by operators of CANN's for them, and SwiGLU, by its SwiGlu.

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    activation::{
        Activation, ActivationArgs, ActivationOps, ActivationOut, ActivationSpec, Function, GateLayout, Glu,
    },
    quantize::QuantizeSpec,
};

use crate::{
    device::Ascend,
    room::Room,
    runtime::Operator,
    steps::{NO_FUNCTION, Steps, has_function, room_of},
    stream::AscendStream,
    support::{by, is_float, not_yet, unsupported},
};

/// The one function: CANN's gates are the first half of a row.
const SWI_GLU: Function = Function::Gated { glu: Glu::Plain(Activation::Silu), layout: GateLayout::Split };

impl ActivationOps for Ascend {
    fn activation_supports(&self, spec: &ActivationSpec) -> Support {
        if !is_float(spec.dtype) {
            return Support::No(format!("{} is not a floating-point type", spec.dtype));
        }
        match spec.function {
            SWI_GLU => by(self, &[Operator::SwiGlu]),
            Function::Plain(activation) => match has_function(activation) {
                None => Support::No(format!("{activation:?}: {NO_FUNCTION}")),
                Some(operator) => match by(self, &[operator, Operator::NanToNum, Operator::Cast]) {
                    Support::Native => Support::Composed("NanToNum, Cast and the function's own operator"),
                    no => no,
                },
            },
            other => Support::No(format!("{other:?}: of gates only SwiGLU with all gates first")),
        }
    }

    fn activation_quantize_supports(&self, _: &ActivationSpec, _: &QuantizeSpec) -> Support {
        not_yet()
    }

    fn activation_quantize_workspace(&self, _: &ActivationSpec, _: &QuantizeSpec, _: usize, _: usize) -> u64 {
        0
    }

    fn activation(&self, stream: &mut AscendStream, args: Checked<ActivationArgs<'_, Self>>) -> Result<()> {
        let ActivationArgs { spec, x, out } = &*args;
        match out {
            ActivationOut::Float(out) => {
                self.activation_supports(spec).require("activation", self, spec)?;
                // CANN refuses empty tensors.
                if out.shape().elements() == 0 {
                    return Ok(());
                }
                let Function::Plain(activation) = spec.function else {
                    return stream.run("activation", &[("x", x), ("out", out)], |cann| cann.swi_glu(x, out));
                };
                let mut room = Room::new(stream.aside(room_of(x.dims()))?);
                let mut steps = Steps::new("activation", &mut room, x, x.dims())?;
                steps.widen(stream)?;
                steps.function(stream, activation)?;
                steps.store(stream, out)
            }
            ActivationOut::Quantized { spec: quantize, .. } => {
                self.activation_quantize_supports(spec, quantize).require("activation", self, spec)
            }
            other => Err(unsupported("activation", "this form of output", other)),
        }
    }
}
