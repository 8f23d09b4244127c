//! A plan: a step's cosines and sines on the device, as CANN's operator reads them.

use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    Checked,
    rope::{CosSin, Direction, PositionLimits, Positions, RopePlan, RopeSpec, Turns},
};

use crate::{device::Ascend, stream::AscendStream};

/// A step's cosines and sines.
#[derive(Debug)]
pub struct AscendRopePlan {
    spec: RopeSpec,
    tokens: usize,
    turns: Turns,
    /// F32 `[3, max_tokens, 1, rotary_dim]`, both halves the same: cosines, sines, and sines of the way back.
    tables: Tensor<Ascend>,
}

impl RopePlan for AscendRopePlan {
    fn spec(&self) -> &RopeSpec {
        &self.spec
    }

    fn max_tokens(&self) -> usize {
        self.tables.dims()[1]
    }

    fn tokens(&self) -> usize {
        self.tokens
    }
}

impl AscendRopePlan {
    /// A plan without a step. The spec is one that the backend supports.
    pub(super) fn new(device: &Ascend, spec: &RopeSpec, max_tokens: usize) -> Result<Self> {
        let tables = Tensor::new(device, DType::F32, &[3, max_tokens, 1, spec.rotary_dim])?;
        Ok(AscendRopePlan { spec: spec.clone(), tokens: 0, turns: Turns::new(spec), tables })
    }

    pub(super) fn update(
        &mut self,
        stream: &mut AscendStream,
        positions: &Checked<Positions<'_>, PositionLimits>,
    ) -> Result<()> {
        positions.checked_against("rope", &self.limits())?;
        let by_token = self.turns.tables(positions.positions);
        self.upload(stream, &by_token)
    }

    pub(super) fn update_cos_sin(
        &mut self,
        stream: &mut AscendStream,
        tables: &Checked<CosSin<'_>, PositionLimits>,
    ) -> Result<()> {
        tables.checked_against("rope", &self.limits())?;
        let by_token: Vec<f32> = tables.by_token(self.spec.rotary_dim / 2).collect();
        self.upload(stream, &by_token)
    }

    /// Cosines and sines `[tokens, 2, pairs]`. Where that fails, the plan has no step.
    fn upload(&mut self, stream: &mut AscendStream, by_token: &[f32]) -> Result<()> {
        self.tokens = 0;
        let pairs = self.spec.rotary_dim / 2;
        let both = |half: usize, sign: f32| -> Vec<f32> {
            let halves = by_token.chunks_exact(pairs).skip(half).step_by(2);
            halves.flat_map(|values| [values, values]).flatten().map(|value| sign * value).collect()
        };
        for (place, (half, sign)) in [(0, 1.0), (1, 1.0), (1, -1.0)].into_iter().enumerate() {
            let table = self.tables.narrow(0, place..place + 1)?;
            stream.stage(table.buffer(), table.offset(), bytemuck::cast_slice(&both(half, sign)))?;
        }
        self.tokens = by_token.len() / (2 * pairs);
        Ok(())
    }

    /// Cosines and sines of a way, F32 `[tokens, 1, rotary_dim]` each. There is at least one token.
    pub(super) fn cos_sin(&self, direction: Direction) -> Result<[Tensor<Ascend>; 2]> {
        let sines = if direction == Direction::Inverse { 2 } else { 1 };
        let of = |place: usize| {
            let table = self.tables.narrow(0, place..place + 1)?.narrow(1, 0..self.tokens)?;
            table.reshape(&[self.tokens, 1, self.spec.rotary_dim])
        };
        Ok([of(0)?, of(sines)?])
    }
}
