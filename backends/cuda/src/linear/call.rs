//! A call's parts, as every kernel of the family is told them.

use halite_hal::{DType, Result, Tensor};
use halite_kernels::linear::{Activations, Epilogue, LinearArgs, LinearSpec, OutputScale};

use super::packed::CudaPacked;
use crate::{
    activation::code,
    device::Cuda,
    launch::Launch,
    rows::{Rows, in_vectors},
    support::unsupported,
};

/// No activation.
const NO_FUNCTION: i32 = -1;

/// The number that kernels know a type by: `Type` in elements.cuh.
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

/// Elements from one row to the next.
pub(super) fn stride(tensor: &Tensor<Cuda>) -> usize {
    match tensor.dims() {
        // One row, whatever it is.
        [_] => 1,
        _ => Rows::of(tensor).outer_stride,
    }
}

/// Only the rows of one adapter, their products times its scale.
#[derive(Clone, Copy)]
pub(super) struct Only<'a> {
    /// I32, the adapter of each row.
    pub(super) adapters: &'a Tensor<Cuda>,
    pub(super) adapter: usize,
    pub(super) scale: f32,
}

/// One call.
pub(super) struct Call<'a> {
    /// For errors.
    pub(super) operator: &'static str,
    pub(super) packed: &'a CudaPacked,
    pub(super) x: &'a Tensor<Cuda>,
    pub(super) scales: Option<&'a Tensor<Cuda>>,
    pub(super) zero_points: Option<&'a Tensor<Cuda>>,
    outliers: Option<&'a Tensor<Cuda>>,
    after: &'a Epilogue<'a, Cuda>,
    out: &'a Tensor<Cuda>,
    /// None of the result's rows but these.
    pub(super) only: Option<Only<'a>>,
}

impl<'a> Call<'a> {
    pub(super) fn of(args: &'a LinearArgs<'_, Cuda>) -> Result<Self> {
        Call::new("linear", &args.x, args.weights, &args.epilogue, args.out)
    }

    pub(super) fn new(
        operator: &'static str,
        x: &Activations<'a, Cuda>,
        packed: &'a CudaPacked,
        after: &'a Epilogue<'a, Cuda>,
        out: &'a Tensor<Cuda>,
    ) -> Result<Self> {
        let call = |x, scales, zero_points, outliers| Call {
            operator,
            packed,
            x,
            scales,
            zero_points,
            outliers,
            after,
            out,
            only: None,
        };
        match (x, x.quantized()) {
            (_, Some(x)) => Ok(call(x.q, Some(x.scales), x.zero_points, x.outliers)),
            (&Activations::Float(x), _) => Ok(call(x, None, None, None)),
            (other, _) => Err(unsupported(operator, "this form of activations", other)),
        }
    }

    /// The rows of one adapter only.
    pub(super) fn only(mut self, only: Only<'a>) -> Self {
        self.only = Some(only);
        self
    }

    pub(super) fn spec(&self) -> &'a LinearSpec {
        self.packed.as_ref()
    }

    /// Whether rows of `x` begin at multiples of 16 bytes.
    pub(super) fn is_aligned(&self) -> bool {
        in_vectors(self.x, &[stride(self.x)])
    }

    pub(super) fn rows(&self) -> usize {
        Rows::of(self.out).outer
    }

    /// Elements from one row's scale to the next's.
    pub(super) fn scales_stride(&self) -> usize {
        if self.spec().activations.is_per_tensor() { 0 } else { self.scales.map_or(0, stride) }
    }

    pub(super) fn type_code(&self, dtype: DType) -> Result<i32> {
        type_code(dtype).ok_or_else(|| unsupported(self.operator, "this type", self.spec()))
    }

    /// The address of a part of the packed weights; null where there is none.
    pub(super) fn part(&self, launch: Launch, at: Option<usize>) -> Launch {
        match at {
            Some(at) => launch.bytes("weights", self.packed.buffer(), at as u64),
            None => launch.bits(0),
        }
    }

    /// What happens to the product: `Epilogue` in epilogue.cuh.
    pub(super) fn epilogue(&self, launch: Launch) -> Result<Launch> {
        let (spec, after, layout) = (self.spec(), self.after, self.packed.layout());
        let function = match spec.gate.or(after.activation) {
            Some(function) => {
                code(function).ok_or_else(|| unsupported(self.operator, "this activation", &function))?
            }
            None => NO_FUNCTION,
        };
        let integers = spec.activations.is_quantized();
        let channels = integers && spec.weights.is_channel_wise();
        // Of a group of columns they are inside the sum.
        let whole_rows = integers && spec.activations.scale_dims(1, spec.in_features).len() == 1;
        let OutputScale { scale, zero_point, .. } = after.output_scale.unwrap_or(OutputScale::new(1.0));
        let outliers_type = spec.outliers.map_or(Ok(0), |outliers| self.type_code(outliers.dtype))?;
        let output = self.type_code(spec.output)?;
        Ok(launch.structure(|launch| {
            let launch = self
                .part(launch, channels.then_some(layout.scales))
                .maybe("scales", self.scales.filter(|_| whole_rows))
                .maybe("outliers", self.outliers);
            self.part(launch, layout.outliers)
                .maybe("bias", after.bias)
                .maybe("residual", after.residual)
                .tensor("out", self.out)
                .size("scales' stride", self.scales_stride())
                .size("outliers' stride", self.outliers.map_or(0, stride))
                .size("residual's stride", after.residual.map_or(0, stride))
                .size("out's stride", Rows::of(self.out).outer_stride)
                .count("out_features", spec.out_features)
                .int(spec.gate.is_some().into())
                .int(function)
                .count("outliers", spec.outliers.map_or(0, |outliers| outliers.columns))
                .int(outliers_type)
                .int(output)
                .int(zero_point)
                .float(scale)
                .float(after.soft_cap.unwrap_or(0.0))
                .float(self.only.map_or(1.0, |only| only.scale))
        }))
    }
}
