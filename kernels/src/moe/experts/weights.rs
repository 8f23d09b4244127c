//! Packed weights, and what rows are quantised with.

use super::{CHECK, FeedForward};
use crate::{
    check::Named,
    moe::Moe,
    quantize::{QuantizeSpec, ScaleSource},
};
use halite_hal::{DType, Device, Result, Tensor};

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
    /// What the rows of the first layer are quantised with.
    pub gate_up_inputs: LayerInputs<'a, B>,
    /// What the rows of the second layer are quantised with.
    pub down_inputs: LayerInputs<'a, B>,
}

/// What each expert's rows are quantised with before a layer, beside themselves.
#[derive(Debug)]
#[non_exhaustive]
pub struct LayerInputs<'a, D: Device> {
    /// F32 `[experts]`, where scales are static.
    pub scales: Option<&'a Tensor<D>>,
    /// I32 `[experts]`, where scales are static and the format has zero points.
    pub zero_points: Option<&'a Tensor<D>>,
    /// I32 `[experts, columns]`, where the layer has outlier columns: those that each expert's weights were packed with,
    /// ascending.
    pub outlier_columns: Option<&'a Tensor<D>>,
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
impl<D: Device> Clone for LayerInputs<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Device> Copy for LayerInputs<'_, D> {}

impl<D: Device> Default for LayerInputs<'_, D> {
    fn default() -> Self {
        LayerInputs { scales: None, zero_points: None, outlier_columns: None }
    }
}

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
        let (gate_up_inputs, down_inputs) = (LayerInputs::default(), LayerInputs::default());
        ExpertWeights { gate_up, gate_up_bias: None, down, down_bias: None, gate_up_inputs, down_inputs }
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

    /// With what the rows of the first layers are quantised with.
    pub fn with_gate_up_inputs(mut self, inputs: LayerInputs<'a, B>) -> Self {
        self.gate_up_inputs = inputs;
        self
    }

    /// With what the rows of the second layers are quantised with.
    pub fn with_down_inputs(mut self, inputs: LayerInputs<'a, B>) -> Self {
        self.down_inputs = inputs;
        self
    }

    pub(super) fn check(&self, network: &FeedForward, count: usize, name: &'static str) -> Result<()> {
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
        // The type of the rows changes nothing here.
        self.gate_up_inputs.check("gate_up_inputs", network.gate_up_quantize(DType::F32), count)?;
        self.down_inputs.check("down_inputs", network.down_quantize(), count)
    }

    /// Biases and what rows are quantised with.
    pub(super) fn tensors(&self) -> impl Iterator<Item = Named<'a, B>> {
        let of = |name, inputs: LayerInputs<'a, B>| {
            [inputs.scales, inputs.zero_points, inputs.outlier_columns].map(|tensor| (name, tensor))
        };
        [("gate_up_bias", self.gate_up_bias), ("down_bias", self.down_bias)]
            .into_iter()
            .chain(of("gate_up_inputs", self.gate_up_inputs))
            .chain(of("down_inputs", self.down_inputs))
    }
}

impl<'a, D: Device> LayerInputs<'a, D> {
    /// With static scales.
    pub fn with_scales(mut self, scales: &'a Tensor<D>) -> Self {
        self.scales = Some(scales);
        self
    }

    /// With the zero points of static scales.
    pub fn with_zero_points(mut self, zero_points: &'a Tensor<D>) -> Self {
        self.zero_points = Some(zero_points);
        self
    }

    /// With the columns that are kept in float.
    pub fn with_outlier_columns(mut self, columns: &'a Tensor<D>) -> Self {
        self.outlier_columns = Some(columns);
        self
    }

    fn check(&self, name: &'static str, quantize: Option<QuantizeSpec>, count: usize) -> Result<()> {
        let given = quantize.as_ref().is_some_and(|spec| spec.scales == ScaleSource::Static);
        let zeros = quantize.as_ref().is_some_and(|spec| given && spec.output.has_zero_points());
        let columns = quantize.as_ref().map_or(0, |spec| spec.outlier_columns);
        for (what, tensor, expected, dtype, dims) in [
            ("scales", self.scales, given, DType::F32, &[count][..]),
            ("zero points", self.zero_points, zeros, DType::I32, &[count]),
            ("outlier columns", self.outlier_columns, columns > 0, DType::I32, &[count, columns]),
        ] {
            let some = |there| if there { what.to_owned() } else { format!("no {what}") };
            let text = match &quantize {
                Some(spec) => format!("{} for rows quantised by {spec:?}", some(expected)),
                None => format!("{} for rows that are not quantised here", some(expected)),
            };
            CHECK.holds(tensor.is_some() == expected, name, text, some(tensor.is_some()))?;
            if let Some(tensor) = tensor {
                CHECK.tensor(name, tensor, dtype, dims)?;
            }
        }
        Ok(())
    }
}
