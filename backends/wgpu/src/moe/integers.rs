//! Experts' rows to integers of formats that are made once rows are their experts': scales of all rows are an expert's, and
//! so are the columns kept in float.

use crate::{
    device::Wgpu,
    launch::{Access, Launch, Shader, spread},
    operand::Operand,
    quantize::{Call, PREPARE, ROWS, STEPS, TEAM, integers, prepare, rows_walked, teams},
    rows::Rows,
    stream::WgpuStream,
    support::unsupported,
};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    moe::{LayerInputs, RowMemory},
    quantize::{QuantizeOut, QuantizeSpec, ScaleSource},
};

const EXPERT_OF: &str = include_str!("expert_of.wgsl");
const EXPERT_ROW: &str = include_str!("expert_row.wgsl");

static INTEGERS: Shader =
    Shader { name: "moe: quantize", source: &[TEAM, EXPERT_OF, EXPERT_ROW, PREPARE, STEPS, ROWS] };
static SCALES: Shader = Shader {
    name: "moe: scales",
    source: &[TEAM, EXPERT_OF, EXPERT_ROW, PREPARE, STEPS, include_str!("expert_scales.wgsl")],
};
static KEPT: Shader =
    Shader { name: "moe: columns in float", source: &[EXPERT_OF, include_str!("kept.wgsl")] };

/// Quantises rows sorted by expert, which begin at `offsets`, to memory for them. Static scales are taken from the inputs: the
/// result has them in the place of the memory's.
pub(super) fn quantize(
    stream: &mut WgpuStream,
    (spec, x): (&QuantizeSpec, &Tensor<Wgpu>),
    to: RowMemory<Wgpu>,
    inputs: &LayerInputs<'_, Wgpu>,
    offsets: &Tensor<Wgpu>,
) -> Result<RowMemory<Wgpu>> {
    let to = to.with_static(spec, inputs);
    let RowMemory::Quantized { q, scales, zero_points, outliers, .. } = &to else {
        return Err(unsupported("moe", "this form of rows", &to));
    };
    let shape = [x.dims()[0], 1, x.dims()[1]];
    let kept = inputs.outlier_columns;
    let kept_columns = kept.map_or(0, |kept| kept.dims()[1]);
    let experts = offsets.dims()[0] - 1;
    let source = |launch: Launch| {
        launch
            .input("x", x)
            .input("offsets", offsets)
            .maybe("columns", Access::In, DType::I32, kept)
            .size("experts", experts)
            .size("x_stride", Rows::of(x).outer_stride)
            .size("kept_columns", kept_columns)
    };
    let mut given = spec.clone();
    // The source of the rows takes them out.
    given.outlier_columns = 0;
    let mut out = QuantizeOut::new(q, scales);
    out.zero_points = zero_points.as_ref();
    if spec.output.is_per_tensor() && spec.scales == ScaleSource::Dynamic {
        let launch = prepare(teams(source(Launch::new(&SCALES)), shape), &out)
            .operand("scales", Access::Out, Operand::tensor(scales))
            .maybe("zeros", Access::Out, DType::I32, zero_points.as_ref())
            .flag("ASYMMETRIC", spec.output.has_zero_points())
            .flag("UNSIGNED", spec.output.dtype() == DType::U8)
            // All rows may be one expert's.
            .rounds(rows_walked(shape[0], shape[2], kept_columns));
        stream.launch(launch, spread(experts))?;
        given.scales = ScaleSource::Static;
    }
    let call = Call { operator: "moe", spec: &given, out: &out, shape };
    integers(stream, source(Launch::new(&INTEGERS)), &call, None)?;
    if let (Some(_), Some(values)) = (kept, outliers) {
        let to = Rows::of(values);
        let launch = source(Launch::new(&KEPT))
            .output("kept", values)
            .size("rows", to.outer)
            .size("width", shape[2])
            .size("kept_stride", to.outer_stride);
        stream.launch(launch, spread((to.outer * to.columns).div_ceil(256)))?;
    }
    Ok(to)
}
