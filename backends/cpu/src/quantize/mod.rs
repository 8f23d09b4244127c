//! Rows to integers, in every format that linear layers read.
//!
//! `prepare` makes rows of F32 in scratch memory where something happens before; `rows` takes them, or the input's own,
//! to integers; `row` is one row of them.

mod prepare;
mod row;
mod rows;

pub(crate) use row::{quantize_lanes, quantize_row, row_scale};

use crate::{
    device::Cpu,
    simd::StoredFloat,
    stream::CpuStream,
    view::{Reader, Rows, Writer, read, with_float, write},
};
use halite_hal::{DType, Element, Result, Tensor};
use halite_kernels::{
    Checked, Support,
    linear::ActivationFormat,
    quantize::{Quantize, QuantizeArgs, QuantizeSpec, Rotation, ScaleSource, Smoothing},
};
use prepare::PrepareRows;
use row::Steps;
use rows::{Method, QuantizeRows, Range, RangeOfRows};

impl Quantize for Cpu {
    fn quantize_supports(&self, spec: &QuantizeSpec) -> Support {
        crate::float_only(spec.input)
    }

    fn quantize_workspace(&self, spec: &QuantizeSpec, max_rows: usize, columns: usize) -> u64 {
        if prepared(spec) { (max_rows as u64).saturating_mul(columns as u64).saturating_mul(4) } else { 0 }
    }

    fn quantize(&self, stream: &mut CpuStream, args: Checked<QuantizeArgs<'_, Self>>) -> Result<()> {
        self.quantize_supports(args.spec).require("quantize", self, args.spec)?;
        with_float!(args.spec.input, Float => {
            let x = read::<Float>(args.x)?;
            if !prepared(args.spec) || x.rows.columns == 0 {
                return self.quantize_rows(&args, x.data(), x.rows);
            }
            let (rows, columns) = (x.rows.count(), x.rows.columns);
            let scratch = stream.scratch("quantize", self.quantize_workspace(args.spec, rows, columns))?;
            let wide: &mut [f32] = bytemuck::cast_slice_mut(scratch);
            self.prepare_rows(&args, &x, wide)?;
            self.quantize_rows(&args, wide, dense(rows, columns))
        })
    }
}

/// Whether something happens before.
fn prepared(spec: &QuantizeSpec) -> bool {
    spec.smoothing != Smoothing::None || spec.rotation != Rotation::None || spec.outlier_columns > 0
}

/// Rows without gaps.
fn dense(rows: usize, columns: usize) -> Rows {
    Rows { outer: rows, inner: 1, columns, outer_stride: columns.max(1), inner_stride: columns }
}

/// The first elements of a slice, at most `count`, which then begins after them.
fn take<'a, T>(slice: &mut &'a mut [T], count: usize) -> &'a mut [T] {
    let all = std::mem::take(slice);
    let (front, rest) = all.split_at_mut(count.min(all.len()));
    *slice = rest;
    front
}

impl Cpu {
    /// Rows of F32, smoothed, with outliers set aside, rotated.
    fn prepare_rows<T: StoredFloat + Element>(
        &self,
        args: &QuantizeArgs<'_, Cpu>,
        x: &Reader<'_, T>,
        mut wide: &mut [f32],
    ) -> Result<()> {
        let factors = args.smoothing.map(read::<f32>).transpose()?;
        let outliers = args.outliers.map(|outliers| read::<i32>(outliers.columns)).transpose()?;
        let mut values = args.outliers.map(|outliers| write::<T>(outliers.values)).transpose()?;
        let outlier_stride = values.as_ref().map_or(0, |values| values.rows.outer_stride);
        let mut values = values.as_mut().map_or(&mut [][..], Writer::data);
        let block = if let Rotation::Hadamard { block } = args.spec.rotation { Some(block) } else { None };
        let steps = prepare::Steps {
            factors: factors.as_ref().map(Reader::data),
            outliers: outliers.as_ref().map_or(&[], Reader::data),
            block,
        };
        let (x, rows) = (x.data(), x.rows);
        let per_task = self.team().units_per_task(rows.count(), rows.columns / 2);
        let tasks = (0..rows.count().div_ceil(per_task)).map(|task| {
            let outliers = take(&mut values, per_task * outlier_stride);
            (task * per_task, take(&mut wide, per_task * rows.columns), outliers)
        });
        self.team().each(tasks, |(first, to, outliers)| {
            self.tier().run(PrepareRows { x, rows, first, steps, to, outliers, outlier_stride });
        });
        Ok(())
    }

