//! The product of rows with packed weights, and what follows it: what layers, groups and experts are made of.

use super::{
    layout::{has_kept, panels_a_result},
    packed::{Piece, WgpuPacked},
    segments::Segments,
    shaders::kernels,
    successive::Successive,
};
use crate::{
    activation::code,
    device::Wgpu,
    launch::{Access, Launch, spread},
    operand::Operand,
    stream::WgpuStream,
    support::unsupported,
};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    activation::Activation,
    linear::{Activations, Epilogue, GroupOffset, OutputScale, WeightFormat},
};

/// Rows up to which each weight is read once a block of rows, instead of tiles of many rows.
const FEW_ROWS: usize = 8;
/// Rows of a block where there are few.
const FEW: usize = 4;
/// Rows of a tile.
const TILE_ROWS: usize = 64;
/// Panels of a tile.
const TILE_PANELS: usize = 4;
/// Rows of a group, about, up to which it has few: the dispatch has to be made for all rows.
const FEW_LIKELY: usize = 2;
/// What shaders know no function by.
const NO_FUNCTION: usize = 255;

/// Rows of elements, `stride` elements from one to the next.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    pub(crate) operand: Operand,
    pub(crate) stride: usize,
}

impl Matrix {
    pub(crate) fn new(operand: Operand, stride: usize) -> Self {
        Matrix { operand, stride }
    }

    /// A tensor of one or two dimensions.
    pub(crate) fn of(tensor: &Tensor<Wgpu>) -> Self {
        Matrix { operand: Operand::tensor(tensor), stride: tensor.strides().first().copied().unwrap_or(1) }
    }
}

/// What is multiplied: tensors of the spec's activations, or scratch memory.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) x: Matrix,
    /// Of quantised activations.
    pub(crate) scales: Option<Matrix>,
    /// As the scales lie.
    pub(crate) zero_points: Option<Operand>,
    pub(crate) outliers: Option<Matrix>,
}

impl Input {
    pub(crate) fn of(x: &Activations<'_, Wgpu>) -> Result<Self> {
        match (x, x.quantized()) {
            (_, Some(x)) => Ok(Input {
                x: Matrix::of(x.q),
                scales: Some(Matrix::of(x.scales)),
                zero_points: x.zero_points.map(Operand::tensor),
                outliers: x.outliers.map(Matrix::of),
            }),
            (Activations::Float(x), _) => {
                Ok(Input { x: Matrix::of(x), scales: None, zero_points: None, outliers: None })
            }
            (other, _) => Err(unsupported("linear", "this form of activations", other)),
        }
    }
}

/// What follows a product.
#[derive(Clone, Debug, Default)]
pub(crate) struct After {
    /// F32 `[weight_rows]`, of each group.
    pub(crate) bias: Option<Operand>,
    pub(crate) activation: Option<Activation>,
    pub(crate) soft_cap: Option<f32>,
    pub(crate) residual: Option<Matrix>,
    pub(crate) output_scale: Option<OutputScale>,
    /// Instead of all that.
    pub(crate) added: Option<Added>,
}

/// `out[order[at + row]] += scale · product`, which rounds by itself as the sum does; of activations in float.
#[derive(Clone, Debug)]
pub(crate) struct Added {
    /// I32: the row of the output that each one's result is added to.
    pub(crate) order: Operand,
    pub(crate) at: usize,
    pub(crate) scale: f32,
}

impl After {
    pub(crate) fn of(epilogue: &Epilogue<'_, Wgpu>) -> Self {
        After {
            bias: epilogue.bias.map(Operand::tensor),
            activation: epilogue.activation,
            soft_cap: epilogue.soft_cap,
            residual: epilogue.residual.map(Matrix::of),
            output_scale: epilogue.output_scale,
            added: None,
        }
    }
}

