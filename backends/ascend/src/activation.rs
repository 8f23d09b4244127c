//! Gated linear units, by CANN's SwiGlu.

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
    runtime::Operator,
    stream::AscendStream,
    support::{by, is_float, not_yet, unsupported},
};

/// The one function: CANN's gates are the first half of a row.
const SWI_GLU: Function = Function::Gated { glu: Glu::Plain(Activation::Silu), layout: GateLayout::Split };

impl ActivationOps for Ascend {
    fn activation_supports(&self, spec: &ActivationSpec) -> Support {
        if spec.function != SWI_GLU {
            return Support::No(format!("{:?}: only SwiGLU with all gates first", spec.function));
        }
        if !is_float(spec.dtype) {
            return Support::No(format!("{} is not a floating-point type", spec.dtype));
        }
        by(self, &[Operator::SwiGlu])
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
                stream.run("activation", &[("x", x), ("out", out)], |cann| cann.swi_glu(x, out))
            }
            ActivationOut::Quantized { spec: quantize, .. } => {
                self.activation_quantize_supports(spec, quantize).require("activation", self, spec)
            }
            other => Err(unsupported("activation", "this form of output", other)),
        }
    }
}
