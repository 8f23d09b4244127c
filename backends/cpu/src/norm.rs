//! RMS and layer norm, with the residual before and the quantisation after.

use crate::{
    device::Cpu,
    quantize::quantize_row,
    simd::{Isa, Kernel, LANES, StoredFloat},
    stream::CpuStream,
    view::{Rows, read, with_float, write},
};
use halite_hal::{Result, Tensor};
use halite_kernels::{
    Checked, Support,
    norm::{Norm, NormArgs, NormKind, NormOut, NormSpec},
};

impl Norm for Cpu {
    fn norm_supports(&self, _spec: &NormSpec) -> Support {
        Support::Native
    }

    fn norm(&self, _stream: &mut CpuStream, args: Checked<NormArgs<'_, Self>>) -> Result<()> {
        with_float!(args.spec.dtype, Float => {
            let x = read::<Float>(args.x)?;
            let weight = read::<f32>(args.weight)?;
            let bias = args.bias.map(read::<f32>).transpose()?;
            let formula = Formula {
                kind: args.spec.kind,
                eps: args.spec.eps,
                weight: weight.data(),
                bias: bias.as_ref().map(|bias| bias.data()),
            };
            match &args.residual {
                None => self.norm_into(x.data(), x.rows, &formula, &args.out),
                Some(both) => {
                    let residual = read::<Float>(both.residual)?;
                    let mut sum = write::<Float>(both.sum)?;
                    self.tier().run(AddRows {
                        x: x.data(),
                        rows: x.rows,
                        residual: residual.data(),
                        residual_rows: residual.rows,
                        sum_rows: sum.rows,
                        sum: sum.data(),
                    });
                    let rows = sum.rows;
                    self.norm_into(sum.data(), rows, &formula, &args.out)
                }
            }
        })
    }
}

/// What every row goes through.
struct Formula<'a> {
    kind: NormKind,
    eps: f32,
    weight: &'a [f32],
    bias: Option<&'a [f32]>,
}

impl Cpu {
    fn norm_into<T: StoredFloat + halite_hal::Element>(
        &self,
        x: &[T],
        rows: Rows,
        formula: &Formula<'_>,
        out: &NormOut<'_, Cpu>,
    ) -> Result<()> {
        match out {
            NormOut::Float(out) => {
                let mut out = write::<T>(out)?;
                let layout = out.rows;
                let per_task = self.team().units_per_task(rows.outer, rows.inner * rows.columns / 2);
                let tasks = out.data().chunks_mut(layout.outer_stride * per_task).enumerate();
                self.team().each(tasks, |(task, out)| {
                    let target = FloatRows { out, layout };
                    self.tier().run(NormRows {
                        x,
                        rows,
                        first: task * per_task,
                        count: per_task,
                        formula,
                        target,
                    });
                });
                Ok(())
            }
            NormOut::Int8PerToken { q, scales } => self.norm_quantized(x, rows, formula, q, scales),
            // A form this backend does not know yet cannot be checked into arguments for it either.
            _ => Err(crate::unsupported("norm", "this form of output", out)),
        }
    }

    fn norm_quantized<T: StoredFloat>(
        &self,
        x: &[T],
        rows: Rows,
        formula: &Formula<'_>,
        q: &Tensor<Cpu>,
        scales: &Tensor<Cpu>,
    ) -> Result<()> {
        let (mut q, mut scales) = (write::<i8>(q)?, write::<f32>(scales)?);
        let (layout, scale_layout) = (q.rows, scales.rows);
        // Scales are [tokens] or [tokens, heads]: either way one step of the outer dimension is a token's.
        let scale_stride = if rows.inner == 1 { 1 } else { scale_layout.outer_stride };
        let per_task = self.team().units_per_task(rows.outer, rows.inner * rows.columns / 2);
        let tasks = q
            .data()
            .chunks_mut(layout.outer_stride * per_task)
            .zip(scales.data().chunks_mut(scale_stride * per_task))
            .enumerate();
        self.team().each(tasks, |(task, (q, scales))| {
            let target = Int8Rows { q, layout, scales, scale_stride };
            self.tier().run(NormRows { x, rows, first: task * per_task, count: per_task, formula, target });
        });
        Ok(())
    }
}

/// Where a normalised row goes.
trait Target {
    /// Takes row `(outer, inner)` of the task's part, whose vector from element `start` on is `y(start)`.
    fn store<I: Isa>(&mut self, isa: I, outer: usize, inner: usize, y: impl Fn(usize) -> I::F32);
}

