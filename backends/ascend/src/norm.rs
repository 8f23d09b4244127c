//! RMS norms of F32 rows, by CANN's RmsNorm, and Add where there is a residual.

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
        by(self, &[Operator::RmsNorm, Operator::Add])
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
        // What rows are multiplied by is a result that nobody asked for, and what a residual is added to one in between:
        // CANN's document does not say that an output may be read as well.
        let (dims, each) = (out.dims(), one_each(out.dims()));
        let mut room = Room::new(stream.aside(bytes(DType::F32, dims) + bytes(DType::F32, &each))?);
        let between = room.tensor("norm", DType::F32, dims)?;
        let rows = Rows {
            weight: args.weight,
            eps: f64::from(args.spec.eps),
            factors: room.tensor("norm", DType::F32, &each)?,
        };
        match &args.residual {
            None => rows.norm(stream, args.x, out),
            Some(NormResidual::Before { residual, sum }) => {
                add(stream, args.x, residual, sum)?;
                rows.norm(stream, sum, out)
            }
            Some(NormResidual::After { residual }) => {
                rows.norm(stream, args.x, &between)?;
                add(stream, &between, residual, out)
            }
            Some(other) => Err(unsupported("norm", "this form of residual", other)),
        }
    }
}

fn add(
    stream: &mut AscendStream,
    x: &Tensor<Ascend>,
    residual: &Tensor<Ascend>,
    out: &Tensor<Ascend>,
) -> Result<()> {
    let tensors = [("x", x), ("residual", residual), ("out", out)];
    stream.run("norm", &tensors, |cann| cann.add(x, residual, out))
}

/// One number for each row.
fn one_each(dims: &[usize]) -> Vec<usize> {
    let mut dims = dims.to_vec();
    dims.pop();
    dims.push(1);
    dims
}

struct Rows<'a> {
    weight: Option<&'a Tensor<Ascend>>,
    eps: f64,
    /// Room for one number a row.
    factors: Tensor<Ascend>,
}

impl Rows<'_> {
    /// All rows at once, or those of one head after the other where each has weights of its own.
    fn norm(&self, stream: &mut AscendStream, x: &Tensor<Ascend>, out: &Tensor<Ascend>) -> Result<()> {
        let columns = x.dims().last().copied().unwrap_or(0);
        let Some(weight) = self.weight else {
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
