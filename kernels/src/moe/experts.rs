//! Experts as one operator: from tokens, ids and weights to the layer's result.
//!
//! `out[t] = Σ_s weights[t, s] · E[ids[t, s]](x[t]) + g[t] · S(x[t]) + residual[t]`, where an expert `E` is
//! `down(glu(gate_up(x)))` with biases after either product, `S` is the shared expert that every token goes to, and `g`
//! is 1 or the sigmoid of the token's product with a vector (Qwen2-MoE, arXiv:2407.10671). Slots are added in ascending
//! order, as [`CombineArgs`](super::CombineArgs) does; then the shared expert's result, then the residual.
//!
//! With [`RouterWeightOn::Input`] it is `E(weights[t, s] · x[t])`, and the sum has no weights (Llama 4). Only local
//! experts contribute: summed over ranks that split the experts, the results are the whole layer's.
//!
//! Experts are weights of linear layers in any format, packed one by one by [`FeedForward::gate_up`] and
//! [`FeedForward::down`]. Before an INT8 product, rows are quantised per token as [`quantize`](crate::quantize) does.

use super::{LocalExperts, Moe, dispatch::is_row_format};
use crate::{
    Checked,
    activation::{Function, GateLayout, Glu},
    check::{Check, Named},
    linear::{ActivationFormat, LinearSpec},
};
use halite_hal::{DType, Result, Tensor};

const CHECK: Check = Check("moe");

/// A feed-forward network: `down(function(gate_up(x)))`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FeedForward {
    /// The first layer. Where it is gated, SiLU and GELU happen inside of the product.
    pub gate_up: LinearSpec,
    /// Between the layers, where the first is not gated.
    pub function: Option<Function>,
    /// The second layer.
    pub down: LinearSpec,
}

impl FeedForward {
    /// A gated first layer and a second one.
    pub fn new(gate_up: LinearSpec, down: LinearSpec) -> Self {
        FeedForward { gate_up, function: None, down }
    }

    /// A first layer without a gate, of twice as many columns as `down` takes, and a gated unit over them.
    pub fn with_glu(mut self, glu: Glu, layout: GateLayout) -> Self {
        self.function = Some(Function::Gated { glu, layout });
        self
    }

    /// A first layer without a gate and any function over its columns.
    pub fn with_function(mut self, function: Function) -> Self {
        self.function = Some(function);
        self
    }

    /// Columns of input and result.
    pub fn hidden(&self) -> usize {
        self.gate_up.in_features
    }

    /// Columns between the two layers.
    pub fn intermediate(&self) -> usize {
        self.down.in_features
    }

    fn check(&self) -> Result<()> {
        let FeedForward { gate_up, function, down } = self;
        gate_up.check()?;
        down.check()?;
        CHECK.that(
            gate_up.gate.is_some() != function.is_some(),
            "function",
            "one of a gated first layer and a function after it",
            (gate_up.gate, function),
        )?;
        if let Some(Function::Gated { glu, .. }) = function {
            glu.check(CHECK)?;
        }
        let width = match function {
            Some(Function::Gated { .. }) => down.in_features.saturating_mul(2),
            _ => down.in_features,
        };
        CHECK.that(gate_up.out_features == width, "gate_up", format!("{width} columns"), gate_up)?;
        CHECK.that(gate_up.output.is_float(), "gate_up", "floats as output", gate_up.output)?;
        CHECK.that(down.gate.is_none(), "down", "no gate", down.gate)?;
        CHECK.that(down.output.is_float(), "down", "floats as output", down.output)?;
        let hidden = gate_up.in_features;
        CHECK.that(down.out_features == hidden, "down", format!("{hidden} columns"), down)?;
        if let ActivationFormat::Float(dtype) = down.activations {
            let expected = format!("activations of {}, which `gate_up` gives", gate_up.output);
            CHECK.that(dtype == gate_up.output, "down", expected, dtype)?;
        }
        for (name, format) in [("gate_up", gate_up.activations), ("down", down.activations)] {
            CHECK.that(is_row_format(format), name, "activations of floats or INT8 per token", format)?;
        }
        for (name, layer) in [("gate_up", gate_up), ("down", down)] {
            CHECK.that(layer.outliers.is_none(), name, "no outlier columns", layer.outliers)?;
        }
        Ok(())
    }
}

/// What the router's weights multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RouterWeightOn {
    /// What the experts give.
    Output,
    /// What the experts get (Llama 4).
    Input,
}

