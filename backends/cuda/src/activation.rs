//! Functions of one element and gated linear units, as an operator of their own.

use halite_hal::{DType, Result};
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
    rows::{Rows, in_vectors},
    stream::CudaStream,
    support::{float_only, not_yet, unsupported},
};

static SOURCE: Source = Source::new("activation.cu", include_str!("activation.cu"));

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

fn base(dtype: DType, entry: &'static str) -> Launch {
    Launch::new("activation", &SOURCE, entry).element("X", dtype)
}

/// Every program of the family.
pub(crate) fn programs() -> Vec<Program> {
    [DType::F32, DType::F16, DType::Bf16].map(|dtype| base(dtype, "activation_plain").program()).into()
}

impl ActivationOps for Cuda {
    fn activation_supports(&self, spec: &ActivationSpec) -> Support {
        match ActivatedRow::of(spec.function) {
            Some(_) => float_only(spec.dtype),
            None => Support::No(format!("{:?} is not implemented", spec.function)),
        }
    }

    fn activation_quantize_supports(&self, _: &ActivationSpec, _: &QuantizeSpec) -> Support {
        not_yet("activation with quantisation")
    }

    fn activation_quantize_workspace(
        &self,
        _: &ActivationSpec,
        _: &QuantizeSpec,
        _max_rows: usize,
        _columns: usize,
    ) -> u64 {
        0
    }

    fn activation(&self, stream: &mut CudaStream, args: Checked<ActivationArgs<'_, Self>>) -> Result<()> {
        self.activation_supports(args.spec).require("activation", self, args.spec)?;
        let out = match &args.out {
            ActivationOut::Float(out) => *out,
            other => return Err(unsupported("activation", "this form of output", other)),
        };
        let Some(row) = ActivatedRow::of(args.spec.function) else {
            return Err(unsupported("activation", "this function", &args.spec.function));
        };
        let (from, to) = (Rows::of(args.x), Rows::of(out));
        let vectors = in_vectors(args.x, &[from.outer_stride, to.columns])
            && in_vectors(out, &[to.outer_stride, to.columns]);
        let lanes = if vectors { 16 / args.spec.dtype.size() } else { 1 };
        let parts = to.columns.div_ceil(THREADS * lanes);
        let launch = base(args.spec.dtype, if row.gated { "activation_gated" } else { "activation_plain" })
            .tensor("x", args.x)
            .tensor("out", out)
            .size("x's stride", from.outer_stride)
            .size("out's stride", to.outer_stride)
            .size("columns", to.columns)
            .size("parts", parts)
            .int(vectors.into());
        stream.launch(row.parameters(launch).grid([to.outer.saturating_mul(parts), 1, 1]))
    }
}
