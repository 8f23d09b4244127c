//! Which texts make a kernel: one for how rows are shared out, one for the arithmetic, one for the weights' format.

use crate::{activation::FUNCTIONS, launch::Shader};
use halite_hal::DType;
use halite_kernels::linear::{ActivationFormat, LinearSpec, WeightFormat};

/// The two kernels of a pair of formats. They give a row the same bits.
pub(super) struct Kernels {
    pub(super) arithmetic: Arithmetic,
    /// Of few rows: reads each weight once.
    pub(super) vector: &'static Shader,
    /// Of many rows: a tile of them meets each weight.
    pub(super) tile: &'static Shader,
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

macro_rules! kernels {
    ($arithmetic:ident, $($part:literal),*) => {{
        static VECTOR: Shader = Shader {
            name: "linear",
            source: &[FUNCTIONS, include_str!("panel.wgsl"), include_str!("rows.wgsl"), $(include_str!($part),)*
                include_str!("outliers.wgsl"), include_str!("vector.wgsl")],
        };
        static TILE: Shader = Shader {
            name: "linear",
            source: &[FUNCTIONS, include_str!("panel.wgsl"), include_str!("rows.wgsl"), $(include_str!($part),)*
                include_str!("outliers.wgsl"), include_str!("product.wgsl")],
        };
        Kernels { arithmetic: Arithmetic::$arithmetic, vector: &VECTOR, tile: &TILE }
    }};
}

/// The kernels of a layer: by the formats of its operands, and by whether the product is added to what there is.
pub(super) fn kernels(spec: &LinearSpec, added: bool) -> Kernels {
    let grouped = matches!(spec.activations, ActivationFormat::Int8PerGroup { .. });
    match (spec.activations.is_quantized(), spec.weights) {
        (false, WeightFormat::F32) if added => {
            kernels!(Floats, "floats.wgsl", "weights_f32.wgsl", "lora.wgsl")
        }
        (false, WeightFormat::F16 | WeightFormat::Bf16) if added => {
            kernels!(Floats, "floats.wgsl", "weights_half.wgsl", "lora.wgsl")
        }
        (false, _) if added => kernels!(Floats, "floats.wgsl", "weights_dequantized.wgsl", "lora.wgsl"),
        (false, WeightFormat::F32) => kernels!(Floats, "floats.wgsl", "weights_f32.wgsl", "epilogue.wgsl"),
        (false, WeightFormat::F16 | WeightFormat::Bf16) => {
            kernels!(Floats, "floats.wgsl", "weights_half.wgsl", "epilogue.wgsl")
        }
        (false, _) => kernels!(Floats, "floats.wgsl", "weights_dequantized.wgsl", "epilogue.wgsl"),
        (true, weights) if weights.is_int4() => {
            kernels!(Steps, "integers.wgsl", "steps.wgsl", "weights_int4.wgsl", "epilogue.wgsl")
        }
        (true, weights) if grouped || weights.is_group_wise() => {
            kernels!(Steps, "integers.wgsl", "steps.wgsl", "weights_int8.wgsl", "epilogue.wgsl")
        }
        _ if spec.output == DType::I32 => {
            kernels!(Whole, "integers.wgsl", "whole.wgsl", "weights_int8.wgsl", "sums.wgsl")
        }
        _ => kernels!(Whole, "integers.wgsl", "whole.wgsl", "weights_int8.wgsl", "epilogue.wgsl"),
    }
}
