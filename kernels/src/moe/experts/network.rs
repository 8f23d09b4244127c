//! A feed-forward network: what an expert is.

use super::CHECK;
use crate::{
    activation::{Function, GateLayout, Glu},
    linear::{ActivationFormat, LinearSpec},
    quantize::{QuantizeSpec, ScaleSource},
};
use halite_hal::{DType, Result};

/// A feed-forward network: `down(function(gate_up(x)))`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FeedForward {
    /// The first layer. Where it is gated, SiLU and GELU happen inside of the product.
    pub gate_up: LinearSpec,
    /// Where the scales of its rows come from, and their zero points.
    pub gate_up_scales: ScaleSource,
    /// Between the layers, where the first is not gated.
    pub function: Option<Function>,
    /// The second layer.
    pub down: LinearSpec,
    /// Where the scales of its rows come from, and their zero points.
    pub down_scales: ScaleSource,
}

impl FeedForward {
    /// A gated first layer and a second one, whose rows are quantised by scales of their own where they are.
    pub fn new(gate_up: LinearSpec, down: LinearSpec) -> Self {
        let (gate_up_scales, down_scales) = (ScaleSource::Dynamic, ScaleSource::Dynamic);
        FeedForward { gate_up, gate_up_scales, function: None, down, down_scales }
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

    /// Scales of rows from elsewhere, of the first layer and of the second.
    pub fn with_scales(mut self, gate_up: ScaleSource, down: ScaleSource) -> Self {
        (self.gate_up_scales, self.down_scales) = (gate_up, down);
        self
    }

    /// How rows of `dtype` are quantised for the first layer; none where it takes floats.
    pub fn gate_up_quantize(&self, dtype: DType) -> Option<QuantizeSpec> {
        quantize(&self.gate_up, self.gate_up_scales, dtype)
    }

    /// How rows are quantised for the second layer; none where it takes floats.
    pub fn down_quantize(&self) -> Option<QuantizeSpec> {
        quantize(&self.down, self.down_scales, self.gate_up.output)
    }

    /// Columns of input and result.
    pub fn hidden(&self) -> usize {
        self.gate_up.in_features
    }

    /// Columns between the two layers.
    pub fn intermediate(&self) -> usize {
        self.down.in_features
    }

    /// `dtype` is what rows come in.
    pub(super) fn check(&self, dtype: DType) -> Result<()> {
        let FeedForward { gate_up, function, down, .. } = self;
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
        let layers = [
            ("gate_up", gate_up, self.gate_up_scales, dtype),
            ("down", down, self.down_scales, gate_up.output),
        ];
        for (name, layer, scales, input) in layers {
            check_input(name, layer, scales, input)?;
        }
        Ok(())
    }
}

/// Whether a layer's rows are quantised wherever they are, before they are an expert's: INT8 per token without outlier columns.
pub fn is_sent_as_int8(layer: &LinearSpec) -> bool {
    layer.activations == ActivationFormat::Int8PerToken && layer.outliers.is_none()
}

fn quantize(layer: &LinearSpec, scales: ScaleSource, input: DType) -> Option<QuantizeSpec> {
    layer.activations.is_quantized().then(|| {
        let mut spec = QuantizeSpec::new(input).with_output(layer.activations);
        spec.scales = scales;
        spec.outlier_columns = layer.outliers.map_or(0, |outliers| outliers.columns);
        spec
    })
}

/// Checks that a layer takes rows of `input`, or what they are quantised to.
fn check_input(name: &'static str, layer: &LinearSpec, scales: ScaleSource, input: DType) -> Result<()> {
    if let ActivationFormat::Float(dtype) = layer.activations {
        CHECK.that(dtype == input, name, format!("activations of {input}"), dtype)?;
    }
    let one = matches!(
        layer.activations,
        ActivationFormat::Int8PerTensor | ActivationFormat::AsymmetricPerTensor(_)
    );
    let dynamic = scales == ScaleSource::Dynamic;
    CHECK.that(one || dynamic, name, "one scale for all rows where it is static", layer.activations)?;
    match layer.outliers {
        Some(outliers) => {
            let expected = format!("outliers of {input}, as the rows they are taken from");
            CHECK.that(outliers.dtype == input, name, expected, outliers.dtype)
        }
        None => Ok(()),
    }
}
