//! RMS norms of F32 rows, by CANN's RmsNorm, and AddRmsNorm where there is a residual.

use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    Checked, Support,
    norm::{Norm, NormArgs, NormKind, NormOut, NormResidual, NormSpec},
    quantize::QuantizeSpec,
};

use crate::{
    device::Ascend,
    room::{Room, bytes},
    runtime::Operator,
    stream::AscendStream,
    support::{by, not_yet, unsupported},
};

impl Norm for Ascend {
    fn norm_supports(&self, spec: &NormSpec) -> Support {
        // Weights are F32, and CANN's are of the rows' type.
        if spec.kind != NormKind::Rms || spec.dtype != DType::F32 || spec.weight_offset != 0.0 {
            return Support::No(format!("{spec:?}: only RMS norms of F32 rows with weights as they are"));
        }
        // A residual is no part of the specification, so what adds it has to be there.
        by(self, &[Operator::RmsNorm, Operator::AddRmsNorm])
    }

    fn norm_quantize_supports(&self, _: &NormSpec, _: &QuantizeSpec) -> Support {
        not_yet()
    }

    fn norm_quantize_workspace(&self, _: &NormSpec, _: &QuantizeSpec, _: usize, _: usize) -> u64 {
        0
    }

    fn norm(&self, stream: &mut AscendStream, args: Checked<NormArgs<'_, Self>>) -> Result<()> {
        self.norm_supports(args.spec).require("norm", self, args.spec)?;
        let NormOut::Float(out) = &args.out else {
            return Err(unsupported("norm", "this form of output", &args.out));
        };
        // CANN refuses empty tensors.
        if out.shape().elements() == 0 {
            return Ok(());
        }
        let rows = Rows { weight: args.weight, eps: f64::from(args.spec.eps) };
        match &args.residual {
            None => rows
                .each(stream, &[args.x, out], |stream, t, weight, eps| norm(stream, t[0], weight, eps, t[1])),
            Some(NormResidual::Before { residual, sum }) => {
                let tensors = [args.x, residual, out, sum];
                rows.each(stream, &tensors, |stream, t, weight, eps| {
                    add_norm(stream, [t[0], t[1]], weight, eps, t[2], t[3])
                })
            }
            Some(NormResidual::After { residual }) => {
                rows.each(stream, &[args.x, residual, out], |stream, t, weight, eps| {
                    norm_add(stream, t[0], t[1], weight, eps, t[2])
                })
            }
            Some(other) => Err(unsupported("norm", "this form of residual", other)),
        }
    }
}

/// What rows are multiplied by, and what is added to their mean squares.
struct Rows<'a> {
    weight: Option<&'a Tensor<Ascend>>,
    eps: f64,
}

impl Rows<'_> {
    /// All rows of tensors of one shape at once, or those of one head after the other where each has weights of its own.
    fn each(
        &self,
        stream: &mut AscendStream,
        tensors: &[&Tensor<Ascend>],
        call: impl Fn(&mut AscendStream, &[&Tensor<Ascend>], &Tensor<Ascend>, f64) -> Result<()>,
    ) -> Result<()> {
        let columns = tensors[0].dims().last().copied().unwrap_or(0);
        let Some(weight) = self.weight else {
            let ones = stream.ones(columns)?;
            return call(stream, tensors, &ones, self.eps);
        };
        if weight.dims().len() == 1 {
            return call(stream, tensors, weight, self.eps);
        }
        (0..weight.dims()[0]).try_for_each(|head| {
            let own = weight.narrow(0, head..head + 1)?.reshape(&[columns])?;
            let heads: Vec<_> =
                tensors.iter().map(|tensor| tensor.narrow(1, head..head + 1)).collect::<Result<_>>()?;
            call(stream, &heads.iter().collect::<Vec<_>>(), &own, self.eps)
        })
    }
}

/// One number for each row of `x`.
fn one_each(x: &Tensor<Ascend>) -> Vec<usize> {
    let mut dims = x.dims().to_vec();
    dims.pop();
    dims.push(1);
    dims
}

fn norm(
    stream: &mut AscendStream,
    x: &Tensor<Ascend>,
    weight: &Tensor<Ascend>,
    eps: f64,
    out: &Tensor<Ascend>,
) -> Result<()> {
    let each = one_each(x);
    let rstd = Room::new(stream.aside(bytes(DType::F32, &each))?).tensor("norm", DType::F32, &each)?;
    let tensors = [("x", x), ("weight", weight), ("out", out)];
    stream.run("norm", &tensors, |cann| cann.rms_norm(x, weight, eps, out, &rstd))
}

fn add_norm(
    stream: &mut AscendStream,
    x: [&Tensor<Ascend>; 2],
    weight: &Tensor<Ascend>,
    eps: f64,
    out: &Tensor<Ascend>,
    sum: &Tensor<Ascend>,
) -> Result<()> {
    let each = one_each(x[0]);
    let rstd = Room::new(stream.aside(bytes(DType::F32, &each))?).tensor("norm", DType::F32, &each)?;
    let tensors = [("x", x[0]), ("residual", x[1]), ("weight", weight), ("out", out), ("sum", sum)];
    stream.run("norm", &tensors, |cann| cann.add_rms_norm(x, weight, eps, [out, &rstd, sum]))
}

/// CANN has no norm with an addition behind it: the sum that AddRmsNorm makes of the norm and the residual is the result,
/// and the norm that it makes of that is nobody's.
fn norm_add(
    stream: &mut AscendStream,
    x: &Tensor<Ascend>,
    residual: &Tensor<Ascend>,
    weight: &Tensor<Ascend>,
    eps: f64,
    out: &Tensor<Ascend>,
) -> Result<()> {
    let (each, dims) = (one_each(x), x.dims());
    let needed = bytes(DType::F32, &each) + 2 * bytes(DType::F32, dims);
    let mut room = Room::new(stream.aside(needed)?);
    let rstd = room.tensor("norm", DType::F32, &each)?;
    let (normed, nobodys) = (room.tensor("norm", DType::F32, dims)?, room.tensor("norm", DType::F32, dims)?);
    let tensors = [("x", x), ("residual", residual), ("weight", weight), ("out", out)];
    stream.run("norm", &tensors, |cann| cann.rms_norm(x, weight, eps, &normed, &rstd))?;
    stream.run("norm", &tensors, |cann| {
        cann.add_rms_norm([&normed, residual], weight, eps, [&nobodys, &rstd, out])
    })
}
