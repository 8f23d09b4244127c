//! RMS and layer norm, with a residual before or after and the quantisation after.

use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    Checked, Support,
    norm::{Norm, NormArgs, NormKind, NormOut, NormResidual, NormSpec},
    quantize::QuantizeSpec,
};

use crate::{
    compile::{Program, Source},
    device::Cuda,
    launch::Launch,
    quantize::{self, Call, fused_supports},
    rows::Rows,
    stream::CudaStream,
    support::{float_only, unsupported},
};

static FLOATS: Source = Source::new("norm/norm.cu", include_str!("norm.cu"));
static INTEGERS: Source = Source::new("norm/quantize.cu", include_str!("quantize.cu"));

fn floats(x: DType, out: DType) -> Launch {
    Launch::new("norm", &FLOATS, "norm_rows").element("X", x).element("OUT", out)
}

fn integers(x: DType) -> Launch {
    Launch::new("norm", &INTEGERS, "norm_quantize").element("X", x)
}

/// Every program of the family: to the same type, to F32 for rotations, and to integers.
pub(crate) fn programs() -> Vec<Program> {
    let (f32, f16, bf16) = (DType::F32, DType::F16, DType::Bf16);
    let pairs = [(f32, f32), (f16, f16), (f16, f32), (bf16, bf16), (bf16, f32)];
    let floats = pairs.map(|(x, out)| floats(x, out).program());
    floats.into_iter().chain([f32, f16, bf16].map(|x| integers(x).program())).collect()
}

/// What a normed row is made of: `NORM_PARAMETERS` in row.cuh.
fn described(launch: Launch, args: &NormArgs<'_, Cuda>) -> Result<Launch> {
    let spec = args.spec;
    let layer = match spec.kind {
        NormKind::Rms => false,
        NormKind::Layer => true,
        other => return Err(unsupported("norm", "this kind", &other)),
    };
    let (residual, sum) = match &args.residual {
        None => (None, None),
        Some(NormResidual::Before { residual, sum }) => (Some(*residual), Some(*sum)),
        Some(NormResidual::After { residual }) => (Some(*residual), None),
        Some(other) => return Err(unsupported("norm", "this form of residual", other)),
    };
    let strides = |tensor: Option<&Tensor<Cuda>>| {
        tensor.map(Rows::of).map_or([0; 2], |rows| [rows.outer_stride, rows.inner_stride])
    };
    // Weights of one row serve all heads.
    let head = |vector: Option<&Tensor<Cuda>>| match vector.map(Tensor::strides) {
        Some(&[head, _]) => head,
        _ => 0,
    };
    let ([x_outer, x_inner], residuals, sums) = (strides(Some(args.x)), strides(residual), strides(sum));
    Ok(launch
        .tensor("x", args.x)
        .maybe("residual", residual)
        .maybe("sum", sum)
        .maybe("weight", args.weight)
        .maybe("bias", args.bias)
        .size("x's stride", x_outer)
        .size("x's stride", x_inner)
        .size("residual's stride", residuals[0])
        .size("residual's stride", residuals[1])
        .size("sum's stride", sums[0])
        .size("sum's stride", sums[1])
        .size("weight's stride", head(args.weight))
        .size("bias' stride", head(args.bias))
        .size("columns", Rows::of(args.x).columns)
        .float(spec.eps)
        .float(spec.weight_offset)
        .int(layer.into()))
}

/// Normed rows as floats.
fn normed(stream: &mut CudaStream, args: &NormArgs<'_, Cuda>, out: &Tensor<Cuda>) -> Result<()> {
    let (x, to) = (Rows::of(args.x), Rows::of(out));
    let launch = described(floats(args.spec.dtype, out.dtype()), args)?
        .tensor("out", out)
        .size("out's stride", to.outer_stride)
        .size("out's stride", to.inner_stride)
        .size("rows", x.count())
        .size("inner", x.inner)
        .count("lanes", quantize::lanes(x.columns));
    stream.launch(launch.grid(quantize::grid([x.outer, x.inner, x.columns])))
}

impl Norm for Cuda {
    fn norm_supports(&self, spec: &NormSpec) -> Support {
        match spec.kind {
            NormKind::Rms | NormKind::Layer => float_only(spec.dtype),
            other => Support::No(format!("{other:?} is not implemented")),
        }
    }

    fn norm_quantize_supports(&self, spec: &NormSpec, quantize: &QuantizeSpec) -> Support {
        fused_supports(self.norm_supports(spec), quantize)
    }

    fn norm_quantize_workspace(
        &self,
        _: &NormSpec,
        quantize: &QuantizeSpec,
        max_rows: usize,
        columns: usize,
    ) -> u64 {
        quantize::fused_workspace(quantize, max_rows, columns)
    }

    fn norm(&self, stream: &mut CudaStream, args: Checked<NormArgs<'_, Self>>) -> Result<()> {
        self.norm_supports(args.spec).require("norm", self, args.spec)?;
        let x = Rows::of(args.x);
        match &args.out {
            NormOut::Float(out) => normed(stream, &args, out),
            NormOut::Quantized { spec, out } => {
                self.norm_quantize_supports(args.spec, spec).require("norm", self, args.spec)?;
                let call = Call { operator: "norm", spec, out, shape: [x.outer, x.inner, x.columns] };
                if quantize::in_one(spec) {
                    let launch = described(integers(args.spec.dtype), &args)?;
                    return quantize::integers(stream, launch, &call, None);
                }
                quantize::by_floats(stream, &call, |stream, floats| normed(stream, &args, floats))
            }
            other => Err(unsupported("norm", "this form of output", other)),
        }
    }
}
