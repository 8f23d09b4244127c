//! Rows to integers, in every format that linear layers read: rows in memory, and those that norms and activations
//! compute.
//!
//! `prepare` is what happens to a row before; `rows` takes rows to integers, whatever they come from; `row` is one row of
//! them and `bytes` how its quotients are stored; `into` cuts the outputs into tasks; `rotate` is the rotation alone.

mod bytes;
mod into;
mod prepare;
mod rotate;
mod row;
mod rows;

pub(crate) use bytes::Bytes;
pub(crate) use into::{Call, fused_supports};
pub(crate) use row::{quantize_lanes, quantize_row, row_scale};

use crate::{
    cost,
    device::Cpu,
    simd::StoredFloat,
    stream::CpuStream,
    view::{Reader, Rows, read, with_float, write},
};
use halite_hal::{Element, Result, Tensor};
use halite_kernels::{
    Checked, Support,
    quantize::{Quantize, QuantizeArgs, QuantizeSpec, RotateArgs, RotateSpec},
};
use into::{Origin, buffered, flip};
use row::Steps;
use rows::{QuantizeRows, Range, RangeOfRows};

impl Quantize for Cpu {
    fn quantize_supports(&self, spec: &QuantizeSpec) -> Support {
        crate::float_only(spec.input)
    }

    fn quantize_workspace(&self, spec: &QuantizeSpec, max_rows: usize, columns: usize) -> u64 {
        self.row_buffers(buffered(spec, Origin::Memory), max_rows, columns)
    }

    fn quantize(&self, stream: &mut CpuStream, args: Checked<QuantizeArgs<'_, Self>>) -> Result<()> {
        let (spec, out) = (args.spec, &args.out);
        self.quantize_supports(spec).require("quantize", self, spec)?;
        with_float!(spec.input, Float => {
            let x = read::<Float>(args.x)?;
            let (x, rows) = (x.data(), x.rows);
            let bytes = self.quantize_workspace(spec, rows.count(), rows.columns);
            let scratch = stream.scratch_floats("quantize", bytes)?;
            if spec.finds_one_scale() {
                self.find_steps(&args, x, rows, scratch)?;
            }
            let call = Call { spec, out, scratch, shape: [rows.count(), 1, rows.columns] };
            self.rows_to_integers::<Float>(call, cost::quantized(rows.columns), |first, count, target| {
                self.tier().run(QuantizeRows { x, rows, first, count, target });
            })
        })
    }

    fn rotate_supports(&self, spec: &RotateSpec) -> Support {
        crate::float_only(spec.dtype)
    }

    fn rotate(&self, _stream: &mut CpuStream, args: Checked<RotateArgs<'_, Self>>) -> Result<()> {
        self.rotate_supports(args.spec).require("rotate", self, args.spec)?;
        with_float!(args.spec.dtype, Float => rotate::rows::<Float>(self, &args))
    }
}

/// The first elements of a slice, at most `count`, which then begins after them.
fn take<'a, T>(slice: &mut &'a mut [T], count: usize) -> &'a mut [T] {
    let all = std::mem::take(slice);
    let (front, rest) = all.split_at_mut(count.min(all.len()));
    *slice = rest;
    front
}

impl Cpu {
    /// The one scale of all rows, and its zero point where the format has one, found and written.
    fn find_steps<T: StoredFloat + Element>(
        &self,
        args: &QuantizeArgs<'_, Cpu>,
        x: &[T],
        rows: Rows,
        mut scratch: &mut [f32],
    ) -> Result<()> {
        let (spec, out) = (args.spec, &args.out);
        let inputs = into::Inputs::of(out)?;
        let prepare = inputs.prepare(spec);
        let range = Range::default();
        // Rows of nothing may have no place in memory.
        let count = if rows.columns == 0 { 0 } else { rows.count() };
        let per_task = self.team().units_per_task(count, cost::ranged(rows.columns));
        let tasks =
            (0..count.div_ceil(per_task)).map(|task| (task * per_task, take(&mut scratch, rows.columns)));
        self.team().each(tasks, |(first, buffer)| {
            let which = first..count.min(first + per_task);
            self.tier().run(RangeOfRows { x, rows, which, prepare, buffer, range: &range });
        });
        let [below, above] = range.get();
        let steps = match spec.output.has_zero_points() {
            false => Steps::symmetric(below.max(above)),
            true => Steps::of_range(below, above, flip(spec)),
        };
        write::<f32>(out.scales)?.data().fill(steps.scale);
        if let (Some(zeros), Some(zero)) = (out.zero_points, steps.zero) {
            write::<i32>(zeros)?.data().fill(zero);
        }
        Ok(())
    }

    /// The one scale of all rows, as it stands in memory.
    fn known_steps(&self, call: &Call<'_>) -> Result<Steps> {
        let scale = one::<f32>(call.out.scales)?;
        let zero = call.out.zero_points.map(one::<i32>).transpose()?;
        Ok(Steps { scale, zero, flip: flip(call.spec) })
    }
}

/// The one element of a tensor.
fn one<T: Element>(tensor: &Tensor<Cpu>) -> Result<T> {
    let values: Reader<'_, T> = read(tensor)?;
    Ok(values.data().first().copied().unwrap_or(T::zeroed()))
}
