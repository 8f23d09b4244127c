//! One call of a layer.

use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    activation::Activation,
    linear::{ActivationFormat, Activations, Epilogue, LinearArgs, LinearSpec, OutputScale, Quantized},
};

use super::{AscendPacked, packed};
use crate::{
    copy,
    device::Ascend,
    room::{Room, bytes},
    runtime::{Elementwise, QuantMatmul},
    steps::{NO_FUNCTION, Steps, has_function, room_of},
    stream::AscendStream,
    support::unsupported,
};

/// Sums, floats twice, a gate twice, a residual, and rows and weights in F32 where they are not.
pub(super) fn workspace(spec: &LinearSpec, max_rows: usize) -> u64 {
    let results = [max_rows, spec.weight_rows()];
    let gates = if gate(spec).is_some() { room_of(&[max_rows, spec.out_features]) } else { 0 };
    let narrow = |dtype: DType, dims: &[usize]| if dtype.size() == 2 { bytes(DType::F32, dims) } else { 0 };
    let rows = narrow(spec.activations.dtype(), &[max_rows, spec.in_features]);
    let weights = narrow(packed::dtype(spec), &[results[1], spec.in_features]);
    let residual = bytes(DType::F32, &[max_rows, spec.out_features]);
    let parts = [bytes(DType::F32, &results), room_of(&results), gates, residual, rows, weights];
    parts.into_iter().fold(0, u64::saturating_add)
}

/// The function of a gate for which CANN has no operator of its own.
fn gate(spec: &LinearSpec) -> Option<Activation> {
    spec.gate.filter(|gate| *gate != Activation::Silu)
}

/// A call, whose arguments were checked.
pub(super) fn run(stream: &mut AscendStream, args: &LinearArgs<'_, Ascend>) -> Result<()> {
    let LinearArgs { x, weights, epilogue, out } = args;
    let spec = weights.as_ref();
    if let Some(function) = epilogue.activation.filter(|function| has_function(*function).is_none()) {
        return Err(unsupported("linear", NO_FUNCTION, &function));
    }
    // CANN refuses empty tensors.
    if out.shape().elements() == 0 {
        return Ok(());
    }
    let mut room = Room::new(stream.scratch("linear", workspace(spec, out.dims()[0]))?);
    let call = Call { weights, epilogue, out };
    // Formats and epilogues choose among these, rows do not.
    let Epilogue { activation, soft_cap, residual, .. } = epilogue;
    let plain = spec.gate.is_none() && activation.is_none() && soft_cap.is_none() && residual.is_none();
    let short = matches!(spec.output, DType::F16 | DType::Bf16);
    match x {
        Activations::Quantized(x) if spec.output == DType::I32 => {
            call.at_once(stream, room, |stream, out| call.product(stream, x, None, None, out))
        }
        Activations::Quantized(x) if plain && short && spec.activations == ActivationFormat::Int8PerToken => {
            let bias = epilogue.bias;
            call.at_once(stream, room, |stream, out| call.product(stream, x, Some(x.scales), bias, out))
        }
        Activations::Quantized(x) => {
            let steps = call.scaled(stream, &mut room, x)?;
            call.finish(stream, room, steps)
        }
        Activations::Float(x) => {
            let weights = weights.elements()?;
            let same = [weights.dtype(), spec.output].iter().all(|dtype| *dtype == x.dtype());
            if same && plain && epilogue.bias.is_none() {
                return call.at_once(stream, room, |stream, out| matmul(stream, x, &weights, out));
            }
            let steps = call.floats(stream, &mut room, x, &weights)?;
            call.finish(stream, room, steps)
        }
        other => Err(unsupported("linear", "only floats and INT8", other)),
    }
}

/// `out = x · wᵀ`.
fn matmul(
    stream: &mut AscendStream,
    x: &Tensor<Ascend>,
    w: &Tensor<Ascend>,
    out: &Tensor<Ascend>,
) -> Result<()> {
    let tensors = [("x", x), ("weights", w), ("out", out)];
    stream.run("linear", &tensors, |cann| cann.matmul(x, w, out))
}

/// In F32, itself where it is that.
fn widened(
    stream: &mut AscendStream,
    room: &mut Room,
    name: &'static str,
    tensor: &Tensor<Ascend>,
) -> Result<Tensor<Ascend>> {
    if tensor.dtype() == DType::F32 {
        return Ok(tensor.clone());
    }
    let floats = room.tensor("linear", DType::F32, tensor.dims())?;
    stream.run("linear", &[(name, tensor)], |cann| cann.cast(tensor, &floats))?;
    Ok(floats)
}

