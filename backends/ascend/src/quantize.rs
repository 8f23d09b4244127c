//! Quantisation to symmetric INT8 with a scale a row or one for all rows, of elementwise operators, an F32 operation each: so
//! it is in the order, and on IEEE arithmetic has the bits, of the contract.
//!
//! CANN's DynamicQuant is one pass, but takes no F32, and its document does not say what becomes of rows of zeros, of NaN, of
//! infinities and of ties, which the contract does.

use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    Checked, Support,
    linear::ActivationFormat,
    quantize::{Quantize, QuantizeArgs, QuantizeSpec, RotateArgs, RotateSpec, Rotation, ScaleSource},
};

use crate::{
    device::Ascend,
    room::{Room, bytes},
    runtime::{Elementwise, Operator},
    steps::{Steps, room_of},
    stream::AscendStream,
    support::{by, is_float, not_yet, refused},
};

/// What it is made of.
const OPERATORS: [Operator; 11] = [
    Operator::Abs,
    Operator::Add,
    Operator::Amax,
    Operator::Cast,
    Operator::Clamp,
    Operator::Div,
    Operator::Divs,
    Operator::InplaceCopy,
    Operator::Mul,
    Operator::Muls,
    Operator::NanToNum,
];

impl Quantize for Ascend {
    fn quantize_supports(&self, spec: &QuantizeSpec) -> Support {
        if !is_float(spec.input) {
            return Support::No(format!("{} is not a floating-point type", spec.input));
        }
        if !matches!(spec.output, ActivationFormat::Int8PerToken | ActivationFormat::Int8PerTensor) {
            return Support::No(format!("{:?}: only symmetric INT8 by rows or of all rows", spec.output));
        }
        if spec.outlier_columns > 0 || spec.rotation != Rotation::None {
            return Support::No("outlier columns and rotations are not made of CANN's operators".to_owned());
        }
        match by(self, &OPERATORS) {
            Support::Native => {
                Support::Composed("Cast, Abs, NanToNum, Amax, Divs, Clamp, Add, Div and Mul, a pass each")
            }
            no => no,
        }
    }

    fn quantize_workspace(&self, _: &QuantizeSpec, max_rows: usize, columns: usize) -> u64 {
        // All rows may have one scale, of no rows too.
        let (all, each) = ([max_rows, columns], [max_rows.max(1), 1]);
        let floats = room_of(&all).saturating_add(bytes(DType::F32, &all));
        floats.saturating_add(room_of(&each)).saturating_add(2 * bytes(DType::F32, &each))
    }

    fn quantize(&self, stream: &mut AscendStream, args: Checked<QuantizeArgs<'_, Self>>) -> Result<()> {
        self.quantize_supports(args.spec).require("quantize", self, args.spec)?;
        let QuantizeArgs { spec, x, out, .. } = &*args;
        let dims = [x.dims()[0], x.dims()[1]];
        let workspace = self.quantize_workspace(spec, dims[0], dims[1]);
        let mut room = Room::new(stream.scratch("quantize", workspace)?);
        let scales = Scales::of(spec, dims, &mut room)?;
        if dims.contains(&0) {
            return scales.smallest(stream, spec.scales, out.scales);
        }
        let mut steps = Steps::new("quantize", &mut room, x, &dims)?;
        steps.widen(stream)?;
        if let Some(factors) = out.smoothing {
            steps.step(stream, &[("smoothing", factors)], |cann, x, out| cann.div(x, factors, out))?;
        }
        // They are read again when their scale is known.
        let floats = if spec.input == DType::F32 && out.smoothing.is_none() {
            (*x).clone()
        } else {
            let floats = room.tensor("quantize", DType::F32, &dims)?;
            steps.store(stream, &floats)?;
            floats
        };
        if spec.scales == ScaleSource::Dynamic {
            scales.find(stream, &mut steps, &mut room, out.scales)?;
        }
        scales.invert(stream, out.scales)?;
        let (floats, inverse) = (&floats, &scales.inverse);
        steps.step(stream, &[], |cann, _, out| cann.mul(floats, inverse, out))?;
        steps.round(stream, (0.0, -127.0, 127.0), ("q", out.q))
    }

    fn rotate_supports(&self, _: &RotateSpec) -> Support {
        not_yet()
    }

    fn rotate(&self, _: &mut AscendStream, args: Checked<RotateArgs<'_, Self>>) -> Result<()> {
        refused("rotate", args.spec)
    }
}

/// The scales of a call, `[rows, 1]` or `[1, 1]`.
struct Scales {
    dims: [usize; 2],
    /// Along which the greatest is looked for.
    along: &'static [i64],
    /// 1 / scale.
    inverse: Tensor<Ascend>,
    nans: Tensor<Ascend>,
}

impl Scales {
    fn of(spec: &QuantizeSpec, [rows, _]: [usize; 2], room: &mut Room) -> Result<Self> {
        let one = spec.output.is_per_tensor();
        let (dims, along): (_, &'static [i64]) = if one { ([1, 1], &[0, 1]) } else { ([rows, 1], &[1]) };
        let mut piece = || room.tensor("quantize", DType::F32, &dims);
        Ok(Scales { dims, along, inverse: piece()?, nans: piece()? })
    }

    /// The caller's, in this shape.
    fn view(&self, scales: &Tensor<Ascend>) -> Result<Tensor<Ascend>> {
        scales.split_last(1)
    }

    /// `max(max|x| / 127, 2^-126)`; NaN where one of them is no number or infinite.
    fn find(
        &self,
        stream: &mut AscendStream,
        steps: &mut Steps,
        room: &mut Room,
        scales: &Tensor<Ascend>,
    ) -> Result<()> {
        steps.each(stream, Elementwise::Abs)?;
        // What becomes of NaN in a maximum CANN's document does not say.
        steps.each(stream, Elementwise::NanToNum(f32::INFINITY, f32::INFINITY, f32::INFINITY))?;
        let mut greatest = Steps::new("quantize", room, steps.now(), &self.dims)?;
        greatest.step(stream, &[], |cann, x, out| cann.amax(x, self.along, out))?;
        // An infinity less itself is NaN.
        let most = greatest.now().clone();
        stream.run("quantize", &[], |cann| cann.add(&most, -1.0, &most, &self.nans))?;
        greatest.each(stream, Elementwise::Divs(127.0))?;
        greatest.each(stream, Elementwise::Clamp(f32::MIN_POSITIVE, f32::MAX))?;
        greatest.add(stream, "x", 1.0, &self.nans)?;
        greatest.store(stream, &self.view(scales)?)
    }

    /// Of no elements at all.
    fn smallest(
        &self,
        stream: &mut AscendStream,
        source: ScaleSource,
        scales: &Tensor<Ascend>,
    ) -> Result<()> {
        let count = scales.shape().elements();
        if count == 0 || source == ScaleSource::Static {
            return Ok(());
        }
        let (ones, least) = (stream.ones(count)?, Elementwise::Muls(f32::MIN_POSITIVE));
        stream.run("quantize", &[("scales", scales)], |cann| cann.elementwise(least, &ones, scales))
    }

    fn invert(&self, stream: &mut AscendStream, scales: &Tensor<Ascend>) -> Result<()> {
        let (one, scales) = (stream.ones(1)?, self.view(scales)?);
        stream.run("quantize", &[("scales", &scales)], |cann| cann.div(&one, &scales, &self.inverse))
    }
}
