//! Quantisation by the oracle.

use crate::{
    device::{Exact, Queue, read, write},
    fault::Fault,
};
use halite_hal::{DType, Result};
use halite_kernels::{
    Checked, Support,
    linear::ActivationFormat,
    quantize::{
        Quantize, QuantizeArgs, QuantizeOut, QuantizeSpec, RotateArgs, RotateSpec, Rotation, ScaleSource,
    },
};
use halite_parity::{
    oracle::quantize::{asymmetric_by_the_letter, by_the_letter, known_by_the_letter, prepared, smoothed},
    tolerance::Bound,
};

impl Quantize for Exact {
    fn quantize_supports(&self, _: &QuantizeSpec) -> Support {
        Support::Native
    }

    fn quantize_workspace(&self, _: &QuantizeSpec, _: usize, _: usize) -> u64 {
        0
    }

    fn rotate_supports(&self, _: &RotateSpec) -> Support {
        Support::Native
    }

    fn rotate(&self, _: &mut Queue, args: Checked<RotateArgs<'_, Self>>) -> Result<()> {
        let (mut block, columns) = (args.spec.block, args.x.dims()[1]);
        if self.has(Fault::RotateHalfBlocks) {
            block = block.div_ceil(2);
        }
        let x = read(args.x);
        let bounds: Vec<Bound> = x.iter().map(|&x| Bound::exact(x)).collect();
        let y = prepared(&bounds, columns, None, &[], Some(block));
        let mut y: Vec<f64> = y.into_iter().map(|y| y.value).collect();
        if self.has(Fault::RotateUnscaled) {
            y.iter_mut().for_each(|y| *y *= (block as f64).sqrt());
        }
        if self.has(Fault::RotateFirstBlockOnly) {
            for (row, x) in y.chunks_mut(columns.max(1)).zip(x.chunks(columns.max(1))) {
                row.iter_mut().zip(x).skip(block).for_each(|(y, x)| *y = *x);
            }
        }
        if self.has(Fault::RotateBatchVariant) && args.x.dims()[0] > 4 {
            y.iter_mut().for_each(|y| *y *= 1.0 + 1e-6);
        }
        write(args.out, y);
        Ok(())
    }

    fn quantize(&self, _: &mut Queue, args: Checked<QuantizeArgs<'_, Self>>) -> Result<()> {
        self.integers(args.spec, &args.out, &read(args.x));
        Ok(())
    }
}

impl Exact {
    /// Rows as integers, of a call of its own or at the end of another operator's pass.
    pub(crate) fn integers(&self, spec: &QuantizeSpec, out: &QuantizeOut<'_, Exact>, x: &[f64]) {
        let columns = out.q.dims().last().copied().unwrap_or(0);
        let factors = out.smoothing.map(read).filter(|_| !self.has(Fault::QuantizeNoSmoothing));
        let outliers = out.outliers.map(|outliers| read(outliers.columns)).unwrap_or_default();
        let outliers: Vec<i32> = outliers.into_iter().map(|column| column as i32).collect();
        let block = if let Rotation::Hadamard { block } = spec.rotation { Some(block) } else { None };
        let aside: &[i32] = if self.has(Fault::QuantizeOutliersStay) { &[] } else { &outliers };
        let x: Vec<Bound> = x.iter().map(|&x| Bound::exact(x)).collect();
        let y = prepared(&x, columns, factors.as_deref(), aside, block);
        let mut y: Vec<f32> = y.into_iter().map(|y| y.value as f32).collect();
        if let Some(block) = block.filter(|_| self.has(Fault::QuantizeRotationUnscaled)) {
            y.iter_mut().for_each(|y| *y *= (block as f32).sqrt());
        }
        if let Some(kept) = out.outliers {
            let factors = factors.as_deref().filter(|_| !self.has(Fault::QuantizeOutliersUnsmoothed));
            let values = x.chunks(columns).flat_map(|row| {
                let row = smoothed(row, factors);
                let of = |column: &i32| Some(row.get(usize::try_from(*column).ok()?)?.value);
                outliers.iter().map(|column| of(column).unwrap_or(0.0)).collect::<Vec<f64>>()
            });
            write(kept.values, values);
        }
        self.write_quantized(spec, out, &y, columns);
    }