struct FloatRows<'a, T> {
    out: &'a mut [T],
    layout: Rows,
}

impl<T: StoredFloat> Target for FloatRows<'_, T> {
    #[inline(always)]
    fn store<I: Isa>(&mut self, isa: I, outer: usize, inner: usize, y: impl Fn(usize) -> I::F32) {
        let out = &mut self.out[self.layout.start(outer, inner)..][..self.layout.columns];
        for (vector, out) in out.chunks_mut(LANES).enumerate() {
            T::store_partial(isa, y(vector * LANES), out);
        }
    }
}

struct Int8Rows<'a> {
    q: &'a mut [i8],
    layout: Rows,
    scales: &'a mut [f32],
    scale_stride: usize,
}

impl Target for Int8Rows<'_> {
    #[inline(always)]
    fn store<I: Isa>(&mut self, isa: I, outer: usize, inner: usize, y: impl Fn(usize) -> I::F32) {
        let columns = self.layout.columns;
        let q = &mut self.q[self.layout.start(outer, inner)..][..columns];
        self.scales[outer * self.scale_stride + inner] = quantize_row(isa, columns, q, y);
    }
}

/// Up to `count` outer rows of `x` from `first` on.
struct NormRows<'a, T, O> {
    x: &'a [T],
    rows: Rows,
    first: usize,
    count: usize,
    formula: &'a Formula<'a>,
    target: O,
}

impl<T: StoredFloat, O: Target> Kernel for NormRows<'_, T, O> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self, isa: I) {
        let Formula { kind, eps, weight, bias } = *self.formula;
        let (rows, columns) = (self.rows, self.rows.columns);
        let vector =
            |values: &'_ [f32], start: usize| isa.load_partial(&values[start..columns.min(start + LANES)]);
        for outer in 0..self.count.min(rows.outer - self.first) {
            for inner in 0..rows.inner {
                let x = &self.x[rows.start(self.first + outer, inner)..][..columns];
                let at = |start: usize| T::load_partial(isa, &x[start..columns.min(start + LANES)]);
                let mean = match kind {
                    NormKind::Layer => sum_of(isa, columns, at) / columns as f32,
                    _ => 0.0,
                };
                let mean_lanes = isa.splat(mean);
                let deviation = |start: usize| match kind {
                    // Lanes beyond the row must stay zero, so they are cut off after the subtraction.
                    NormKind::Layer => {
                        let inside = crate::simd::first_lanes(columns - start);
                        isa.select(inside, isa.sub(at(start), mean_lanes), isa.splat(0.0))
                    }
                    _ => at(start),
                };
                let square = |start: usize| {
                    let d = deviation(start);
                    isa.mul(d, d)
                };
                let variance = sum_of(isa, columns, square) / columns as f32;
                let factor = isa.splat(1.0 / (variance + eps).sqrt());
                self.target.store(isa, outer, inner, |start| {
                    let y = isa.mul(isa.mul(deviation(start), factor), vector(weight, start));
                    match bias {
                        Some(bias) => isa.add(y, vector(bias, start)),
                        None => y,
                    }
                });
            }
        }
    }
}

/// The sum over a row of `columns` elements: 16 running sums in ascending order, then the lanes' tree.
#[inline(always)]
fn sum_of<I: Isa>(isa: I, columns: usize, at: impl Fn(usize) -> I::F32) -> f32 {
    let mut sum = isa.splat(0.0);
    for start in (0..columns).step_by(LANES) {
        sum = isa.add(sum, at(start));
    }
    isa.sum(sum)
}

/// `sum = x + residual`, row by row.
struct AddRows<'a, T> {
    x: &'a [T],
    rows: Rows,
    residual: &'a [T],
    residual_rows: Rows,
    sum: &'a mut [T],
    sum_rows: Rows,
}

impl<T: StoredFloat> Kernel for AddRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for row in 0..self.rows.count() {
            let x = self.rows.row(self.x, row);
            let residual = self.residual_rows.row(self.residual, row);
            let start = self.sum_rows.start(row / self.rows.inner, row % self.rows.inner);
            let sum = &mut self.sum[start..][..x.len()];
            for ((x, residual), sum) in x.chunks(LANES).zip(residual.chunks(LANES)).zip(sum.chunks_mut(LANES))
            {
                let total = isa.add(T::load_partial(isa, x), T::load_partial(isa, residual));
                T::store_partial(isa, total, sum);
            }
        }
    }
}
