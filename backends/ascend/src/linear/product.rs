//! One call of a layer.

use std::mem;

use halite_hal::{DType, Result, Tensor};
use halite_kernels::linear::{ActivationFormat, Activations, Epilogue, LinearArgs, LinearSpec, Quantized};

use super::AscendPacked;
use crate::{
    copy,
    device::Ascend,
    room::{Room, bytes},
    runtime::QuantMatmul,
    stream::AscendStream,
    support::unsupported,
};

/// Sums, and floats twice: one is read while the other is written.
pub(super) fn workspace(spec: &LinearSpec, max_rows: usize) -> u64 {
    bytes(DType::F32, &[max_rows, spec.weight_rows()]).saturating_mul(3)
}

/// A call, whose arguments were checked.
pub(super) fn run(stream: &mut AscendStream, args: &LinearArgs<'_, Ascend>) -> Result<()> {
    let LinearArgs { x, weights, epilogue, out } = args;
    let spec = weights.as_ref();
    let Activations::Quantized(x) = x else {
        return Err(unsupported("linear", "only INT8", spec));
    };
    if epilogue.activation.is_some() || epilogue.soft_cap.is_some() {
        let form = (epilogue.activation, epilogue.soft_cap);
        return Err(unsupported(
            "linear",
            "a function or a soft-cap in the epilogue is not made of CANN's operators yet",
            &form,
        ));
    }
    // CANN refuses empty tensors.
    if out.shape().elements() == 0 {
        return Ok(());
    }
    let room = Room::new(stream.scratch("linear", workspace(spec, out.dims()[0]))?);
    let call = Call { x, weights, epilogue, out };
    // Formats and epilogues choose among these, rows do not.
    let plain = spec.gate.is_none() && epilogue.residual.is_none();
    let scaled = spec.output != DType::F32 && spec.activations == ActivationFormat::Int8PerToken;
    if spec.output == DType::I32 || plain && scaled {
        call.at_once(stream, room)
    } else {
        call.by_sums(stream, room)
    }
}

struct Call<'a> {
    x: &'a Quantized<'a, Ascend>,
    weights: &'a AscendPacked,
    epilogue: &'a Epilogue<'a, Ascend>,
    out: &'a Tensor<Ascend>,
}

impl Call<'_> {
    /// What CANN gives in one product: sums, or floats scaled by rows and columns.
    fn at_once(&self, stream: &mut AscendStream, mut room: Room) -> Result<()> {
        let (dtype, dims) = (self.out.dtype(), self.out.dims());
        let dense = if self.out.is_dense() { self.out.clone() } else { room.tensor("linear", dtype, dims)? };
        let rows = (dtype != DType::I32).then_some(self.x.scales);
        self.product(stream, rows, self.epilogue.bias, &dense)?;
        if self.out.is_dense() { Ok(()) } else { copy::elements(stream, &dense, self.out) }
    }

    /// Everything else in F32, rounded once.
    fn by_sums(&self, stream: &mut AscendStream, mut room: Room) -> Result<()> {
        let spec = self.weights.as_ref();
        let (rows, wide) = (self.out.dims()[0], spec.weight_rows());
        let mut piece = |dtype, width| room.tensor("linear", dtype, &[rows, width]);
        let sums = piece(DType::I32, wide)?;
        let (mut y, mut next) = (piece(DType::F32, wide)?, piece(DType::F32, wide)?);
        self.product(stream, None, None, &sums)?;
        stream.run("linear", &[], |cann| cann.cast(&sums, &y))?;
        let columns = self.weights.scales()?;
        stream.run("linear", &[], |cann| cann.mul(&y, &columns, &next))?;
        mem::swap(&mut y, &mut next);
        let scales = self.x.scales.split_last(1)?;
        stream.run("linear", &[("scales", &scales)], |cann| cann.mul(&y, &scales, &next))?;
        mem::swap(&mut y, &mut next);
        if let Some(bias) = self.epilogue.bias {
            stream.run("linear", &[("bias", bias)], |cann| cann.add(&y, 1.0, bias, &next))?;
            mem::swap(&mut y, &mut next);
        }
        if spec.gate.is_some() {
            next = narrow(&next, [rows, spec.out_features])?;
            stream.run("linear", &[], |cann| cann.swi_glu(&y, &next))?;
            mem::swap(&mut y, &mut next);
            next = narrow(&next, [rows, spec.out_features])?;
        }
        if let Some(residual) = self.epilogue.residual {
            let floats = if residual.dtype() == DType::F32 {
                residual.clone()
            } else {
                // Nobody reads the sums any more.
                let floats =
                    Tensor::from_buffer(sums.buffer().clone(), sums.offset(), DType::F32, self.out.dims())?;
                stream.run("linear", &[("residual", residual)], |cann| cann.cast(residual, &floats))?;
                floats
            };
            stream.run("linear", &[("residual", &floats)], |cann| cann.add(&y, 1.0, &floats, &next))?;
            mem::swap(&mut y, &mut next);
        }
        if self.out.dtype() == DType::F32 {
            return copy::elements(stream, &y, self.out);
        }
        stream.run("linear", &[("out", self.out)], |cann| cann.cast(&y, self.out))
    }

    fn product(
        &self,
        stream: &mut AscendStream,
        rows: Option<&Tensor<Ascend>>,
        bias: Option<&Tensor<Ascend>>,
        out: &Tensor<Ascend>,
    ) -> Result<()> {
        let (w, columns) = (self.weights.elements()?, self.weights.scales()?);
        // Sums have to have one as well.
        let one = stream.ones(1)?;
        let columns = if out.dtype() == DType::I32 { &one } else { &columns };
        let product = QuantMatmul { x: self.x.q, w: &w, rows, columns, bias, out };
        let all = [
            ("x", Some(self.x.q)),
            ("weights", Some(&w)),
            ("scales", rows),
            ("bias", bias),
            ("out", Some(out)),
        ];
        let tensors: Vec<_> =
            all.into_iter().filter_map(|(name, tensor)| tensor.map(|tensor| (name, tensor))).collect();
        stream.run("linear", &tensors, |cann| cann.quant_matmul(product))
    }
}

/// The beginning of a tensor's memory, as another shape.
fn narrow(tensor: &Tensor<Ascend>, dims: [usize; 2]) -> Result<Tensor<Ascend>> {
    Tensor::from_buffer(tensor.buffer().clone(), tensor.offset(), tensor.dtype(), &dims)
}
