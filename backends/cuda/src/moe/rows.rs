//! Experts' rows before a product, in one launch: what tokens or the first layer give, through the function between the
//! layers, to floats or to integers of any format. Scales of all rows are an expert's, and so are columns kept in float.

use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    activation::Function,
    moe::{LayerInputs, RowMemory},
    quantize::{QuantizeOut, QuantizeSpec, ScaleSource},
};

use crate::{
    activation::ActivatedRow,
    compile::{Program, Source},
    device::Cuda,
    element::code,
    launch::Launch,
    linear::RowGroups,
    quantize::{Call, integers},
    rows::Rows,
    stream::CudaStream,
    support::unsupported,
};

static SOURCE: Source = Source::new("moe/rows.cu", include_str!("rows.cu"));

/// Threads of a block.
const THREADS: usize = 256;

fn base(entry: &'static str) -> Launch {
    Launch::new("moe", &SOURCE, entry)
}

/// The program with all kernels.
pub(super) fn program() -> Program {
    base("experts_quantize").program()
}

/// Where rows come from.
#[derive(Clone, Copy)]
pub(super) struct RowSource<'a> {
    pub(super) x: &'a Tensor<Cuda>,
    pub(super) groups: RowGroups<'a>,
    /// Whether rows of `x` are tokens.
    pub(super) gathered: bool,
    /// F32 `[tokens, top_k]`: what a slot's row is multiplied with.
    pub(super) factors: Option<&'a Tensor<Cuda>>,
    pub(super) function: Option<Function>,
    /// Whether what the function gives is rounded to the type of `x` before it is quantised.
    pub(super) rounded: bool,
}

impl RowSource<'_> {
    /// `ROWS_PARAMETERS`.
    fn launch(&self, entry: &'static str, kept: Option<&Tensor<Cuda>>) -> Result<Launch> {
        let row = match self.function {
            None => ActivatedRow::NONE,
            Some(function) => {
                ActivatedRow::of(function).ok_or_else(|| unsupported("moe", "this function", &function))?
            }
        };
        let launch = base(entry)
            .tensor("x", self.x)
            .maybe("weights", self.factors)
            .maybe("outlier columns", kept)
            .size("x's stride", Rows::of(self.x).outer_stride)
            .size("weights' stride", self.factors.map_or(0, |factors| Rows::of(factors).outer_stride))
            .int(code(self.x.dtype()))
            .int(self.gathered.into())
            .int(row.gated.into())
            .int(self.rounded.into())
            .count("outlier columns", kept.map_or(0, |kept| Rows::of(kept).columns));
        Ok(self.groups.parameters(row.parameters(launch)))
    }

    /// As floats of the type of `x`.
    pub(super) fn floats(&self, stream: &mut CudaStream, out: &Tensor<Cuda>) -> Result<()> {
        let to = Rows::of(out);
        let parts = to.columns.div_ceil(THREADS);
        let launch = self
            .launch("experts_floats", None)?
            .tensor("out", out)
            .size("out's stride", to.outer_stride)
            .size("columns", to.columns)
            .size("parts", parts);
        stream.launch(launch.grid([to.outer.saturating_mul(parts), 1, 1]))
    }

    /// To integers, in memory for them. Static scales are taken from the inputs: the result has them in the place of the
    /// memory's.
    pub(super) fn integers(
        &self,
        stream: &mut CudaStream,
        spec: &QuantizeSpec,
        to: RowMemory<Cuda>,
        inputs: &LayerInputs<'_, Cuda>,
    ) -> Result<RowMemory<Cuda>> {
        let to = to.with_static(spec, inputs);
        let RowMemory::Quantized { q, scales, zero_points, outliers, .. } = &to else {
            return Err(unsupported("moe", "this form of rows", &to));
        };
        let kept = inputs.outlier_columns;
        let layout = Rows::of(q);
        let mut given = spec.clone();
        // The source of the rows takes them out.
        given.outlier_columns = 0;
        if spec.output.is_per_tensor() && spec.scales == ScaleSource::Dynamic {
            let launch = self
                .launch("experts_scales", kept)?
                .tensor("scales", scales)
                .maybe("zero points", zero_points.as_ref())
                .size("rows", layout.outer)
                .size("columns", layout.columns)
                .int(spec.output.has_zero_points().into())
                .int((spec.output.dtype() == DType::U8).into());
            stream.launch(launch.grid([self.groups.count(), 1, 1]))?;
            given.scales = ScaleSource::Static;
        }
        let launch = self
            .launch("experts_quantize", kept)?
            .maybe("outliers", outliers.as_ref())
            .size("outliers' stride", outliers.as_ref().map_or(0, |values| Rows::of(values).outer_stride));
        let mut out = QuantizeOut::new(q, scales);
        out.zero_points = zero_points.as_ref();
        let shape = [layout.outer, 1, layout.columns];
        integers(stream, launch, &Call { operator: "moe", spec: &given, out: &out, shape }, None)?;
        Ok(to)
    }
}
