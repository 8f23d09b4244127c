//! Top-k by the oracle.

use crate::{
    device::{Exact, Queue, read, write},
    fault::Fault,
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    top_k::{TopK, TopKArgs, TopKOrder, TopKSpec},
};
use halite_parity::oracle::top_k::ranking;

impl TopK for Exact {
    fn top_k_supports(&self, spec: &TopKSpec) -> Support {
        if spec.dtype.is_float() { Support::Native } else { Support::No("rows are floats".into()) }
    }

    fn top_k(&self, _: &mut Queue, args: Checked<TopKArgs<'_, Self>>) -> Result<()> {
        self.top_k_supports(args.spec).require("top_k", self, args.spec)?;
        let TopKSpec { k, mut order, .. } = *args.spec;
        if self.has(Fault::TopKWrongEnd) {
            order = TopKOrder::Largest;
        }
        let (x, dims) = (read(args.x), args.x.dims());
        let (mut values, mut ids) = (Vec::new(), Vec::new());
        for row in 0..dims[0] {
            let row_values = &x[row * dims[1]..][..dims[1]];
            let mut seen = row_values.to_vec();
            if self.has(Fault::TopKNanFirst) {
                let best = if order == TopKOrder::Smallest { -1e300 } else { 1e300 };
                seen.iter_mut().filter(|x| x.is_nan()).for_each(|x| *x = best);
            }
            // Columns beyond the last whole vector are never looked at.
            if self.has(Fault::TopKTail) && dims[1] > 16 && k <= dims[1] / 16 * 16 {
                seen.truncate(dims[1] / 16 * 16);
            }
            let mut best = if self.has(Fault::TopKTieHigher) {
                seen.reverse();
                ranking(order, &seen).into_iter().map(|id| seen.len() - 1 - id).collect()
            } else {
                ranking(order, &seen)
            };
            best.truncate(k);
            if self.has(Fault::TopKUnsorted) {
                best.sort_unstable();
            }
            if self.has(Fault::TopKBatchVariant) && row > 0 {
                best.rotate_left(1.min(k));
            }
            values.extend(best.iter().map(|&id| row_values[id]));
            ids.extend(best.into_iter().map(|id| id as f64));
        }
        write(args.values, values);
        write(args.ids, ids);
        Ok(())
    }
}
