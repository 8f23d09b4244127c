//! RMS and layer norm, with a residual before or after and the quantisation after.

use crate::{
    cost,
    device::Cpu,
    quantize::{Call, fused_supports},
    row::{FloatRows, Row, StoredRow, Target, sum_of},
    simd::{Isa, Kernel, LANES, StoredFloat, first_lanes},
    stream::CpuStream,
    view::{Reader, Rows, read, with_float, write},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    norm::{Norm, NormArgs, NormKind, NormOut, NormResidual, NormSpec},
    quantize::QuantizeSpec,
};

impl Norm for Cpu {
    fn norm_supports(&self, spec: &NormSpec) -> Support {
        crate::float_only(spec.dtype)
    }

    fn norm_quantize_supports(&self, spec: &NormSpec, quantize: &QuantizeSpec) -> Support {
        fused_supports(self.norm_supports(spec), quantize)
    }

    fn norm_quantize_workspace(
        &self,
        _: &NormSpec,
        quantize: &QuantizeSpec,
        max_rows: usize,
        columns: usize,
    ) -> u64 {
        self.fused_workspace(quantize, max_rows, columns)
    }

    fn norm(&self, stream: &mut CpuStream, args: Checked<NormArgs<'_, Self>>) -> Result<()> {
        self.norm_supports(args.spec).require("norm", self, args.spec)?;
        let scratch = match &args.out {
            NormOut::Quantized { spec, .. } => {
                let (columns, rows) = args.x.dims().split_last().map_or((0, &[][..]), |(n, rows)| (*n, rows));
                let bytes = self.norm_quantize_workspace(args.spec, spec, rows.iter().product(), columns);
                stream.scratch_floats("norm", bytes)?
            }
            _ => &mut [],
        };
        with_float!(args.spec.dtype, Float => {
            let x = read::<Float>(args.x)?;
            let weight = args.weight.map(read::<f32>).transpose()?;
            let bias = args.bias.map(read::<f32>).transpose()?;
            let formula = Formula {
                kind: args.spec.kind,
                eps: args.spec.eps,
                weight: weight.as_ref().map(PerHead::of),
                weight_offset: args.spec.weight_offset,
                bias: bias.as_ref().map(PerHead::of),
            };
            match &args.residual {
                None => self.norm_into(x.data(), x.rows, &formula, None, (&args.out, scratch)),
                Some(NormResidual::Before { residual, sum }) => {
                    let residual = read::<Float>(residual)?;
                    let mut sum = write::<Float>(sum)?;
                    self.tier().run(AddRows {
                        x: x.data(),
                        rows: x.rows,
                        residual: residual.data(),
                        residual_rows: residual.rows,
                        sum_rows: sum.rows,
                        sum: sum.data(),
                    });
                    let rows = sum.rows;
                    self.norm_into(sum.data(), rows, &formula, None, (&args.out, scratch))
                }
                Some(NormResidual::After { residual }) => {
                    let residual = read::<Float>(residual)?;
                    let after = Some((residual.data(), residual.rows));
                    self.norm_into(x.data(), x.rows, &formula, after, (&args.out, scratch))
                }
                Some(other) => Err(crate::unsupported("norm", "this form of residual", other)),
            }
        })
    }
}

/// What every row goes through.
struct Formula<'a> {
    kind: NormKind,
    eps: f32,
    weight: Option<PerHead<'a>>,
    weight_offset: f32,
    bias: Option<PerHead<'a>>,
}

/// Weights or biases: the same for all rows, or those of the row's head.
#[derive(Clone, Copy)]
struct PerHead<'a> {
    values: &'a [f32],
    rows: Rows,
}

impl<'a> PerHead<'a> {
    fn of(reader: &'a Reader<'_, f32>) -> Self {
        PerHead { values: reader.data(), rows: reader.rows }
    }

    fn head(&self, head: usize) -> &'a [f32] {
        // One row serves all heads.
        let head = if self.rows.outer == 1 { 0 } else { head };
        &self.values[self.rows.start(head, 0)..][..self.rows.columns]
    }
}

impl Cpu {
    fn norm_into<T: StoredFloat + halite_hal::Element>(
        &self,
        x: &[T],
        rows: Rows,
        formula: &Formula<'_>,
        after: Option<(&[T], Rows)>,
        (out, scratch): (&NormOut<'_, Cpu>, &mut [f32]),
    ) -> Result<()> {
        let nanoseconds = cost::normalized(rows.inner, rows.columns);
        match out {
            NormOut::Float(out) => {
                let mut out = write::<T>(out)?;
                let layout = out.rows;
                self.each_rows(&mut out, nanoseconds, |first, count, out| {
                    let target = FloatRows { out, layout };
                    self.tier().run(NormRows { x, rows, first, count, formula, after, target });
                });
                Ok(())
            }
            NormOut::Quantized { spec, out } => {
                let call = Call { spec, out, scratch, shape: [rows.outer, rows.inner, rows.columns] };
                self.rows_to_integers::<f32>(call, nanoseconds, |first, count, target| {
                    self.tier().run(NormRows { x, rows, first, count, formula, after, target });
                })
            }
            // A form this backend does not know yet cannot be checked into arguments for it either.
            _ => Err(crate::unsupported("norm", "this form of output", out)),
        }
    }
}

/// A row and the residual that comes after it.
struct Plus<'a, R, T> {
    y: &'a R,
    residual: StoredRow<'a, T>,
}

impl<R: Row, T: StoredFloat> Row for Plus<'_, R, T> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.y.len()
    }

    #[inline(always)]
    fn at<I: Isa>(&self, isa: I, start: usize) -> I::F32 {
        isa.add(self.residual.at(isa, start), self.y.at(isa, start))
    }
}

