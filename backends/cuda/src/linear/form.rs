//! What dot.cu is told of a layer: formats of rows and of weights, and where scales change along K.

use halite_hal::{DType, Error, Result, Tensor};
use halite_kernels::{
    activation::Activation,
    linear::{ActivationFormat, Activations, GroupOffset, LinearSpec, WeightFormat},
};

use super::packed::Layout;
use crate::{activation::code, device::Cuda, launch::Launch, rows::Rows, support::unsupported};

/// No activation.
const NO_FUNCTION: i32 = -1;

/// The number that dot.cu knows a type by.
pub(super) fn type_code(dtype: DType) -> Option<i32> {
    match dtype {
        DType::F32 => Some(0),
        DType::F16 => Some(1),
        DType::Bf16 => Some(2),
        DType::I8 => Some(3),
        DType::U8 => Some(4),
        DType::I32 => Some(5),
        _ => None,
    }
}

fn weight_code(format: WeightFormat) -> i32 {
    match format.float_type().and_then(type_code) {
        Some(code) => code,
        None if format.is_int4() => 6,
        None => 3,
    }
}

/// Elements from one row to the next.
pub(crate) fn stride(tensor: &Tensor<Cuda>) -> usize {
    match tensor.dims() {
        // One row, whatever it is.
        [_] => 1,
        _ => Rows::of(tensor).outer_stride,
    }
}

/// A call's tensors of activations.
pub(crate) struct Input<'a> {
    pub(crate) x: &'a Tensor<Cuda>,
    pub(crate) scales: Option<&'a Tensor<Cuda>>,
    pub(crate) zero_points: Option<&'a Tensor<Cuda>>,
    pub(crate) outliers: Option<&'a Tensor<Cuda>>,
}

impl<'a> Input<'a> {
    pub(crate) fn of(operator: &'static str, x: &Activations<'a, Cuda>) -> Result<Self> {
        match (x, x.quantized()) {
            (_, Some(x)) => {
                Ok(Input { x: x.q, scales: Some(x.scales), zero_points: x.zero_points, outliers: x.outliers })
            }
            (&Activations::Float(x), _) => Ok(Input { x, scales: None, zero_points: None, outliers: None }),
            (other, _) => Err(unsupported(operator, "this form of activations", other)),
        }
    }

    /// Elements from a row's scale, or its scales, to the next's; 0 where one serves all rows.
    pub(crate) fn scales_stride(&self, spec: &LinearSpec) -> usize {
        if spec.activations.is_per_tensor() { 0 } else { self.scales.map_or(0, stride) }
    }
}

/// A layer's formats as numbers.
pub(crate) struct Form<'a> {
    spec: &'a LinearSpec,
    groups: usize,
    /// Elements from one channel's weights to the next's; two INT4 are a byte.
    pub(crate) w_stride: usize,
    types: [i32; 4],
    offset: i32,
    w_group: usize,
    x_group: usize,
    step: usize,
    function: i32,
}

impl<'a> Form<'a> {
    /// `activation` is what follows the product where no gate does.
    pub(super) fn of(
        operator: &'static str,
        spec: &'a LinearSpec,
        layout: &Layout,
        activation: Option<Activation>,
    ) -> Result<Self> {
        let unknown = |what| -> Error { unsupported(operator, what, spec) };
        let known = |dtype| type_code(dtype).ok_or_else(|| unknown("this type"));
        let function = match spec.gate.or(activation) {
            Some(function) => code(function).ok_or_else(|| unknown("this activation"))?,
            None => NO_FUNCTION,
        };
        let size = spec.weights.float_type().map_or(1, DType::size);
        let x_group = match spec.activations {
            ActivationFormat::Int8PerGroup { group_size } => group_size.min(spec.in_features),
            _ => 0,
        };
        let offset = match spec.weights.offset() {
            GroupOffset::Symmetric => 0,
            GroupOffset::ZeroPoint => 1,
            GroupOffset::Min => 2,
            _ => return Err(unknown("this form of offsets")),
        };
        let w_group = spec.weights.group_size(spec.in_features).map_or(1, |size| size.min(spec.in_features));
        let step = match (spec.activations.is_quantized(), x_group) {
            (true, 0) if spec.weights.is_group_wise() => w_group,
            (true, x_group) if x_group > 0 => x_group.min(w_group),
            _ => 0,
        };
        let outliers = match spec.outliers {
            Some(outliers) => known(outliers.dtype)?,
            None => 0,
        };
        Ok(Form {
            spec,
            groups: layout.groups,
            w_stride: if spec.weights.is_int4() { 2 * layout.stride } else { layout.stride / size },
            types: [
                known(spec.activations.dtype())?,
                weight_code(spec.weights),
                known(spec.output)?,
                outliers,
            ],
            offset,
            w_group,
            x_group,
            step,
            function,
        })
    }

    /// The parameters `results` to `function` of both kernels.
    pub(crate) fn parameters(&self, launch: Launch) -> Launch {
        let (spec, [x, w, out, outliers]) = (self.spec, self.types);
        launch
            .count("out_features", spec.out_features)
            .count("in_features", spec.in_features)
            .int(x)
            .int(w)
            .int(out)
            .int(self.offset)
            .count("groups", self.groups)
            .count("group_size", self.w_group)
            .count("columns of a group", self.x_group)
            .count("outliers", spec.outliers.map_or(0, |outliers| outliers.columns))
            .int(outliers)
            .count("columns of a step", self.step)
            .int(spec.weights.is_channel_wise().into())
            .int(spec.gate.is_some().into())
            .int(self.function)
    }
}
