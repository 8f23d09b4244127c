//! Low-rank adapters of a linear layer (LoRA, Hu et al. 2021, arXiv:2106.09685), several of them in one batch
//! (Punica, Chen et al. 2023, arXiv:2310.18547; S-LoRA, Sheng et al. 2023, arXiv:2311.03285).
//!
//! Row `t` with adapter `i`: `out[t] += scale_i · ((x[t] · A_iᵀ) · B_iᵀ)`, with `A_i` `[rank_i, in_features]` and `B_i`
//! `[out_features, rank_i]`. Both products are in F32; `scale · product` and the sum round by themselves, then the result
//! is rounded to the output's type. A row without an adapter keeps its bits.
//!
//! Which row has which adapter is the same for all layers of a step: it is planned and updated like positions are.

use super::{ActivationFormat, Linear, LinearSpec};
use crate::{Checked, Support, check::Check};
use halite_hal::{DType, Result, Tensor};

const CHECK: Check = Check("lora");

/// Which adapters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LoraSpec {
    /// Adapters of a step: indices are below this.
    pub max_adapters: usize,
    /// The largest rank.
    pub max_rank: usize,
    /// Type of the activations.
    pub activations: DType,
    /// Type of the output.
    pub output: DType,
}

impl LoraSpec {
    /// F32 activations and output.
    pub fn new(max_adapters: usize, max_rank: usize) -> Self {
        LoraSpec { max_adapters, max_rank, activations: DType::F32, output: DType::F32 }
    }

    /// Activations of another floating-point type.
    pub fn with_activations(mut self, dtype: DType) -> Self {
        self.activations = dtype;
        self
    }

    /// Another floating-point output type.
    pub fn with_output(mut self, output: DType) -> Self {
        self.output = output;
        self
    }

    /// Checks that the specification makes sense: a backend calls it before it plans.
    ///
    /// # Errors
    /// No room for adapters or ranks, more adapters than `i32` counts, or types that are no floats.
    pub fn check(&self) -> Result<()> {
        CHECK.positive("max_adapters", self.max_adapters)?;
        CHECK.limit("max_adapters", self.max_adapters, i32::MAX as usize)?;
        CHECK.positive("max_rank", self.max_rank)?;
        CHECK.that(self.activations.is_float(), "activations", "a floating-point type", self.activations)?;
        CHECK.that(self.output.is_float(), "output", "a floating-point type", self.output)
    }
}

/// What a backend's plan tells of itself.
pub trait LoraPlan {
    /// What it was planned for.
    fn spec(&self) -> &LoraSpec;
    /// The largest number of rows of a step.
    fn max_rows(&self) -> usize;
    /// Rows of the current step.
    fn rows(&self) -> usize;
    /// The largest adapter index of the current step, if any row has one.
    fn last_adapter(&self) -> Option<usize>;

    /// What a step is checked against.
    fn limits(&self) -> LoraLimits {
        LoraLimits { max_rows: self.max_rows(), max_adapters: self.spec().max_adapters }
    }
}

/// What a [`LoraStep`] was checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoraLimits {
    /// The largest number of rows of a step.
    pub max_rows: usize,
    /// Adapter indices are below this.
    pub max_adapters: usize,
}

/// The adapter of each row of a step.
#[derive(Clone, Copy, Debug)]
pub struct LoraStep<'a> {
    /// `[rows]`; -1 for a row without one.
    pub adapters: &'a [i32],
}

impl LoraStep<'_> {
    /// Checks the indices against the plan.
    ///
    /// # Errors
    /// More rows than planned, or an index beyond the spec's or below -1.
    pub fn check(self, plan: &impl LoraPlan) -> Result<Checked<Self, LoraLimits>> {
        CHECK.limit("rows", self.adapters.len(), plan.max_rows())?;
        let limit = plan.spec().max_adapters;
        let beyond =
            |&&adapter: &&i32| adapter != -1 && usize::try_from(adapter).map_or(true, |i| i >= limit);
        if let Some(adapter) = self.adapters.iter().find(beyond) {
            let expected = format!("-1 or indices below {limit}");
            return Err(CHECK.wrong("adapters", expected, adapter.to_string()));
        }
        Ok(Checked::with_context(self, plan.limits()))
    }
}