/// Which experts.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ExpertsSpec {
    /// The experts served.
    pub local: LocalExperts,
    /// Experts a token.
    pub top_k: usize,
    /// Each of them.
    pub expert: FeedForward,
    /// The expert that every token goes to.
    pub shared: Option<FeedForward>,
    /// What the router's weights multiply.
    pub router_weight: RouterWeightOn,
    /// Type of `x` and `out`.
    pub dtype: DType,
}

impl ExpertsSpec {
    /// `top_k` experts a token, F32.
    pub fn new(local: LocalExperts, top_k: usize, expert: FeedForward) -> Self {
        let router_weight = RouterWeightOn::Output;
        ExpertsSpec { local, top_k, expert, shared: None, router_weight, dtype: DType::F32 }
    }

    /// A shared expert.
    pub fn with_shared(mut self, shared: FeedForward) -> Self {
        self.shared = Some(shared);
        self
    }

    /// The router's weights elsewhere.
    pub fn with_router_weight(mut self, router_weight: RouterWeightOn) -> Self {
        self.router_weight = router_weight;
        self
    }

    /// Another type of `x` and `out`.
    pub fn with_dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }

    /// Checks that the specification makes sense: a backend calls it before it plans.
    ///
    /// # Errors
    /// Layers that do not fit each other, or a type that is no float.
    pub fn check(&self) -> Result<()> {
        self.local.check(CHECK)?;
        CHECK.positive("top_k", self.top_k)?;
        CHECK.that(self.dtype.is_float(), "dtype", "a floating-point type", self.dtype)?;
        self.expert.check()?;
        let hidden = self.expert.hidden();
        if let Some(shared) = &self.shared {
            shared.check()?;
            CHECK.that(shared.hidden() == hidden, "shared", format!("{hidden} columns"), shared.hidden())?;
            let output = shared.down.output;
            CHECK.that(output == self.dtype, "shared", format!("{} as output", self.dtype), output)?;
        }
        for network in [Some(&self.expert), self.shared.as_ref()].into_iter().flatten() {
            if let ActivationFormat::Float(dtype) = network.gate_up.activations {
                CHECK.that(
                    dtype == self.dtype,
                    "gate_up",
                    format!("activations of {}", self.dtype),
                    dtype,
                )?;
            }
        }
        Ok(())
    }

    /// Refuses a number of tokens whose rows cannot be counted.
    ///
    /// # Errors
    /// More than 2^31 - 1 rows of experts, or more bytes of rows than any memory has.
    pub fn check_tokens(&self, max_tokens: usize) -> Result<()> {
        let rows = max_tokens.saturating_mul(self.top_k);
        CHECK.limit("tokens * top_k", rows, i32::MAX as usize)?;
        let widest = self.expert.hidden().max(self.expert.gate_up.out_features);
        let bytes = rows.checked_mul(widest).and_then(|elements| elements.checked_mul(4));
        CHECK.limit("bytes of rows", bytes.unwrap_or(usize::MAX), i64::MAX as usize)
    }
}

/// What a backend's plan tells of itself: memory for up to so many tokens. Layers of one spec share it.
pub trait MoePlan {
    /// What it was planned for.
    fn spec(&self) -> &ExpertsSpec;
    /// The largest number of tokens.
    fn max_tokens(&self) -> usize;
}

/// Packed weights of experts.
#[derive(Debug)]
#[non_exhaustive]
pub struct ExpertWeights<'a, B: Moe> {
    /// The first layer of each expert.
    pub gate_up: &'a [B::Packed],
    /// F32 `[experts, weight_rows]`.
    pub gate_up_bias: Option<&'a Tensor<B>>,
    /// The second layer of each expert.
    pub down: &'a [B::Packed],
    /// F32 `[experts, hidden]`.
    pub down_bias: Option<&'a Tensor<B>>,
}

/// Packed weights of the shared expert.
#[derive(Debug)]
#[non_exhaustive]
pub struct SharedWeights<'a, B: Moe> {
    /// Its layers, as experts of which there is one.
    pub expert: ExpertWeights<'a, B>,
    /// F32 `[hidden]`, where a sigmoid decides how much of it a token gets.
    pub gate: Option<&'a Tensor<B>>,
}

// Handles; derived, these would ask it of the device too.
impl<B: Moe> Clone for ExpertWeights<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Moe> Copy for ExpertWeights<'_, B> {}

impl<B: Moe> Clone for SharedWeights<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Moe> Copy for SharedWeights<'_, B> {}

