//! The `k` best of each row, found in one pass: the output row itself is the heap of the best so far, its worst on top.

use crate::{
    device::Cpu,
    simd::{Isa, Kernel, LANES, Mask, StoredFloat, first_lanes},
    stream::CpuStream,
    view::{Rows, read, with_float, write},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    top_k::{TopK, TopKArgs, TopKOrder, TopKSpec},
};

impl TopK for Cpu {
    fn top_k_supports(&self, spec: &TopKSpec) -> Support {
        crate::float_only(spec.dtype)
    }

    fn top_k(&self, _stream: &mut CpuStream, args: Checked<TopKArgs<'_, Self>>) -> Result<()> {
        self.top_k_supports(args.spec).require("top_k", self, args.spec)?;
        let TopKSpec { k, order, .. } = *args.spec;
        with_float!(args.spec.dtype, Float => {
            let x = read::<Float>(args.x)?;
            let (mut values, mut ids) = (write::<Float>(args.values)?, write::<i32>(args.ids)?);
            if k == 0 {
                return Ok(());
            }
            let (rows, value_rows, id_rows): (Rows, Rows, Rows) = (x.rows, values.rows, ids.rows);
            let x = x.data();
            let values = values.data().chunks_mut(value_rows.outer_stride);
            let ids = ids.data().chunks_mut(id_rows.outer_stride);
            self.team().each(values.zip(ids).enumerate(), |(row, (values, ids))| {
                let best = Best { values: &mut values[..k], ids: &mut ids[..k], order };
                self.tier().run(Select { x: rows.row(x, row), best });
            });
            Ok(())
        })
    }
}

/// The best elements of `x`, as many as `best` has room for and at most all of them.
pub(crate) struct Select<'a, T> {
    pub(crate) x: &'a [T],
    pub(crate) best: Best<'a, T>,
}

/// The best so far, as a binary heap whose parents are worse than their children.
pub(crate) struct Best<'a, T> {
    pub(crate) values: &'a mut [T],
    /// Columns of the row.
    pub(crate) ids: &'a mut [i32],
    pub(crate) order: TopKOrder,
}

impl<T: StoredFloat> Kernel for Select<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Select { x, mut best } = self;
        let k = best.ids.len();
        for (place, &value) in x[..k].iter().enumerate() {
            (best.values[place], best.ids[place]) = (value, place as i32);
        }
        (0..k / 2).rev().for_each(|place| best.sink(place, k));
        for start in (k..x.len()).step_by(LANES) {
            let chunk = &x[start..x.len().min(start + LANES)];
            let mut better = best.beaten_by(isa, T::load_partial(isa, chunk)) & first_lanes(chunk.len());
            while better != 0 {
                let lane = better.trailing_zeros() as usize;
                better &= better - 1;
                // The top may have risen since the lanes were compared.
                if best.key(chunk[lane]) > best.key(best.values[0]) {
                    (best.values[0], best.ids[0]) = (chunk[lane], (start + lane) as i32);
                    best.sink(0, k);
                }
            }
        }
        // The worst goes to the end, and what is before it is a heap again.
        for end in (1..k).rev() {
            best.swap(0, end);
            best.sink(0, end);
        }
    }
}

impl<T: StoredFloat> Best<'_, T> {
    /// Lanes of `x` that may belong among the best. An equal value comes later in the row, so it does not.
    #[inline(always)]
    fn beaten_by<I: Isa>(&self, isa: I, x: I::F32) -> Mask {
        let top = self.values[0].widen();
        let worst = isa.splat(top);
        match self.order {
            _ if top.is_nan() => isa.equal(x, x),
            TopKOrder::Smallest => isa.less(x, worst),
            _ => isa.less(worst, x),
        }
    }

    /// A number that is greater for a better value, and the same for 0 and -0.
    #[inline(always)]
    fn key(&self, value: T) -> i64 {
        let x = value.widen();
        if x.is_nan() {
            return i64::MIN;
        }
        let magnitude = i64::from(x.to_bits() & 0x7fff_ffff);
        let ascending = if x.is_sign_negative() { -magnitude } else { magnitude };
        if self.order == TopKOrder::Smallest { -ascending } else { ascending }
    }

    /// Whether the element at `a` comes after the one at `b` in the row's order.
    #[inline(always)]
    fn worse(&self, a: usize, b: usize) -> bool {
        (self.key(self.values[a]), -self.ids[a]) < (self.key(self.values[b]), -self.ids[b])
    }

    #[inline(always)]
    fn swap(&mut self, a: usize, b: usize) {
        self.values.swap(a, b);
        self.ids.swap(a, b);
    }

    /// Moves the element at `place` down until no child of the first `end` is worse.
    #[inline(always)]
    fn sink(&mut self, mut place: usize, end: usize) {
        loop {
            let mut worst = place;
            for child in 2 * place + 1..end.min(2 * place + 3) {
                if self.worse(child, worst) {
                    worst = child;
                }
            }
            if worst == place {
                return;
            }
            self.swap(place, worst);
            place = worst;
        }
    }
}