/// Rows that only the device knows: from element `at` of an I32 table up to, without it, the element behind.
///
/// Both are clamped to the product's rows, which are the most that there may be: so many workgroups are started, and those
/// that get no rows leave at once. Rows are read and written at their places in all of the product's matrices. Groups
/// whose ranges overlap would write the same rows: one that says a table ascends must know it.
#[derive(Clone, Debug)]
pub(crate) struct RowRange {
    pub(crate) table: Operand,
    pub(crate) at: usize,
    /// Whether the table is known to ascend; otherwise each element counts as at least those before it.
    pub(crate) ascending: bool,
    /// Whose product it is.
    pub(crate) groups: Successive,
    /// Rows of a group, about: it chooses the kernel, and no bit depends on it.
    pub(crate) likely: usize,
}

/// `out = after(x · Wᵀ)`, without checks: whoever makes one has checked tensors, or scratch memory of the right size.
///
/// A row's bits depend on nothing but the row. It needs no scratch memory; a layer larger than one kernel reaches takes
/// several dispatches, others one.
#[derive(Clone, Debug)]
pub(crate) struct Product<'a> {
    /// Of the first group.
    pub(crate) weights: &'a WgpuPacked,
    pub(crate) input: Input,
    pub(crate) after: After,
    /// Of the spec's output type.
    pub(crate) out: Matrix,
    /// Rows of input and output.
    pub(crate) rows: usize,
    /// Which of them; all where there is none. It takes the place of a residual.
    pub(crate) range: Option<RowRange>,
}