/// `act(gate) · up` of `[rows, 2 · out_features]`, or what came where there is no gate. Takes room for a gate.
pub(crate) fn gated(
    stream: &mut AscendStream,
    room: &mut Room,
    mut steps: Steps,
    spec: &LinearSpec,
    rows: usize,
) -> Result<Steps> {
    let (width, dims) = (spec.out_features, [rows, spec.out_features]);
    if let Some(function) = gate(spec) {
        let halves = steps.now();
        let (gates, ups) = (halves.narrow(1, 0..width)?, halves.narrow(1, width..2 * width)?);
        let mut gated = Steps::new("linear", room, &gates, &dims)?;
        gated.function(stream, function)?;
        gated.mul(stream, "x", &ups)?;
        return Ok(gated);
    }
    if spec.gate.is_some() {
        steps.shape(&dims)?;
        steps.step(stream, &[], |cann, x, out| cann.swi_glu(x, out))?;
    }
    Ok(steps)
}

struct Call<'a> {
    weights: &'a AscendPacked,
    epilogue: &'a Epilogue<'a, Ascend>,
    out: &'a Tensor<Ascend>,
}

impl Call<'_> {
    /// What CANN gives in one product.
    fn at_once(
        &self,
        stream: &mut AscendStream,
        mut room: Room,
        product: impl FnOnce(&mut AscendStream, &Tensor<Ascend>) -> Result<()>,
    ) -> Result<()> {
        if self.out.is_dense() {
            return product(stream, self.out);
        }
        let dense = room.tensor("linear", self.out.dtype(), self.out.dims())?;
        product(stream, &dense)?;
        copy::elements(stream, &dense, self.out)
    }

    /// `[rows, weight_rows]`.
    fn results(&self) -> [usize; 2] {
        [self.out.dims()[0], self.weights.as_ref().weight_rows()]
    }

    /// Sums of integers, times their scales, in F32.
    fn scaled(&self, stream: &mut AscendStream, room: &mut Room, x: &Quantized<'_, Ascend>) -> Result<Steps> {
        let sums = room.tensor("linear", DType::I32, &self.results())?;
        self.product(stream, x, None, None, &sums)?;
        let mut steps = Steps::new("linear", room, &sums, &self.results())?;
        steps.widen(stream)?;
        steps.mul(stream, "weights", &self.weights.scales()?)?;
        steps.mul(stream, "scales", &x.scales.split_last(1)?)?;
        Ok(steps)
    }

    /// A product of floats, in F32.
    fn floats(
        &self,
        stream: &mut AscendStream,
        room: &mut Room,
        x: &Tensor<Ascend>,
        w: &Tensor<Ascend>,
    ) -> Result<Steps> {
        let (x, w) = (widened(stream, room, "x", x)?, widened(stream, room, "weights", w)?);
        let products = room.tensor("linear", DType::F32, &self.results())?;
        matmul(stream, &x, &w, &products)?;
        Steps::new("linear", room, &products, &self.results())
    }

    /// The epilogue, all of it in F32 and rounded once.
    fn finish(&self, stream: &mut AscendStream, mut room: Room, mut steps: Steps) -> Result<()> {
        let Epilogue { bias, activation, soft_cap, residual, output_scale, .. } = self.epilogue;
        let spec = self.weights.as_ref();
        if let Some(bias) = bias {
            steps.add(stream, "bias", 1.0, bias)?;
        }
        if let Some(activation) = activation {
            steps.function(stream, *activation)?;
        }
        steps = gated(stream, &mut room, steps, spec, self.out.dims()[0])?;
        if let Some(cap) = soft_cap {
            steps.soft_cap(stream, *cap)?;
        }
        if let Some(residual) = residual {
            let floats = widened(stream, &mut room, "residual", residual)?;
            steps.add(stream, "residual", 1.0, &floats)?;
        }
        match output_scale {
            Some(OutputScale { scale, zero_point, .. }) => {
                steps.each(stream, Elementwise::Divs(*scale))?;
                let (least, most) = if spec.output == DType::U8 { (0.0, 255.0) } else { (-128.0, 127.0) };
                steps.round(stream, (*zero_point as f32, least, most), ("out", self.out))
            }
            None => steps.store(stream, self.out),
        }
    }

    fn product(
        &self,
        stream: &mut AscendStream,
        x: &Quantized<'_, Ascend>,
        rows: Option<&Tensor<Ascend>>,
        bias: Option<&Tensor<Ascend>>,
        out: &Tensor<Ascend>,
    ) -> Result<()> {
        let (w, columns) = (self.weights.elements()?, self.weights.scales()?);
        // Sums have to have one as well.
        let one = stream.ones(1)?;
        let columns = if out.dtype() == DType::I32 { &one } else { &columns };
        let product = QuantMatmul { x: x.q, w: &w, rows, columns, bias, out };
        let all =
            [("x", Some(x.q)), ("weights", Some(&w)), ("scales", rows), ("bias", bias), ("out", Some(out))];
        let tensors: Vec<_> =
            all.into_iter().filter_map(|(name, tensor)| tensor.map(|tensor| (name, tensor))).collect();
        stream.run("linear", &tensors, |cann| cann.quant_matmul(product))
    }
}