    fn quantize_rows<T: StoredFloat + Element>(
        &self,
        args: &QuantizeArgs<'_, Cpu>,
        x: &[T],
        rows: Rows,
    ) -> Result<()> {
        let format = args.spec.output;
        let flip = if format.dtype() == DType::U8 { 0x80 } else { 0 };
        let method = match format {
            ActivationFormat::Int8PerGroup { size } => Method::Symmetric { group: size },
            ActivationFormat::Int8PerTensor => Method::Known(self.steps(args, x, rows, None)?),
            ActivationFormat::AsymmetricPerTensor(_) => {
                Method::Known(self.steps(args, x, rows, Some(flip))?)
            }
            ActivationFormat::AsymmetricPerToken(_) => Method::Asymmetric { flip },
            _ => Method::Symmetric { group: rows.columns.max(1) },
        };
        let (mut scales, mut zeros);
        let (scales, scale_stride, zeros): (&mut [f32], usize, &mut [i32]) = match method {
            Method::Known(_) => (&mut [], 0, &mut []),
            _ => {
                scales = write::<f32>(args.scales)?;
                zeros = args.zero_points.map(write::<i32>).transpose()?;
                let stride = if args.scales.dims().len() == 2 { scales.rows.outer_stride } else { 1 };
                (scales.data(), stride, zeros.as_mut().map_or(&mut [], Writer::data))
            }
        };
        if rows.columns == 0 {
            // Rows of nothing are rows of zeros, and have no chunks below.
            scales.fill(f32::MIN_POSITIVE);
            zeros.fill(Steps::of_range(0.0, 0.0, flip).zero.unwrap_or(0));
            return Ok(());
        }
        if flip == 0 {
            let mut q = write::<i8>(args.q)?;
            let stride = q.rows.outer_stride;
            self.each_row(x, rows, method, (q.data(), stride), (scales, scale_stride), zeros);
        } else {
            let mut q = write::<u8>(args.q)?;
            let stride = q.rows.outer_stride;
            let q = bytemuck::cast_slice_mut(q.data());
            self.each_row(x, rows, method, (q, stride), (scales, scale_stride), zeros);
        }
        Ok(())
    }

    /// Outputs come with the elements from a row to the next.
    fn each_row<T: StoredFloat>(
        &self,
        x: &[T],
        rows: Rows,
        method: Method,
        (mut q, q_stride): (&mut [i8], usize),
        (mut scales, scale_stride): (&mut [f32], usize),
        mut zeros: &mut [i32],
    ) {
        let per_task = self.team().units_per_task(rows.count(), rows.columns / 4);
        let tasks = (0..rows.count().div_ceil(per_task)).map(|task| {
            let q = take(&mut q, per_task * q_stride);
            let scales = take(&mut scales, per_task * scale_stride);
            (task * per_task, q, scales, take(&mut zeros, per_task))
        });
        self.team().each(tasks, |(first, q, scales, zeros)| {
            let count = per_task.min(rows.count() - first);
            self.tier().run(QuantizeRows {
                x,
                rows,
                first,
                count,
                method,
                q,
                q_stride,
                scales,
                scale_stride,
                zeros,
            });
        });
    }

    /// The one scale of all rows, and its zero point where there is a `flip`: given, or found and written.
    fn steps<T: StoredFloat>(
        &self,
        args: &QuantizeArgs<'_, Cpu>,
        x: &[T],
        rows: Rows,
        flip: Option<u8>,
    ) -> Result<Steps> {
        if args.spec.scales == ScaleSource::Static {
            let scale = one::<f32>(args.scales)?;
            let zero = args.zero_points.map(one::<i32>).transpose()?;
            return Ok(Steps { scale, zero, flip: flip.unwrap_or(0) });
        }
        let range = Range::default();
        // Rows of nothing may have no place in memory.
        let count = if rows.columns == 0 { 0 } else { rows.count() };
        let per_task = self.team().units_per_task(count, rows.columns / 8);
        let tasks = (0..count.div_ceil(per_task)).map(|task| task * per_task);
        self.team().each(tasks, |first| {
            let which = first..count.min(first + per_task);
            self.tier().run(RangeOfRows { x, rows, which, range: &range });
        });
        let [below, above] = range.get();
        let steps = match flip {
            None => Steps::symmetric(below.max(above)),
            Some(flip) => Steps::of_range(below, above, flip),
        };
        write::<f32>(args.scales)?.data().fill(steps.scale);
        if let (Some(zeros), Some(zero)) = (args.zero_points, steps.zero) {
            write::<i32>(zeros)?.data().fill(zero);
        }
        Ok(steps)
    }
}

/// The one element of a tensor.
fn one<T: Element>(tensor: &Tensor<Cpu>) -> Result<T> {
    let values = read::<T>(tensor)?;
    Ok(values.data().first().copied().unwrap_or(T::zeroed()))
}