    fn write_quantized(&self, spec: &QuantizeSpec, out: &QuantizeOut<'_, Exact>, y: &[f32], columns: usize) {
        let format = spec.output;
        let least = if format.dtype() == DType::U8 { 0.0 } else { -128.0 };
        let rows: usize = out.q.dims().iter().rev().skip(1).product();
        if spec.scales == ScaleSource::Static && !self.has(Fault::QuantizeIgnoresStaticScale) {
            let (scale, zero) =
                (read(out.scales)[0] as f32, out.zero_points.map(|zeros| read(zeros)[0] as i32));
            let mut q = known_by_the_letter(y, scale, zero, least);
            if self.has(Fault::QuantizeStaticWraps) {
                let steps =
                    |y: &f32| ((y / scale).round_ties_even() as i32).saturating_add(zero.unwrap_or(0));
                let wrapped =
                    y.iter().map(|y| steps(y).wrapping_sub(least as i32).rem_euclid(256) + least as i32);
                q = wrapped.collect();
            }
            return write(out.q, q.into_iter().map(f64::from));
        }
        let size = match format {
            ActivationFormat::Int8PerTensor | ActivationFormat::AsymmetricPerTensor(_) => y.len(),
            ActivationFormat::Int8PerGroup { group_size } => group_size,
            _ => columns,
        };
        // Rows of nothing have scales too, and groups end with their row.
        let parts: Vec<&[f32]> = match (format, columns) {
            (ActivationFormat::Int8PerGroup { .. }, 0) => Vec::new(),
            (ActivationFormat::Int8PerGroup { .. }, _) => {
                y.chunks(columns).flat_map(|row| row.chunks(size)).collect()
            }
            _ if y.is_empty() && format.scale_dims(rows, columns) == [1] => vec![&[]],
            (_, 0) => vec![&[]; rows],
            _ => y.chunks(size).collect(),
        };
        let (mut q, mut scales, mut zeros) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            if format.has_zero_points() {
                let (part_q, scale, mut zero) = asymmetric_by_the_letter(part, least);
                if self.has(Fault::QuantizeZeroPointHigh) {
                    zero += 1;
                }
                q.extend(part_q.into_iter().map(f64::from));
                scales.push(f64::from(scale));
                zeros.push(f64::from(zero));
            } else {
                let part: Vec<f64> = part.iter().copied().map(f64::from).collect();
                let (part_q, scale) = self.quantised(1, part.len(), &part);
                q.extend(part_q);
                scales.extend(scale);
            }
        }
        if self.has(Fault::QuantizeFirstGroupScale) && matches!(format, ActivationFormat::Int8PerGroup { .. })
        {
            let groups = out.scales.dims().last().map_or(1, |&groups| groups.max(1));
            scales.chunks_mut(groups).for_each(|row| row.fill(row[0]));
        }
        if self.has(Fault::QuantizeBatchVariant) && rows > 4 {
            scales.iter_mut().for_each(|scale| *scale *= 1.0 + 1e-6);
        }
        write(out.q, q);
        write(out.scales, scales);
        if let Some(tensor) = out.zero_points {
            write(tensor, zeros);
        }
    }

    /// Symmetric, a scale for each row.
    pub(crate) fn quantised(&self, rows: usize, columns: usize, x: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (mut q, mut scales) = (Vec::new(), Vec::new());
        for row in 0..rows {
            let mut row: Vec<f32> = x[row * columns..][..columns].iter().map(|&x| x as f32).collect();
            if self.has(Fault::QuantizeIgnoresNan) {
                row.iter_mut().filter(|x| x.is_nan()).for_each(|x| *x = 0.0);
            }
            let (mut row_q, mut scale) = by_the_letter(&row);
            if self.has(Fault::QuantizeLastColumnNotInScale) && columns > 1 {
                let last = row.last().copied();
                scale = by_the_letter(&row[..columns - 1]).1;
                let again = last.map(|x| (x / scale).round_ties_even().clamp(-127.0, 127.0) as i8);
                row_q.iter_mut().zip(&row).for_each(|(q, x)| *q = (x / scale).round_ties_even() as i8);
                row_q.last_mut().into_iter().zip(again).for_each(|(q, again)| *q = again);
            }
            for (q, x) in row_q.iter_mut().zip(&row).filter(|_| scale.is_finite()) {
                let ratio = x * (1.0 / scale);
                if self.has(Fault::QuantizeTruncates) {
                    *q = ratio as i8;
                } else if self.has(Fault::QuantizeTiesAway) {
                    *q = ratio.round().clamp(-127.0, 127.0) as i8;
                }
            }
            if self.has(Fault::QuantizeZeroScale) && row.iter().all(|&x| x == 0.0) {
                scale = 0.0;
            }
            q.extend(row_q.into_iter().map(f64::from));
            scales.push(f64::from(scale));
        }
        (q, scales)
    }
}
