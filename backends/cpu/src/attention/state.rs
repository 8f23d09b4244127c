//! What attention knows of a query row after some of its parts, and how two such states become one.
//!
//! With scores `s` of the positions seen so far, a row's state is their maximum `m`, `l = sum e^(s - m)` and
//! `o = sum e^(s - m) v`. The empty state is `m = -inf`, `l = 0`, `o = 0`. Two states become one by
//!
//! ```text
//! m' = max(m1, m2)     l' = l1 e^(m1 - m') + l2 e^(m2 - m')     o' likewise
//! ```
//!
//! (the online softmax of Milakov and Gimelshein, arXiv:1805.02867). Parts are always merged left to right, each
//! computed from the empty state, so it does not matter which thread computed which.

use bytemuck::{Pod, Zeroable};

use super::stage::CHUNK;
use crate::simd::{Isa, LANES, Mask, StoredFloat, first_lanes, math};

/// A cache line of scratch memory; being made of these, scratch is aligned for vectors.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Line([f32; LANES]);

/// The most rows of a tile.
pub(crate) const MAX_ROWS: usize = 12;

/// The states of up to 12 query rows.
#[derive(Debug)]
pub(crate) struct State<'a> {
    rows: usize,
    stride: usize,
    /// `[16]`: the rows' maxima.
    pub(super) m: &'a mut [f32; LANES],
    /// `[16]`: the rows' sums.
    pub(super) l: &'a mut [f32; LANES],
    /// `[rows][v_dim padded to 32]`
    pub(super) o: &'a mut [f32],
}

impl<'a> State<'a> {
    /// Lines of scratch for the states of `rows` rows.
    pub(crate) const fn lines(rows: usize, v_dim: usize) -> usize {
        (v_dim.div_ceil(CHUNK).saturating_mul(CHUNK / LANES)).saturating_mul(rows).saturating_add(2)
    }

    /// States that lie in [`State::lines`] lines of scratch: whatever an earlier handle left there. New scratch needs
    /// [`State::clear`].
    ///
    /// # Panics
    /// Where `scratch` has fewer lines or there are more than 12 rows.
    pub(crate) fn new(rows: usize, v_dim: usize, scratch: &'a mut [Line]) -> Self {
        assert!(rows <= MAX_ROWS, "tiles of {rows} rows");
        let (ml, o) = scratch[..Self::lines(rows, v_dim)].split_at_mut(2);
        let (m, l) = ml.split_at_mut(1);
        let o = bytemuck::cast_slice_mut(o);
        Self { rows, stride: v_dim.div_ceil(CHUNK) * CHUNK, m: &mut m[0].0, l: &mut l[0].0, o }
    }

    /// Makes every row empty.
    pub(crate) fn clear(&mut self) {
        self.m.fill(f32::NEG_INFINITY);
        self.l.fill(0.0);
        self.o.fill(0.0);
    }

    /// Makes a row of a cleared state what [`State::row`] told of it; `values` is `[v_dim]`.
    pub(super) fn take_over(&mut self, row: usize, max: f32, sum: f32, values: &[f32]) {
        (self.m[row], self.l[row]) = (max, sum);
        self.o[row * self.stride..][..values.len()].copy_from_slice(values);
    }

    /// A row's maximum, sum and values, `[v_dim padded to 32]`.
    pub(super) fn row(&self, row: usize) -> (f32, f32, &[f32]) {
        (self.m[row], self.l[row], &self.o[row * self.stride..][..self.stride])
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Merges row maxima and sums with those of a later part. What remains is `o`: [`Factors::merge`].
    #[inline(always)]
    pub(super) fn merge_sums<I: Isa>(&mut self, isa: I, m: &[f32; LANES], l: &[f32; LANES]) -> Factors {
        let (m1, m2) = (isa.load(self.m), isa.load(m));
        let (l1, l2) = (isa.load(self.l), isa.load(l));
        let top = isa.max(m1, m2);
        let (f1, f2) = (math::exp(isa, isa.sub(m1, top)), math::exp(isa, isa.sub(m2, top)));
        // A part in which a row saw something has a sum above zero, or NaN; without one the row stays as it is.
        let live = !isa.equal(l2, isa.splat(0.0)) & first_lanes(self.rows);
        isa.store(isa.select(live, top, m1), self.m);
        isa.store(isa.select(live, isa.mul_add(l2, f2, isa.mul(l1, f1)), l1), self.l);
        let mut factors = Factors { live, state: [0.0; LANES], part: [0.0; LANES] };
        isa.store(f1, &mut factors.state);
        isa.store(f2, &mut factors.part);
        factors
    }

    /// Writes `o / l` of one row to `out` (`[v_dim]`) and returns the natural logarithm of its sum of exponentials,
    /// `m + ln l`. A row that saw nothing is exactly 0 and minus infinity.
    ///
    /// A sink is a last position whose value is zero: `m' = max(m, sink)`, `l' = l e^(m - m') + e^(sink - m')` and
    /// `o' = o e^(m - m')`.
    #[inline(always)]
    pub(crate) fn finish<I: Isa, T: StoredFloat>(
        &self,
        isa: I,
        row: usize,
        sink: Option<f32>,
        out: &mut [T],
    ) -> f32 {
        let (mut m, mut l) = (self.m[row], self.l[row]);
        if l == 0.0 {
            out.fill(T::ZERO);
            return sink.unwrap_or(f32::NEG_INFINITY);
        }
        let mut factor = 1.0;
        if let Some(sink) = sink {
            let top = m.max(sink);
            let mut factors = [0.0; LANES];
            isa.store(math::exp(isa, isa.load_partial(&[m - top, sink - top])), &mut factors);
            factor = factors[0];
            (m, l) = (top, l * factor + factors[1]);
        }
        let o = &self.o[row * self.stride..][..self.stride];
        let (sum, factor) = (isa.splat(l), isa.splat(factor));
        for (o, out) in o.as_chunks::<LANES>().0.iter().zip(out.chunks_mut(LANES)) {
            T::store_partial(isa, isa.div(isa.mul(isa.load(o), factor), sum), out);
        }
        let mut log = [0.0; LANES];
        isa.store(math::ln(isa, sum), &mut log);
        m + log[0]
    }

    /// `o` of all rows, and the elements from a row to the next.
    #[inline(always)]
    pub(super) fn outputs(&mut self) -> (&mut [f32], usize) {
        (self.o, self.stride)
    }
}

/// What the values of a state and of a later part are multiplied with when they become one.
pub(super) struct Factors {
    /// Rows that the part changes.
    live: Mask,
    state: [f32; LANES],
    part: [f32; LANES],
}

impl Factors {
    /// Merges 16 values of a row.
    #[inline(always)]
    pub(super) fn merge<I: Isa>(&self, isa: I, row: usize, part: I::F32, o: &mut [f32; LANES]) {
        if self.live >> row & 1 == 0 {
            return;
        }
        // Adding zero turns -0 into 0: merging into the empty state must give what merging into no state would.
        let part = isa.add(part, isa.splat(0.0));
        let state = isa.mul(isa.load(o), isa.splat(self.state[row]));
        isa.store(isa.mul_add(part, isa.splat(self.part[row]), state), o);
    }
}
