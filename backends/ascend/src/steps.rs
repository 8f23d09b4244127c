//! Operators one after the other over F32: each reads what the one before it wrote, in two pieces of memory that take turns.
//! CANN's documents do not say that an output may be an input as well.

use halite_hal::{DType, Result, Tensor};
use halite_kernels::activation::Activation;

use crate::{
    copy,
    device::Ascend,
    room::{Room, bytes},
    runtime::{Elementwise, Operation, Operator, Runtime, RuntimeError},
    stream::AscendStream,
    support::unsupported,
};

/// Added and taken away again it rounds to whole numbers, ties to even, up to 2^22.
const ROUND: f32 = 12_582_912.0;
/// What minus infinity becomes before a function whose limit there is 0 and has been reached.
const FAR_BELOW: f32 = -200.0;

/// What has been computed, and where the next result goes.
pub(crate) struct Steps {
    operator: &'static str,
    now: Tensor<Ascend>,
    pieces: [Tensor<Ascend>; 2],
    turn: usize,
}

/// Memory for [`Steps`] of so large results.
pub(crate) fn room_of(dims: &[usize]) -> u64 {
    bytes(DType::F32, dims).saturating_mul(2)
}

impl Steps {
    /// From `x` on, which is only read.
    pub(crate) fn new(
        operator: &'static str,
        room: &mut Room,
        x: &Tensor<Ascend>,
        dims: &[usize],
    ) -> Result<Self> {
        let pieces = [room.tensor(operator, DType::F32, dims)?, room.tensor(operator, DType::F32, dims)?];
        Ok(Steps { operator, now: x.clone(), pieces, turn: 0 })
    }

    /// What has been computed.
    pub(crate) fn now(&self) -> &Tensor<Ascend> {
        &self.now
    }

    /// Results are of this shape from now on; it has no more elements.
    pub(crate) fn shape(&mut self, dims: &[usize]) -> Result<()> {
        for piece in &mut self.pieces {
            *piece = Tensor::from_buffer(piece.buffer().clone(), piece.offset(), DType::F32, dims)?;
        }
        Ok(())
    }

    /// One operator.
    pub(crate) fn step(
        &mut self,
        stream: &mut AscendStream,
        tensors: &[(&'static str, &Tensor<Ascend>)],
        plan: impl FnOnce(
            &Runtime,
            &Tensor<Ascend>,
            &Tensor<Ascend>,
        ) -> std::result::Result<Operation, RuntimeError>,
    ) -> Result<()> {
        let to = &self.pieces[self.turn];
        let mut all = vec![("x", &self.now)];
        all.extend(tensors);
        stream.run(self.operator, &all, |cann| plan(cann, &self.now, to))?;
        self.now = to.clone();
        self.turn = 1 - self.turn;
        Ok(())
    }

    /// A function of each element.
    pub(crate) fn each(&mut self, stream: &mut AscendStream, of: Elementwise) -> Result<()> {
        self.step(stream, &[], |cann, x, out| cann.elementwise(of, x, out))
    }

    /// In F32, if it is not yet.
    pub(crate) fn widen(&mut self, stream: &mut AscendStream) -> Result<()> {
        if self.now.dtype() == DType::F32 {
            return Ok(());
        }
        self.step(stream, &[], |cann, x, out| cann.cast(x, out))
    }

    /// Plus a tensor; dimensions of 1 are repeated.
    pub(crate) fn add(
        &mut self,
        stream: &mut AscendStream,
        name: &'static str,
        factor: f32,
        other: &Tensor<Ascend>,
    ) -> Result<()> {
        self.step(stream, &[(name, other)], |cann, x, out| cann.add(x, factor, other, out))
    }

    /// Times a tensor; dimensions of 1 are repeated.
    pub(crate) fn mul(
        &mut self,
        stream: &mut AscendStream,
        name: &'static str,
        other: &Tensor<Ascend>,
    ) -> Result<()> {
        self.step(stream, &[(name, other)], |cann, x, out| cann.mul(x, other, out))
    }

    /// One of [`has_function`]; at minus infinity it is 0, as the contract has it, whatever CANN says.
    pub(crate) fn function(&mut self, stream: &mut AscendStream, activation: Activation) -> Result<()> {
        let Some((of, _)) = function(activation) else {
            return Err(unsupported(self.operator, NO_FUNCTION, &activation));
        };
        self.each(stream, Elementwise::NanToNum(f32::NAN, f32::INFINITY, FAR_BELOW))?;
        self.each(stream, of)
    }

    /// `cap · tanh(x / cap)`.
    pub(crate) fn soft_cap(&mut self, stream: &mut AscendStream, cap: f32) -> Result<()> {
        self.each(stream, Elementwise::Divs(cap))?;
        self.each(stream, Elementwise::Tanh)?;
        self.each(stream, Elementwise::Muls(cap))
    }

    /// Whole numbers from `least` to `most`, ties to even, `zero` added to them; NaN becomes `zero`. In integers of the type of
    /// `out`.
    pub(crate) fn round(
        &mut self,
        stream: &mut AscendStream,
        (zero, least, most): (f32, f32, f32),
        (name, out): (&'static str, &Tensor<Ascend>),
    ) -> Result<()> {
        let one = stream.ones(1)?;
        // Beyond this everything saturates.
        let far = 1024.0;
        self.each(stream, Elementwise::NanToNum(0.0, far, -far))?;
        self.each(stream, Elementwise::Clamp(-far, far))?;
        self.add(stream, "x", ROUND, &one)?;
        self.add(stream, "x", zero - ROUND, &one)?;
        self.each(stream, Elementwise::Clamp(least, most))?;
        self.step(stream, &[(name, out)], |cann, x, _| cann.cast(x, out))
    }

    /// To its place, in the type of that.
    pub(crate) fn store(&self, stream: &mut AscendStream, out: &Tensor<Ascend>) -> Result<()> {
        if out.dtype() == self.now.dtype() {
            return copy::elements(stream, &self.now, out);
        }
        stream.run(self.operator, &[("out", out)], |cann| cann.cast(&self.now, out))
    }
}

/// Why others are refused.
pub(crate) const NO_FUNCTION: &str = "of functions only SiLU and GELU by the error function and by tanh";

/// What a function is made of.
fn function(activation: Activation) -> Option<(Elementwise, Operator)> {
    match activation {
        Activation::Silu => Some((Elementwise::Silu, Operator::Silu)),
        Activation::GeluErf => Some((Elementwise::Gelu { tanh: false }, Operator::GeluV2)),
        Activation::GeluTanh => Some((Elementwise::Gelu { tanh: true }, Operator::GeluV2)),
        _ => None,
    }
}

/// Whether CANN has a function, and by which operator.
pub(crate) fn has_function(activation: Activation) -> Option<Operator> {
    function(activation).map(|(_, operator)| operator)
}