impl Product<'_> {
    /// Queues it.
    pub(crate) fn queue(&self, stream: &mut WgpuStream) -> Result<()> {
        if self.after.residual.is_some() && self.range.is_some() {
            let form = "a residual of rows that only the device knows";
            return Err(unsupported("linear", form, self.weights.as_ref()));
        }
        if self.rows == 0 {
            return Ok(());
        }
        let function = match self.weights.as_ref().gate.or(self.after.activation) {
            Some(activation) => match code(activation) {
                Some(code) => code as usize,
                None => return Err(unsupported("linear", "this activation", &activation)),
            },
            None => NO_FUNCTION,
        };
        self.weights.pieces().iter().try_for_each(|piece| self.queue_piece(stream, piece, function))
    }

    fn queue_piece(&self, stream: &mut WgpuStream, piece: &Piece, function: usize) -> Result<()> {
        let Product { weights, input, after, out, rows, range } = self;
        let (spec, layout) = (weights.as_ref(), weights.layout());
        let kernels = kernels(spec, after.added.is_some());
        let few = *rows <= FEW_ROWS || range.as_ref().is_some_and(|range| range.likely <= FEW_LIKELY);
        let block = match rows {
            1 => 1,
            _ if few => FEW,
            _ => TILE_ROWS,
        };
        let (panels, together) = (piece.panels.len(), panels_a_result(spec));
        let columns = panels.div_ceil(if few { together } else { TILE_PANELS });
        // More than a grid holds are refused where they are queued.
        let groups = columns.saturating_mul(rows.div_ceil(block));
        let x = &input.x;
        let aligned =
            x.operand.is_aligned(16) && (*rows == 1 || (x.stride * x.operand.dtype.size()) % 16 == 0);
        let Segments { quads, weight_group, x_group, segment } = Segments::of(spec, kernels.arithmetic);
        let stride = |matrix: &Option<Matrix>| matrix.as_ref().map_or(0, |matrix| matrix.stride);
        let operand = |matrix: &Option<Matrix>| matrix.as_ref().map(|matrix| matrix.operand.clone());
        let dtype = |matrix: &Option<Matrix>| matrix.as_ref().map_or(DType::F32, |m| m.operand.dtype);
        let (offset, int4) = (spec.weights.offset(), spec.weights.is_int4());
        let x_sums = offset == GroupOffset::Min || offset == GroupOffset::ZeroPoint && !int4;
        let OutputScale { scale, zero_point, .. } = after.output_scale.unwrap_or(OutputScale::new(1.0));
        let launch = Launch::new(kernels.shader(few, aligned))
            .operand("w", Access::Quads, piece.operand())
            .operand("x", if aligned { Access::Quads } else { Access::In }, bytes(&x.operand))
            .optional("x_scales", Access::In, DType::F32, operand(&input.scales))
            .optional("x_zeros", Access::In, DType::I32, input.zero_points.clone())
            .optional("x_outliers", Access::In, dtype(&input.outliers), operand(&input.outliers))
            .optional("bias", Access::In, DType::F32, after.bias.clone())
            .optional("residual", Access::In, dtype(&after.residual), operand(&after.residual))
            .optional("range", Access::In, DType::I32, range.as_ref().map(|range| range.table.clone()))
            .constant("ROWS", if few { block as u32 } else { 1 })
            .constant("PANELS", together as u32)
            .constant("OFFSET", offset_code(offset))
            .flag("INT4", int4)
            .constant("X_BITS", 8 * x.operand.dtype.size() as u32)
            .flag("X_BF16", x.operand.dtype == DType::Bf16)
            .flag("BF16", spec.weights == WeightFormat::Bf16)
            .flag("X_SUMS", spec.activations.is_quantized() && x_sums)
            .flag("X_GROUPS", x_group < quads)
            .flag("KEPT", has_kept(spec))
            .flag("ASCENDING", range.as_ref().is_none_or(|range| range.ascending))
            .flag("INTEGERS", !spec.output.is_float())
            .size("rows", *rows)
            .size("k", spec.in_features)
            .size("quads", quads)
            .size("segment", segment)
            .size("panels", panels)
            .size("first_panel", piece.panels.start)
            .size("results", spec.out_features)
            .size("panel_units", layout.len)
            .size("scales_at", layout.scales)
            // A bit for the activations, and one for the output.
            .size("of_u8", u8_of(spec.activations.dtype()) | u8_of(spec.output) << 1)
            .size("groups", layout.groups)
            .size("weight_group", weight_group)
            .size("x_group", x_group)
            .size("x_stride", x.stride)
            .size("scales_stride", if spec.activations.is_per_tensor() { 0 } else { stride(&input.scales) })
            .size("outliers", spec.outliers.map_or(0, |outliers| outliers.columns))
            .size("outliers_stride", stride(&input.outliers))
            // From row to row of a residual, or from group to group of weights: there is only one of both.
            .size("apart", range.as_ref().map_or(stride(&after.residual), |range| range.groups.apart))
            .size("out_stride", out.stride)
            .size("function", function)
            .float("soft_cap", after.soft_cap.unwrap_or(0.0))
            .float("output_scale", scale)
            .int("output_zero", zero_point)
            .size("range_at", range.as_ref().map_or(0, |range| range.at));
        let launch = match &after.added {
            None => launch.operand("out", Access::Out, bytes(&out.operand)),
            Some(Added { order, at, scale }) => launch
                .operand("out", Access::InOut, bytes(&out.operand))
                .operand("order", Access::In, order.clone())
                .size("order_at", *at)
                .float("scale", *scale)
                .size("none", 0),
        };
        let [x, y, _] = spread(groups);
        stream.launch(launch, [x, y, range.as_ref().map_or(1, |range| range.groups.count)])
    }
}

fn u8_of(dtype: DType) -> usize {
    (dtype == DType::U8).into()
}

/// Integers of 8 bits of either kind as I8, so that they share kernels.
fn bytes(operand: &Operand) -> Operand {
    let dtype = if operand.dtype == DType::U8 { DType::I8 } else { operand.dtype };
    operand.clone().with_type(dtype)
}

/// The number that shaders know it by.
fn offset_code(offset: GroupOffset) -> u32 {
    match offset {
        GroupOffset::ZeroPoint => 1,
        GroupOffset::Min => 2,
        _ => 0,
    }
}

#[cfg(test)]
#[path = "product_tests.rs"]
mod tests;