/// One call.
#[derive(Clone, Debug)]
pub struct ExpertsArgs<'a, B: Moe> {
    /// The plan.
    pub plan: &'a B::MoePlan,
    /// `[tokens, hidden]`.
    pub x: &'a Tensor<B>,
    /// I32 `[tokens, top_k]`: ids of all experts, local or not.
    pub ids: &'a Tensor<B>,
    /// F32 `[tokens, top_k]`.
    pub weights: &'a Tensor<B>,
    /// The local experts.
    pub experts: ExpertWeights<'a, B>,
    /// The shared expert, where the spec has one.
    pub shared: Option<SharedWeights<'a, B>>,
    /// `[tokens, hidden]`, added in the end; apart from `out`.
    pub residual: Option<&'a Tensor<B>>,
    /// `[tokens, hidden]`.
    pub out: &'a Tensor<B>,
}

impl<B: Moe> ExpertsArgs<'_, B> {
    /// Checks weights, shapes and types against the plan.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument; more tokens than planned.
    pub fn check(self) -> Result<Checked<Self>> {
        let spec = self.plan.spec();
        let tokens = CHECK.rows("x", self.x, 2)?;
        CHECK.limit("tokens", tokens, self.plan.max_tokens())?;
        let rows = [tokens, spec.expert.hidden()];
        CHECK.tensor("x", self.x, spec.dtype, &rows)?;
        CHECK.tensor("ids", self.ids, DType::I32, &[tokens, spec.top_k])?;
        CHECK.tensor("weights", self.weights, DType::F32, &[tokens, spec.top_k])?;
        CHECK.tensor("out", self.out, spec.dtype, &rows)?;
        self.experts.check(&spec.expert, spec.local.count, "experts")?;
        let alike = self.shared.is_some() == spec.shared.is_some();
        CHECK.that(alike, "shared", "a shared expert where the spec has one", self.shared.is_some())?;
        let mut inputs = vec![("x", Some(self.x)), ("ids", Some(self.ids)), ("weights", Some(self.weights))];
        inputs.push(("residual", self.residual));
        inputs.extend(self.experts.biases());
        if let (Some(shared), Some(network)) = (&self.shared, &spec.shared) {
            shared.expert.check(network, 1, "shared")?;
            inputs.extend(shared.expert.biases());
            inputs.push(("shared gate", shared.gate));
            if let Some(gate) = shared.gate {
                CHECK.tensor("shared gate", gate, DType::F32, &rows[1..])?;
            }
        }
        if let Some(residual) = self.residual {
            CHECK.tensor("residual", residual, spec.dtype, &rows)?;
        }
        CHECK.disjoint("out", self.out, &inputs)?;
        Ok(Checked::new(self))
    }
}

impl<'a, B: Moe> SharedWeights<'a, B> {
    /// An expert that every token gets the whole of.
    pub fn new(expert: ExpertWeights<'a, B>) -> Self {
        SharedWeights { expert, gate: None }
    }

    /// With a sigmoid that decides how much of it a token gets.
    pub fn with_gate(mut self, gate: &'a Tensor<B>) -> Self {
        self.gate = Some(gate);
        self
    }
}

impl<'a, B: Moe> ExpertWeights<'a, B> {
    /// The layers of each expert, without biases.
    pub fn new(gate_up: &'a [B::Packed], down: &'a [B::Packed]) -> Self {
        ExpertWeights { gate_up, gate_up_bias: None, down, down_bias: None }
    }

    /// With biases after the first layers.
    pub fn with_gate_up_bias(mut self, bias: &'a Tensor<B>) -> Self {
        self.gate_up_bias = Some(bias);
        self
    }

    /// With biases after the second layers.
    pub fn with_down_bias(mut self, bias: &'a Tensor<B>) -> Self {
        self.down_bias = Some(bias);
        self
    }

    fn check(&self, network: &FeedForward, count: usize, name: &'static str) -> Result<()> {
        for (packed, spec) in [(self.gate_up, &network.gate_up), (self.down, &network.down)] {
            CHECK.that(packed.len() == count, name, format!("weights of {count} experts"), packed.len())?;
            if let Some(other) = packed.iter().map(AsRef::as_ref).find(|other| *other != spec) {
                return Err(CHECK.wrong(name, format!("weights of {spec:?}"), format!("{other:?}")));
            }
        }
        if let Some(bias) = self.gate_up_bias {
            CHECK.tensor("gate_up_bias", bias, DType::F32, &[count, network.gate_up.weight_rows()])?;
        }
        if let Some(bias) = self.down_bias {
            CHECK.tensor("down_bias", bias, DType::F32, &[count, network.hidden()])?;
        }
        Ok(())
    }

    fn biases(&self) -> [Named<'a, B>; 2] {
        [("gate_up_bias", self.gate_up_bias), ("down_bias", self.down_bias)]
    }
}
