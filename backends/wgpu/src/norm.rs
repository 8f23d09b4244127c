//! RMS and layer norm, with a residual before or after and the quantisation after.

use crate::{
    device::Wgpu,
    launch::{Access, Launch, Shader},
    operand::Operand,
    quantize::{self, Call, PREPARE, ROWS, STEPS, TEAM, fused_supports},
    rows::Rows,
    stream::WgpuStream,
    support::{float_only, unsupported},
};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    Checked, Support,
    norm::{Norm, NormArgs, NormKind, NormOut, NormResidual, NormSpec},
    quantize::QuantizeSpec,
};

const ROW: &str = include_str!("norm_row.wgsl");

static NORM: Shader = Shader { name: "norm", source: &[TEAM, ROW, include_str!("norm.wgsl")] };
static NORM_INTEGERS: Shader = Shader { name: "norm", source: &[TEAM, ROW, PREPARE, STEPS, ROWS] };

/// Operands that a normed row is made of, at most.
fn operands(spec: &NormSpec) -> usize {
    // The row, a residual and its sum, weights; biases.
    if spec.kind == NormKind::Layer { 5 } else { 4 }
}

impl Wgpu {
    /// What a normed row is made of.
    fn normed_rows(&self, launch: Launch, args: &NormArgs<'_, Self>) -> Result<Launch> {
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
        let strides = |tensor: Option<&Tensor<Self>>| {
            tensor.map(Rows::of).map_or([0; 2], |rows| [rows.outer_stride, rows.inner_stride])
        };
        // Weights of one row serve all heads.
        let head = |vector: Option<&Tensor<Self>>| match vector.map(Tensor::strides) {
            Some(&[head, _]) => head,
            _ => 0,
        };
        let ([x_outer, x_inner], residuals, sums) = (strides(Some(args.x)), strides(residual), strides(sum));
        let columns = Rows::of(args.x).columns;
        let sum_type = match spec.dtype {
            DType::F16 => 1,
            DType::Bf16 => 2,
            _ => 0,
        };
        Ok(launch
            .input("x", args.x)
            .maybe("residual", Access::In, spec.dtype, residual)
            .maybe("sum", Access::Out, spec.dtype, sum)
            .maybe("weight", Access::In, DType::F32, args.weight)
            .maybe("bias", Access::In, DType::F32, args.bias)
            .flag("LAYER", layer)
            .flag("AFTER", residual.is_some() && sum.is_none())
            .constant("SUM_TYPE", sum.map_or(0, |_| sum_type))
            .size("x_outer", x_outer)
            .size("x_inner", x_inner)
            .size("residual_outer", residuals[0])
            .size("residual_inner", residuals[1])
            .size("sum_outer", sums[0])
            .size("sum_inner", sums[1])
            .size("weight_head", head(args.weight))
            .size("bias_head", head(args.bias))
            .float("eps", spec.eps)
            .float("weight_offset", spec.weight_offset)
            // The row's moments take two passes.
            .rounds(2 * quantize::row_rounds(columns, quantize::lanes(columns), 0) + 64))
    }

    /// Normed rows as floats, to `out` with these strides.
    fn normed_floats(
        &self,
        stream: &mut WgpuStream,
        args: &NormArgs<'_, Self>,
        shape: [usize; 3],
        out: Operand,
        [outer, inner]: [usize; 2],
    ) -> Result<()> {
        let launch = quantize::teams(self.normed_rows(Launch::new(&NORM), args)?, shape)
            .operand("out", Access::Out, out)
            .size("out_outer", outer)
            .size("out_inner", inner)
            .rounds(quantize::row_rounds(shape[2], quantize::lanes(shape[2]), 0));
        stream.launch(launch, quantize::grid(shape))
    }
}

impl Norm for Wgpu {
    fn norm_supports(&self, spec: &NormSpec) -> Support {
        match spec.kind {
            NormKind::Rms | NormKind::Layer => float_only(spec.dtype),
            other => Support::No(format!("{other:?} is not implemented")),
        }
    }

    fn norm_quantize_supports(&self, spec: &NormSpec, quantize: &QuantizeSpec) -> Support {
        fused_supports(self.norm_supports(spec), quantize, operands(spec))
    }

    fn norm_quantize_workspace(
        &self,
        spec: &NormSpec,
        quantize: &QuantizeSpec,
        max_rows: usize,
        columns: usize,
    ) -> u64 {
        quantize::fused_workspace(quantize, operands(spec), max_rows, columns)
    }

    fn norm(&self, stream: &mut WgpuStream, args: Checked<NormArgs<'_, Self>>) -> Result<()> {
        self.norm_supports(args.spec).require("norm", self, args.spec)?;
        let x = Rows::of(args.x);
        let shape = [x.outer, x.inner, x.columns];
        match &args.out {
            NormOut::Float(out) => {
                let rows = Rows::of(out);
                let strides = [rows.outer_stride, rows.inner_stride];
                self.normed_floats(stream, &args, shape, Operand::tensor(out), strides)
            }
            NormOut::Quantized { spec, out } => {
                self.norm_quantize_supports(args.spec, spec).require("norm", self, args.spec)?;
                let call = Call { operator: "norm", spec, out, shape };
                if quantize::in_one(spec, operands(args.spec)) {
                    let launch = self.normed_rows(Launch::new(&NORM_INTEGERS), &args)?;
                    return quantize::integers(stream, launch, &call, None);
                }
                quantize::by_floats(stream, &call, |stream, floats, strides| {
                    self.normed_floats(stream, &args, shape, floats, strides)
                })
            }
            other => Err(unsupported("norm", "this form of output", other)),
        }
    }
}
