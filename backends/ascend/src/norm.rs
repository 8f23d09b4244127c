//! RMS norms, by CANN's RmsNorm, and Add where there is a residual or an offset of the weights.

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
    support::{by, is_float, not_yet, unsupported},
};

impl Norm for Ascend {
    fn norm_supports(&self, spec: &NormSpec) -> Support {
        if spec.kind != NormKind::Rms {
            return Support::No(format!("{:?}: only RMS norms", spec.kind));
        }
        if !is_float(spec.dtype) {
            return Support::No(format!("{} is not a floating-point type", spec.dtype));
        }
        // A residual is no part of the specification, so what adds it has to be there.
        by(self, &[Operator::RmsNorm, Operator::Add, Operator::Cast])
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
        let mut room = Room::new(stream.aside(aside(args.x.dims()))?);
        let mut piece = |dtype, dims: &[usize]| room.tensor("norm", dtype, dims);
        let (dims, f32) = (out.dims(), DType::F32);
        let factors = piece(f32, &one_each(dims))?;
        let weight = match args.weight {
            Some(weight) if args.spec.weight_offset != 0.0 => {
                let (ones, sum) = (stream.ones(dims[dims.len() - 1])?, piece(f32, weight.dims())?);
                add(stream, weight, args.spec.weight_offset, &ones, &sum)?;
                Some(sum)
            }
            weight => weight.cloned(),
        };
        let rows = Rows { weight, eps: f64::from(args.spec.eps), factors };
        match &args.residual {
            None => rows.norm(stream, args.x, out),
            Some(NormResidual::Before { residual, sum }) => {
                add(stream, args.x, 1.0, residual, sum)?;
                rows.norm(stream, sum, out)
            }
            Some(NormResidual::After { residual }) => {
                // In F32 throughout, and rounded once. CANN's document does not say that an output may be read as well.
                let (x, residual) =
                    (widened(stream, &mut piece, args.x)?, widened(stream, &mut piece, residual)?);
                let normed = piece(f32, dims)?;
                rows.norm(stream, &x, &normed)?;
                if out.dtype() == f32 {
                    return add(stream, &normed, 1.0, &residual, out);
                }
                let sum = piece(f32, dims)?;
                add(stream, &normed, 1.0, &residual, &sum)?;
                stream.run("norm", &[("out", out)], |cann| cann.cast(&sum, out))
            }
            Some(other) => Err(unsupported("norm", "this form of residual", other)),
        }
    }
}

/// Memory for what lies between a norm's operators: rows four times, a number for each, and weights of each head.
fn aside(dims: &[usize]) -> u64 {
    5 * bytes(DType::F32, dims) + bytes(DType::F32, &one_each(dims))
}

/// A tensor in F32, itself where it is that.
fn widened(
    stream: &mut AscendStream,
    piece: &mut impl FnMut(DType, &[usize]) -> Result<Tensor<Ascend>>,
    tensor: &Tensor<Ascend>,
) -> Result<Tensor<Ascend>> {
    if tensor.dtype() == DType::F32 {
        return Ok(tensor.clone());
    }
    let floats = piece(DType::F32, tensor.dims())?;
    stream.run("norm", &[("x", tensor)], |cann| cann.cast(tensor, &floats))?;
    Ok(floats)
}

/// `out = x + factor · y`.
fn add(
    stream: &mut AscendStream,
    x: &Tensor<Ascend>,
    factor: f32,
    y: &Tensor<Ascend>,
    out: &Tensor<Ascend>,
) -> Result<()> {
    stream.run("norm", &[("x", x), ("residual", y), ("out", out)], |cann| cann.add(x, factor, y, out))
}

/// One number for each row.
fn one_each(dims: &[usize]) -> Vec<usize> {
    let mut dims = dims.to_vec();
    dims.pop();
    dims.push(1);
    dims
}

struct Rows {
    weight: Option<Tensor<Ascend>>,
    eps: f64,
    /// Room for one number a row.
    factors: Tensor<Ascend>,
}

impl Rows {
    /// All rows at once, or those of one head after the other where each has weights of its own.
    fn norm(&self, stream: &mut AscendStream, x: &Tensor<Ascend>, out: &Tensor<Ascend>) -> Result<()> {
        let columns = x.dims().last().copied().unwrap_or(0);
        let Some(weight) = &self.weight else {
            let ones = stream.ones(columns)?;
            return self.by(stream, &ones, x, out);
        };
        if weight.dims().len() == 1 {
            return self.by(stream, weight, x, out);
        }
        (0..weight.dims()[0]).try_for_each(|head| {
            let own = weight.narrow(0, head..head + 1)?.reshape(&[columns])?;
            self.by(stream, &own, &x.narrow(1, head..head + 1)?, &out.narrow(1, head..head + 1)?)
        })
    }

    fn by(
        &self,
        stream: &mut AscendStream,
        weight: &Tensor<Ascend>,
        x: &Tensor<Ascend>,
        out: &Tensor<Ascend>,
    ) -> Result<()> {
        let place = (self.factors.buffer().clone(), self.factors.offset());
        let factors = Tensor::from_buffer(place.0, place.1, DType::F32, &one_each(x.dims()))?;
        let tensors = [("x", x), ("weight", weight), ("out", out)];
        stream.run("norm", &tensors, |cann| cann.rms_norm(x, weight, self.eps, out, &factors))
    }
}