/// Up to `count` outer rows of `x` from `first` on.
struct NormRows<'a, T, O> {
    x: &'a [T],
    rows: Rows,
    first: usize,
    count: usize,
    formula: &'a Formula<'a>,
    /// Added to the rows after the norm.
    after: Option<(&'a [T], Rows)>,
    target: O,
}

impl<T: StoredFloat, O: Target> Kernel for NormRows<'_, T, O> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self, isa: I) {
        let formula = self.formula;
        let (rows, columns) = (self.rows, self.rows.columns);
        for outer in 0..self.count.min(rows.outer - self.first) {
            for inner in 0..rows.inner {
                let row = StoredRow(&self.x[rows.start(self.first + outer, inner)..][..columns]);
                let mut x = Scaled { row, by: 1.0 };
                let mut moments = Moments::of(isa, &x, formula);
                x.by = moments.factor();
                if x.by != 1.0 {
                    moments = Moments::of(isa, &x, formula);
                }
                let (mean, factor) = (moments.mean, 1.0 / moments.square.sqrt());
                let weight = formula.weight.map(|weight| StoredRow(weight.head(inner)));
                let bias = formula.bias.map(|bias| StoredRow(bias.head(inner)));
                let y = &Normed { x, mean, factor, weight, weight_offset: formula.weight_offset, bias };
                match self.after {
                    None => self.target.store(isa, outer, inner, y),
                    Some((residual, rows)) => {
                        let start = rows.start(self.first + outer, inner);
                        let residual = StoredRow(&residual[start..][..columns]);
                        self.target.store(isa, outer, inner, &Plus { y, residual });
                    }
                }
            }
        }
    }
}

/// A row times a power of two, which changes no digit.
#[derive(Clone, Copy)]
struct Scaled<'a, T> {
    row: StoredRow<'a, T>,
    by: f32,
}

impl<T: StoredFloat> Row for Scaled<'_, T> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.row.len()
    }

    #[inline(always)]
    fn at<I: Isa>(&self, isa: I, start: usize) -> I::F32 {
        isa.mul(self.row.at(isa, start), isa.splat(self.by))
    }
}

/// What a row is divided by the root of, and what is taken off before.
struct Moments {
    mean: Option<f32>,
    /// `mean(x²) + eps`, or `variance + eps`.
    square: f32,
}

impl Moments {
    #[inline(always)]
    fn of<I: Isa, T: StoredFloat>(isa: I, x: &Scaled<'_, T>, formula: &Formula<'_>) -> Self {
        let columns = x.len() as f32;
        let mean = match formula.kind {
            NormKind::Layer => Some(sum_of(isa, x) / columns),
            _ => None,
        };
        let variance = sum_of(isa, &Squares { x: *x, mean }) / columns;
        // Not by the square of `by`, which F32 may not hold.
        Moments { mean, square: variance + formula.eps * x.by * x.by }
    }

    /// By what a row should be multiplied whose moments these are, so that its squares neither overflow nor vanish.
    fn factor(&self) -> f32 {
        if !self.square.is_finite() {
            2f32.powi(-100)
        } else if self.square < 2f32.powi(-100) {
            2f32.powi(90)
        } else {
            1.0
        }
    }
}

/// `x - mean`, where there is one.
#[inline(always)]
fn deviation<I: Isa>(isa: I, x: &impl Row, mean: Option<f32>, start: usize) -> I::F32 {
    match mean {
        None => x.at(isa, start),
        Some(mean) => {
            // Lanes beyond the row stay zero: cut off after the subtraction.
            let inside = first_lanes(x.len() - start);
            isa.select(inside, isa.sub(x.at(isa, start), isa.splat(mean)), isa.splat(0.0))
        }
    }
}

/// The squares whose mean is the variance, or the mean square.
struct Squares<'a, T> {
    x: Scaled<'a, T>,
    mean: Option<f32>,
}

impl<T: StoredFloat> Row for Squares<'_, T> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.x.len()
    }

    #[inline(always)]
    fn at<I: Isa>(&self, isa: I, start: usize) -> I::F32 {
        let deviation = deviation(isa, &self.x, self.mean, start);
        isa.mul(deviation, deviation)
    }
}

/// A row after the norm.
struct Normed<'a, T> {
    x: Scaled<'a, T>,
    mean: Option<f32>,
    factor: f32,
    weight: Option<StoredRow<'a, f32>>,
    weight_offset: f32,
    bias: Option<StoredRow<'a, f32>>,
}

impl<T: StoredFloat> Row for Normed<'_, T> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.x.len()
    }

    #[inline(always)]
    fn at<I: Isa>(&self, isa: I, start: usize) -> I::F32 {
        let mut y = isa.mul(deviation(isa, &self.x, self.mean, start), isa.splat(self.factor));
        if let Some(weight) = self.weight {
            let mut weight = weight.at(isa, start);
            // Adding 0 would cost an operation. Beyond the row `y` is 0, whatever the sum is there.
            if self.weight_offset != 0.0 {
                weight = isa.add(weight, isa.splat(self.weight_offset));
            }
            y = isa.mul(y, weight);
        }
        match self.bias {
            Some(bias) => isa.add(y, bias.at(isa, start)),
            None => y,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_scaled_where_their_squares_would_not_be_numbers() {
        let (small, large, one) = (2f32.powi(90), 2f32.powi(-100), 1.0);
        for (square, expected) in [
            (0.0, small),
            (f32::from_bits(1), small),
            (2f32.powi(-100).next_down(), small),
            (2f32.powi(-100), one),
            (1.0, one),
            (f32::MAX, one),
            (f32::INFINITY, large),
            (f32::NAN, large),
        ] {
            assert_eq!(Moments { mean: None, square }.factor(), expected, "{square:e}");
        }
    }
}