/// One adapter of one layer. Its matrices are packed as linear layers, of any weight format that takes floats.
#[derive(Debug)]
pub struct LoraAdapter<'a, B: Linear> {
    /// A: `in_features` to its rank; activations of the spec's type, F32 output.
    pub down: &'a B::Packed,
    /// B: its rank to `out_features`; F32 activations, output of the spec's type.
    pub up: &'a B::Packed,
    /// Usually alpha over rank; finite.
    pub scale: f32,
}

impl<B: Linear> Clone for LoraAdapter<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Linear> Copy for LoraAdapter<'_, B> {}

/// One call, in place.
#[derive(Debug)]
pub struct LoraArgs<'a, B: Lora> {
    /// The plan, as last updated.
    pub plan: &'a B::LoraPlan,
    /// `[rows, in_features]` of the spec's type; rows may be strided.
    pub x: &'a Tensor<B>,
    /// The layer's adapters by index; none where an adapter leaves this layer alone.
    pub adapters: &'a [Option<LoraAdapter<'a, B>>],
    /// `[rows, out_features]` of the spec's type, added to; rows may be strided.
    pub out: &'a Tensor<B>,
}

impl<B: Lora> LoraArgs<'_, B> {
    /// Checks shapes, types and every adapter.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) or [`Error::Limit`](crate::Error::Limit) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let (spec, rows) = (self.plan.spec(), self.plan.rows());
        CHECK.rows("x", self.x, 2)?;
        CHECK.rows("out", self.out, 2)?;
        let (inputs, outputs) = (self.x.dims()[1], self.out.dims()[1]);
        CHECK.tensor("x", self.x, spec.activations, &[rows, inputs])?;
        CHECK.tensor("out", self.out, spec.output, &[rows, outputs])?;
        let needed = self.plan.last_adapter().map_or(0, |last| last + 1);
        let enough = self.adapters.len() >= needed;
        CHECK.that(enough, "adapters", format!("at least {needed} adapters"), self.adapters.len())?;
        for adapter in self.adapters.iter().flatten() {
            let (down, up) = (adapter.down.as_ref(), adapter.up.as_ref());
            matrix("down", down, inputs, down.out_features, spec.activations, DType::F32)?;
            matrix("up", up, down.out_features, outputs, DType::F32, spec.output)?;
            CHECK.limit("rank", down.out_features, spec.max_rank)?;
            CHECK.that(adapter.scale.is_finite(), "scale", "a finite number", adapter.scale)?;
        }
        CHECK.disjoint("out", self.out, &[("x", Some(self.x))])?;
        Ok(Checked::new(self))
    }
}

/// One of an adapter's matrices.
fn matrix(
    argument: &'static str,
    spec: &LinearSpec,
    inputs: usize,
    outputs: usize,
    activations: DType,
    output: DType,
) -> Result<()> {
    let fits = (spec.in_features, spec.out_features) == (inputs, outputs)
        && spec.activations == ActivationFormat::Float(activations)
        && spec.output == output
        && spec.gate.is_none();
    let expected = format!("{activations} [{inputs}] to {output} [{outputs}] without a gate");
    CHECK.that(fits, argument, expected, spec)
}

/// Linear layers with low-rank adapters.
pub trait Lora: Linear {
    /// A step's adapters at stable addresses.
    type LoraPlan: LoraPlan + std::fmt::Debug + Send + 'static;

    /// Whether and how the backend runs `spec`.
    fn lora_supports(&self, spec: &LoraSpec) -> Support;

    /// Plans steps of up to `max_rows` rows: allocates, once.
    ///
    /// # Errors
    /// A spec that makes no sense or is not supported, or no memory.
    fn lora_plan(&self, spec: &LoraSpec, max_rows: usize) -> Result<Self::LoraPlan>;

    /// Uploads a step's adapter indices: once a step.
    ///
    /// # Errors
    /// The device's.
    fn lora_update(
        &self,
        stream: &mut Self::Stream,
        plan: &mut Self::LoraPlan,
        step: &Checked<LoraStep<'_>, LoraLimits>,
    ) -> Result<()>;

    /// Scratch bytes of a call with these adapters, exact, or a bound where a vendor decides.
    fn lora_workspace(&self, plan: &Self::LoraPlan, adapters: &[Option<LoraAdapter<'_, Self>>]) -> u64;

    /// Adds what the adapters give.
    ///
    /// # Errors
    /// The device's.
    fn lora(&self, stream: &mut Self::Stream, args: Checked<LoraArgs<'_, Self>>) -> Result<()>;
}
