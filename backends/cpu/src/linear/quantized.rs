//! Products of quantised activations: operands in the form that tiles read.

use super::{
    choice::{IntegerKernel, ScaleKind},
    epilogue::Int8ToI32,
    group_wise::{GroupWiseProduct, GroupWiseRows},
    int8::{Int8Product, Int8Rows, Int8Weights, SumRows},
    outliers::Outliers,
    rows_of,
    scaled::{RowScales, Scaled},
    scratch::{Sizes, are_spread, copied_stride},
    zero_points::{ActivationZeros, ZeroPoints},
};
use crate::{
    cost,
    device::Cpu,
    stream::CpuStream,
    view::{read, write},
};
use halite_hal::{DType, Result, Storage};
use halite_kernels::linear::{ActivationFormat, LinearArgs, LinearSpec, Quantized};

/// Columns whose sums have a scale of their own: the shorter group of weights and activations, of which the other is a
/// multiple, at most all of K.
pub(super) fn step(spec: &LinearSpec) -> usize {
    let k = spec.in_features;
    let columns = match spec.activations {
        ActivationFormat::Int8PerGroup { group_size } => group_size,
        _ => k,
    };
    spec.weights.group_size(k).unwrap_or(k).min(columns).clamp(1, k)
}

impl Cpu {
    /// Quantised activations with integer weights.
    pub(super) fn integers(
        &self,
        stream: &mut CpuStream,
        args: &LinearArgs<'_, Cpu>,
        x: &Quantized<'_, Cpu>,
    ) -> Result<()> {
        let (packed, spec) = (args.weights, args.weights.as_ref());
        let (format, rows, k) = (spec.activations, args.out.dims()[0], spec.in_features);
        let kernel = IntegerKernel::of(spec);
        let sizes = Sizes::of(packed, rows);
        let scratch = sizes.cut(stream.scratch("linear", sizes.total())?);

        let given;
        let (values, stride, offset): (&[i8], usize, i32) = if format.dtype() == DType::U8 {
            self.signed_rows(x.q, scratch.bytes)?;
            (scratch.bytes, copied_stride(k), 128)
        } else if kernel == IntegerKernel::GroupWise && spec.outliers.is_some() {
            // What is 0 here counts neither in products nor in the sums that minima are multiplied with.
            self.copied_rows(x.q, packed.outlier_columns(), scratch.bytes)?;
            (scratch.bytes, copied_stride(k), 0)
        } else if are_spread(rows, k) {
            self.copied_rows(x.q, &[], scratch.bytes)?;
            (scratch.bytes, copied_stride(k), 0)
        } else {
            given = read::<i8>(x.q)?;
            (given.data(), given.rows.outer_stride, 0)
        };
        let panels = packed.panels().read(0..packed.panels().len())?;
        let group = step(spec);
        let times = match kernel {
            IntegerKernel::GroupWise => GroupWiseRows::sum_factor(&packed.groups(&panels)),
            _ => 1,
        };
        let sums = scratch.row_sums;
        let per_task = self.team().units_per_task(sums.len(), cost::summed(group)).max(1);
        self.team().each(sums.chunks_mut(per_task).enumerate(), |(task, sums)| {
            self.tier().run(SumRows { values, stride, rows, k, group, times, first: task * per_task, sums });
        });

        let scales = read::<f32>(x.scales)?;
        let a_scale = match (ScaleKind::of(format), scales.data()) {
            (ScaleKind::Group(size), values) => {
                RowScales::PerGroup { scales: values, stride: scales.rows.outer_stride, size }
            }
            (ScaleKind::All, &[scale]) => RowScales::One(scale),
            (_, values) => RowScales::PerRow(values),
        };
        let outliers = match (x.outliers, spec.outliers) {
            (Some(x), Some(outliers)) => {
                self.widen_rows(x, scratch.floats)?;
                let (columns, weights) = (outliers.columns, packed.outliers());
                Some(Outliers { x: scratch.floats, columns, weights })
            }
            _ => None,
        };
        if kernel == IntegerKernel::GroupWise {
            let rows = GroupWiseRows { values, rows, stride, step: group, sums, scales: a_scale };
            return self.finish(args, GroupWiseProduct { rows, weights: packed.groups(&panels), outliers });
        }

        let zeros = x.zero_points.map(read::<i32>).transpose()?;
        let column_sums = packed.column_sums();
        let activations =
            zeros.as_ref().map(|zeros| ActivationZeros { zeros: zeros.data(), offset, column_sums });
        let zero_points = ZeroPoints { activations, weights: packed.zero_points() };

        let weights = Int8Weights::new(&panels, spec.weight_rows(), k, packed.columns());
        let sums = Int8Product::new(Int8Rows::new(values, rows, stride, k, sums), weights)
            .with_zero_points(zero_points)
            .with_matrix(self.tier().matrix());
        if kernel == IntegerKernel::Sums {
            let mut out = write::<i32>(args.out)?;
            self.share(sums, rows_of(&mut out), |out| Int8ToI32 { out });
            return Ok(());
        }

        self.finish(args, Scaled { sums, a_scale, w_scale: packed.scales(), outliers })
    }
}
