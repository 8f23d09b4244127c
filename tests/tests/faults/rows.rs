//! Quantisation of rows.

use crate::{
    device::{Exact, Queue, read, write},
    fault::Fault,
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    quantize::{Quantize, QuantizeArgs, QuantizeSpec},
};
use halite_parity::oracle;

impl Quantize for Exact {
    fn quantize_supports(&self, _: &QuantizeSpec) -> Support {
        Support::Native
    }

    fn quantize(&self, _: &mut Queue, args: Checked<QuantizeArgs<'_, Self>>) -> Result<()> {
        let columns = args.x.dims()[1];
        let (q, scales) = self.quantised(args.x.dims()[0], columns, &read(args.x));
        write(args.q, q);
        write(args.scales, scales);
        Ok(())
    }
}

impl Exact {
    pub(crate) fn quantised(&self, rows: usize, columns: usize, x: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (mut q, mut scales) = (Vec::new(), Vec::new());
        for row in 0..rows {
            let mut row: Vec<f32> = x[row * columns..][..columns].iter().map(|&x| x as f32).collect();
            if self.has(Fault::QuantizeIgnoresNan) {
                row.iter_mut().filter(|x| x.is_nan()).for_each(|x| *x = 0.0);
            }
            let (mut row_q, mut scale) = oracle::quantize::by_the_letter(&row);
            if self.has(Fault::QuantizeLastColumnNotInScale) && columns > 1 {
                let last = row.last().copied();
                scale = oracle::quantize::by_the_letter(&row[..columns - 1]).1;
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
