//! Functions of one element and gated linear units, as an operator of their own.

use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    Checked, Support,
    activation::{
        Activation, ActivationArgs, ActivationOps, ActivationOut, ActivationSpec, Function, GateLayout, Glu,
    },
    quantize::QuantizeSpec,
};

use crate::{
    compile::{Program, Source},
    device::Cuda,
    launch::Launch,
    quantize::{self, Call, fused_supports},
    rows::{Rows, in_vectors},
    stream::CudaStream,
    support::{float_only, unsupported},
};

static FLOATS: Source = Source::new("activation.cu", include_str!("activation.cu"));
static INTEGERS: Source = Source::new("activation_quantize.cu", include_str!("activation_quantize.cu"));

/// Threads of a block.
const THREADS: usize = 256;
/// Clamped SwiGLU's number.
const CLAMPED: i32 = 6;

/// The number that kernels know a function by.
pub(crate) fn code(activation: Activation) -> Option<i32> {
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

/// What kernels are told of a function: `Activated` in activation_row.cuh.
pub(crate) struct ActivatedRow {
    pub(crate) gated: bool,
    function: i32,
    interleaved: bool,
    alpha: f32,
    limit: f32,
}

impl ActivatedRow {
    /// No function: the row as it is, for kernels that take that too.
    pub(crate) const NONE: ActivatedRow =
        ActivatedRow { gated: false, function: -1, interleaved: false, alpha: 0.0, limit: 0.0 };

    /// None of a function that the kernels do not have.
    pub(crate) fn of(function: Function) -> Option<Self> {
        let gates = |layout| match layout {
            GateLayout::Split => Some(false),
            GateLayout::Interleaved => Some(true),
            _ => None,
        };
        let (function, gated, interleaved, (alpha, limit)) = match function {
            Function::Plain(activation) => (code(activation)?, false, false, (0.0, 0.0)),
            Function::Gated { glu: Glu::Plain(activation), layout } => {
                (code(activation)?, true, gates(layout)?, (0.0, 0.0))
            }
            Function::Gated { glu: Glu::Clamped { alpha, limit }, layout } => {
                (CLAMPED, true, gates(layout)?, (alpha, limit))
            }
            _ => return None,
        };
        Some(ActivatedRow { gated, function, interleaved, alpha, limit })
    }

    /// The parameters of every kernel that makes such rows.
    pub(crate) fn parameters(&self, launch: Launch) -> Launch {
        launch.int(self.function).int(self.interleaved.into()).float(self.alpha).float(self.limit)
    }
}

fn floats(x: DType, out: DType, gated: bool) -> Launch {
    let entry = if gated { "activation_gated" } else { "activation_plain" };
    Launch::new("activation", &FLOATS, entry).element("X", x).element("OUT", out)
}

fn integers(x: DType, gated: bool) -> Launch {
    let entry = if gated { "activation_quantize_gated" } else { "activation_quantize_plain" };
    Launch::new("activation", &INTEGERS, entry).element("X", x)
}

/// Every program of the family: to the same type, to F32 for rotations, and to integers.
pub(crate) fn programs() -> Vec<Program> {
    let (f32, f16, bf16) = (DType::F32, DType::F16, DType::Bf16);
    let pairs = [(f32, f32), (f16, f16), (f16, f32), (bf16, bf16), (bf16, f32)];
    let floats = pairs.map(|(x, out)| floats(x, out, false).program());
    floats.into_iter().chain([f32, f16, bf16].map(|x| integers(x, false).program())).collect()
}

/// The function of rows, as floats.
fn activate(
    stream: &mut CudaStream,
    args: &ActivationArgs<'_, Cuda>,
    row: &ActivatedRow,
    out: &Tensor<Cuda>,
) -> Result<()> {
    let (from, to) = (Rows::of(args.x), Rows::of(out));
    // Rows of a call that goes on to integers come in three dimensions.
    let (rows, stride) =
        if to.inner == 1 { (to.outer, to.outer_stride) } else { (to.count(), to.inner_stride) };
    // As many elements as 16 bytes of the input; those of the output are no shorter.
    let lanes = 16 / args.x.dtype().size();
    let vectors = in_vectors(args.x, &[from.outer_stride, to.columns])
        && in_vectors(out, &[stride, to.columns])
        && to.columns.is_multiple_of(lanes);
    let parts = to.columns.div_ceil(THREADS * if vectors { lanes } else { 1 });
    let launch = floats(args.x.dtype(), out.dtype(), row.gated)
        .tensor("x", args.x)
        .tensor("out", out)
        .size("x's stride", from.outer_stride)
        .size("out's stride", stride)
        .size("columns", to.columns)
        .size("parts", parts)
        .int(vectors.into());
    stream.launch(row.parameters(launch).grid([rows.saturating_mul(parts), 1, 1]))
}

impl ActivationOps for Cuda {
    fn activation_supports(&self, spec: &ActivationSpec) -> Support {
        match ActivatedRow::of(spec.function) {
            Some(_) => float_only(spec.dtype),
            None => Support::No(format!("{:?} is not implemented", spec.function)),
        }
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
        quantize::fused_workspace(quantize, max_rows, columns)
    }

    fn activation(&self, stream: &mut CudaStream, args: Checked<ActivationArgs<'_, Self>>) -> Result<()> {
        self.activation_supports(args.spec).require("activation", self, args.spec)?;
        let Some(row) = ActivatedRow::of(args.spec.function) else {
            return Err(unsupported("activation", "this function", &args.spec.function));
        };
        match &args.out {
            ActivationOut::Float(out) => activate(stream, &args, &row, out),
            ActivationOut::Quantized { spec, out } => {
                self.activation_quantize_supports(args.spec, spec).require("activation", self, args.spec)?;
                let q = Rows::of(out.q);
                let call = Call { operator: "activation", spec, out, shape: [q.outer, 1, q.columns] };
                if quantize::in_one(spec) {
                    let launch = integers(args.x.dtype(), row.gated)
                        .tensor("x", args.x)
                        .size("x's stride", Rows::of(args.x).outer_stride);
                    return quantize::integers(stream, row.parameters(launch), &call, None);
                }
                quantize::by_floats(stream, &call, |stream, floats| activate(stream, &args, &row, floats))
            }
            other => Err(unsupported("activation", "this form of output", other)),
        }
    }
}
