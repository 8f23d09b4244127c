//! Functions of one element and gated linear units, as an operator of their own.

use crate::{
    device::Wgpu,
    launch::{Access, Launch, Shader, spread},
    operand::Operand,
    rows::Rows,
    stream::WgpuStream,
    support::{float_only, unsupported},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    activation::{
        Activation, ActivationArgs, ActivationOps, ActivationOut, ActivationSpec, Function, GateLayout, Glu,
    },
    quantize::QuantizeSpec,
};

static ACTIVATION: Shader =
    Shader { name: "activation", source: &[FUNCTIONS, include_str!("activation.wgsl")] };

/// The functions themselves, for every shader that ends with one.
pub(crate) const FUNCTIONS: &str = include_str!("functions.wgsl");

/// The number that shaders know a function by.
pub(crate) fn code(activation: Activation) -> Option<u32> {
    match activation {
        Activation::Silu => Some(0),
        Activation::GeluErf => Some(1),
        Activation::GeluTanh => Some(2),
        Activation::QuickGelu => Some(3),
        Activation::Relu => Some(4),
        Activation::ReluSquared => Some(5),
        _ => None,
    }
}

/// What a shader is compiled with for a function: its number, and whether it is gated, clamped, in pairs.
struct Constants {
    function: u32,
    gated: bool,
    clamped: Option<(f32, f32)>,
    interleaved: bool,
}

fn constants(function: Function) -> Option<Constants> {
    let (function, glu) = match function {
        Function::Plain(activation) => (activation, None),
        Function::Gated { glu: Glu::Plain(activation), layout } => (activation, Some((None, layout))),
        Function::Gated { glu: Glu::Clamped { alpha, limit }, layout } => {
            (Activation::Silu, Some((Some((alpha, limit)), layout)))
        }
        _ => return None,
    };
    let interleaved = match glu {
        None | Some((_, GateLayout::Split)) => false,
        Some((_, GateLayout::Interleaved)) => true,
        Some(_) => return None,
    };
    let clamped = glu.and_then(|(clamped, _)| clamped);
    Some(Constants { function: code(function)?, gated: glu.is_some(), clamped, interleaved })
}

impl Wgpu {
    /// The function of rows `x`, to `out` of `[rows, columns]` with `out_stride` elements from row to row.
    fn activate(
        &self,
        stream: &mut WgpuStream,
        args: &ActivationArgs<'_, Self>,
        out: Operand,
        out_stride: usize,
        columns: usize,
    ) -> Result<()> {
        let Some(constants) = constants(args.spec.function) else {
            return Err(unsupported("activation", "this function", &args.spec.function));
        };
        let x = Rows::of(args.x);
        let (alpha, limit) = constants.clamped.unwrap_or_default();
        let launch = Launch::new(&ACTIVATION)
            .input("x", args.x)
            .operand("out", Access::Out, out)
            .constant("FUNCTION", constants.function)
            .flag("GATED", constants.gated)
            .flag("CLAMPED", constants.clamped.is_some())
            .flag("INTERLEAVED", constants.interleaved)
            .size("rows", x.outer)
            .size("columns", columns)
            .size("x_stride", x.outer_stride)
            .size("out_stride", out_stride)
            .float("alpha", alpha)
            .float("limit", limit);
        stream.launch(launch, spread((x.outer * columns).div_ceil(256)))
    }
}

impl ActivationOps for Wgpu {
    fn activation_supports(&self, spec: &ActivationSpec) -> Support {
        match constants(spec.function) {
            Some(_) => float_only(spec.dtype),
            None => Support::No(format!("{:?} is not implemented", spec.function)),
        }
    }

    fn activation_quantize_supports(&self, _: &ActivationSpec, _: &QuantizeSpec) -> Support {
        Support::No("not built on wgpu yet".to_owned())
    }

    fn activation_quantize_workspace(&self, _: &ActivationSpec, _: &QuantizeSpec, _: usize, _: usize) -> u64 {
        0
    }

    fn activation(&self, stream: &mut WgpuStream, args: Checked<ActivationArgs<'_, Self>>) -> Result<()> {
        self.activation_supports(args.spec).require("activation", self, args.spec)?;
        match &args.out {
            ActivationOut::Float(out) => {
                let rows = Rows::of(out);
                self.activate(stream, &args, Operand::tensor(out), rows.outer_stride, rows.columns)
            }
            other => Err(unsupported("activation", "this form of output", other)),
        }
    }
}
