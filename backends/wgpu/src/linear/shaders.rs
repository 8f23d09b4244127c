//! Which texts make a kernel: one for how rows are shared out, one for the arithmetic, one for the weights' format.

use crate::{activation::FUNCTIONS, launch::Shader};
use halite_hal::DType;
use halite_kernels::linear::{ActivationFormat, LinearSpec, WeightFormat};

/// The kernels of a pair of formats. All give a row the same bits.
pub(super) struct Kernels {
    pub(super) arithmetic: Arithmetic,
    /// Of few rows, which read each weight once: with activations at any place, and with aligned ones.
    vector: [&'static Shader; 2],
    /// Of many rows, a tile of which meets each weight.
    tile: [&'static Shader; 2],
}

impl Kernels {
    /// The kernel for few rows or many, with activations that begin at multiples of 16 bytes in every row or that do not.
    pub(super) fn shader(&self, few: bool, aligned: bool) -> &'static Shader {
        let shaders = if few { &self.vector } else { &self.tile };
        shaders[usize::from(aligned)]
    }
}

/// What is summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    /// Floats, in segments of K.
    Floats,
    /// Integers, over all of K.
    Whole,
    /// Integers, in steps of K within which no scale changes.
    Steps,
}

impl Arithmetic {
    /// Values of K of a quad, the 16 bytes that are multiplied at once.
    pub(super) fn values(self) -> usize {
        if self == Arithmetic::Floats { 4 } else { 16 }
    }
}

macro_rules! shader {
    ($($part:literal)*) => {{
        static SHADER: Shader = Shader {
            name: "linear",
            source: &[FUNCTIONS, include_str!("panel.wgsl"), include_str!("rows.wgsl"), $(include_str!($part)),*],
        };
        &SHADER
    }};
}

macro_rules! floats {
    ($weights:literal, $ending:literal) => {
        Kernels {
            arithmetic: Arithmetic::Floats,
            vector: [
                floats!("x_floats.wgsl", $weights, $ending, "vector.wgsl"),
                floats!("x_float_quads.wgsl", $weights, $ending, "vector.wgsl"),
            ],
            tile: [
                floats!("x_floats.wgsl", $weights, $ending, "product.wgsl"),
                floats!("x_float_quads.wgsl", $weights, $ending, "product.wgsl"),
            ],
        }
    };
    ($x:literal, $weights:literal, $ending:literal, $kernel:literal) => {
        shader!("floats.wgsl" $x $weights "outliers.wgsl" $ending $kernel)
    };
}

macro_rules! integers {
    ($arithmetic:ident, $sums:literal, $weights:literal, $ending:literal) => {
        Kernels {
            arithmetic: Arithmetic::$arithmetic,
            vector: [
                integers!("x_bytes.wgsl", $sums, $weights, $ending, "vector.wgsl"),
                integers!("x_byte_quads.wgsl", $sums, $weights, $ending, "vector.wgsl"),
            ],
            tile: [
                integers!("x_bytes.wgsl", $sums, $weights, $ending, "product.wgsl"),
                integers!("x_byte_quads.wgsl", $sums, $weights, $ending, "product.wgsl"),
            ],
        }
    };
    ($x:literal, $sums:literal, $weights:literal, $ending:literal, $kernel:literal) => {
        shader!("integers.wgsl" $x $sums $weights "outliers.wgsl" $ending $kernel)
    };
}

/// The kernels of a layer: by the formats of its operands, and by whether the product is added to what there is.
pub(super) fn kernels(spec: &LinearSpec, added: bool) -> Kernels {
    let grouped = matches!(spec.activations, ActivationFormat::Int8PerGroup { .. });
    match (spec.activations.is_quantized(), spec.weights) {
        (false, WeightFormat::F32) if added => floats!("weights_f32.wgsl", "lora.wgsl"),
        (false, WeightFormat::F16 | WeightFormat::Bf16) if added => floats!("weights_half.wgsl", "lora.wgsl"),
        (false, _) if added => floats!("weights_dequantized.wgsl", "lora.wgsl"),
        (false, WeightFormat::F32) => floats!("weights_f32.wgsl", "epilogue.wgsl"),
        (false, WeightFormat::F16 | WeightFormat::Bf16) => floats!("weights_half.wgsl", "epilogue.wgsl"),
        (false, _) => floats!("weights_dequantized.wgsl", "epilogue.wgsl"),
        (true, weights) if weights.is_int4() => {
            integers!(Steps, "steps.wgsl", "weights_int4.wgsl", "epilogue.wgsl")
        }
        (true, weights) if grouped || weights.is_group_wise() => {
            integers!(Steps, "steps.wgsl", "weights_int8.wgsl", "epilogue.wgsl")
        }
        _ if spec.output == DType::I32 => {
            integers!(Whole, "whole.wgsl", "weights_int8.wgsl", "sums.wgsl")
        }
        _ => integers!(Whole, "whole.wgsl", "weights_int8.wgsl", "epilogue.wgsl"),
    }
}
