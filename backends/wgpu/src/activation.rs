//! Functions of one element and gated linear units, as an operator of their own, with the quantisation after.

use crate::{
    device::Wgpu,
    launch::{Access, Launch, Shader, spread},
    operand::Operand,
    quantize::{self, Call, PREPARE, ROWS, STEPS, TEAM, fused_supports},
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
    Shader { name: "activation", source: &[FUNCTIONS, ROW, include_str!("activation.wgsl")] };
static ACTIVATION_INTEGERS: Shader =
    Shader { name: "activation", source: &[FUNCTIONS, ROW, TEAM, SOURCE, PREPARE, STEPS, ROWS] };

const ROW: &str = include_str!("activation_row.wgsl");
const SOURCE: &str = include_str!("activation_source.wgsl");
/// Operands that an activated row is made of.
const OPERANDS: usize = 1;

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

/// What an activated row is made of.
fn activated_rows(launch: Launch, args: &ActivationArgs<'_, Wgpu>) -> Result<Launch> {
    let Some(constants) = constants(args.spec.function) else {
        return Err(unsupported("activation", "this function", &args.spec.function));
    };
    let (alpha, limit) = constants.clamped.unwrap_or_default();
    Ok(launch
        .input("x", args.x)
        .constant("FUNCTION", constants.function)
        .flag("GATED", constants.gated)
        .flag("CLAMPED", constants.clamped.is_some())
        .flag("INTERLEAVED", constants.interleaved)
        .size("x_stride", Rows::of(args.x).outer_stride)
        .float("alpha", alpha)
        .float("limit", limit))
}

/// The function of rows `x`, to `out` of `[rows, columns]` with `out_stride` elements from row to row.
fn activate(
    stream: &mut WgpuStream,
    args: &ActivationArgs<'_, Wgpu>,
    out: Operand,
    out_stride: usize,
    columns: usize,
) -> Result<()> {
    let rows = Rows::of(args.x).outer;
    let launch = activated_rows(Launch::new(&ACTIVATION), args)?
        .operand("out", Access::Out, out)
        .size("rows", rows)
        .size("columns", columns)
        .size("out_stride", out_stride);
    stream.launch(launch, spread((rows * columns).div_ceil(256)))
}

impl ActivationOps for Wgpu {
    fn activation_supports(&self, spec: &ActivationSpec) -> Support {
        match constants(spec.function) {
            Some(_) => float_only(spec.dtype),
            None => Support::No(format!("{:?} is not implemented", spec.function)),
        }
    }

    fn activation_quantize_supports(&self, spec: &ActivationSpec, quantize: &QuantizeSpec) -> Support {
        fused_supports(self.activation_supports(spec), quantize, OPERANDS)
    }

    fn activation_quantize_workspace(
        &self,
        _: &ActivationSpec,
        quantize: &QuantizeSpec,
        max_rows: usize,
        columns: usize,
    ) -> u64 {
        quantize::fused_workspace(quantize, OPERANDS, max_rows, columns)
    }

    fn activation(&self, stream: &mut WgpuStream, args: Checked<ActivationArgs<'_, Self>>) -> Result<()> {
        self.activation_supports(args.spec).require("activation", self, args.spec)?;
        match &args.out {
            ActivationOut::Float(out) => {
                let rows = Rows::of(out);
                activate(stream, &args, Operand::tensor(out), rows.outer_stride, rows.columns)
            }
            ActivationOut::Quantized { spec, out } => {
                self.activation_quantize_supports(args.spec, spec).require("activation", self, args.spec)?;
                let q = Rows::of(out.q);
                let call = Call { operator: "activation", spec, out, shape: [q.outer, 1, q.columns] };
                if quantize::in_one(spec, OPERANDS) {
                    let launch = activated_rows(Launch::new(&ACTIVATION_INTEGERS), &args)?;
                    return quantize::integers(stream, launch, &call, None);
                }
                quantize::by_floats(stream, &call, |stream, floats, [stride, _]| {
                    activate(stream, &args, floats, stride, q.columns)
                })
            }
            other => Err(unsupported("activation", "this form of output", other)),
        }
    }
}
