//! The tile of [`GroupWiseProduct`](super::group_wise::GroupWiseProduct): the sums of a step stay in registers, are scaled
//! there and added to the row's.
//!
//! Weights are unsigned: a nibble as it is, or with its zero point taken off and 128 added, or an INT8 byte with 128 added.
//! Accumulators start with what is too much, negated, so that the sum of a step is exact modulo 2^32.
//!
//! Integers and floats take 12 registers each, so a panel is read once for 6 rows. That loops over accumulators must be
//! unrolled to stay there, [`int8`](super::int8) explains; and no function may be called in the loop over steps.

use super::{
    blocks::{Prefetch, Tile},
    epilogue::RowSums,
    group_wise::GroupWiseRows,
    groups::{GroupWiseWeights, LINE, PanelFactors, nibble_offset},
    pack::PANEL,
    scaled::RowScales,
};
use crate::simd::{Isa, Kernel, LANES};

/// Rows that are multiplied at once.
const HEIGHT: usize = 6;

/// The last values of some rows.
type Rest = [[i8; 8]; HEIGHT];

/// Rows with one panel, scaled but for a row's one scale; `sums` are the tile's.
pub(super) fn group_wise_tile<I: Isa>(
    isa: I,
    rows: &GroupWiseRows<'_>,
    weights: &GroupWiseWeights<'_>,
    tile: &Tile,
    sums: &mut [RowSums<f32>],
) {
    if weights.is_int4() {
        by_rows::<I, 2>(isa, rows, weights, tile, sums);
    } else {
        by_rows::<I, 1>(isa, rows, weights, tile, sums);
    }
}

/// A vector has `QUADS` of weights: two of 4 bits, one of INT8.
fn by_rows<I: Isa, const QUADS: usize>(
    isa: I,
    rows: &GroupWiseRows<'_>,
    weights: &GroupWiseWeights<'_>,
    tile: &Tile,
    sums: &mut [RowSums<f32>],
) {
    let k = weights.k();
    let panel = tile.panels.start;
    let bytes = weights.panel(panel);
    let mut prefetch = Some(Prefetch::new(bytes.as_ptr(), bytes.len(), LINE, tile));
    let height = sums.len().div_ceil(sums.len().div_ceil(HEIGHT).max(1)).max(1);
    for (part, sums) in sums.chunks_mut(height).enumerate() {
        let first = tile.rows.start + part * height;
        let mut rest = [[0; 8]; HEIGHT];
        for (r, rest) in rest.iter_mut().enumerate().take(sums.len()) {
            let from = k - k % (4 * QUADS);
            rest[..k - from].copy_from_slice(&rows.values[(first + r) * rows.stride..][from..k]);
        }
        let (prefetch, rest) = (prefetch.take(), &rest);
        macro_rules! call {
            ($($rows:literal),*) => {
                match sums.len() {
                    $($rows => {
                        let body = Body::<$rows, QUADS> { rows, weights, panel, first, rest, prefetch, sums };
                        isa.call(body);
                    })*
                    _ => unreachable!("parts of tiles have 1 to 6 rows"),
                }
            };
        }
        call!(1, 2, 3, 4, 5, 6);
    }
}

struct Body<'a, const ROWS: usize, const QUADS: usize> {
    rows: &'a GroupWiseRows<'a>,
    weights: &'a GroupWiseWeights<'a>,
    panel: usize,
    /// The first row.
    first: usize,
    /// Of K, with 0 for what is missing of a line.
    rest: &'a Rest,
    /// Of the part that reads a panel first.
    prefetch: Option<Prefetch>,
    sums: &'a mut [RowSums<f32>],
}

impl<const ROWS: usize, const QUADS: usize> Kernel for Body<'_, ROWS, QUADS> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { rows, weights, panel, first, rest, mut prefetch, sums } = self;
        let (k, stride) = (weights.k(), rows.stride);
        // What the raw reads below rest on.
        let end = (first + ROWS - 1) * stride + k;
        assert!(end <= rows.values.len(), "{ROWS} rows of {k} from row {first}, {stride} apart");
        let bytes = weights.panel(panel);
        assert_eq!(bytes.len(), k.div_ceil(4 * QUADS) * LINE, "a panel of {k}");

        let PanelFactors { scales, zeros, mins } = weights.panel_factors(panel);
        let per_group = weights.group_size().div_ceil(rows.step);
        let start = rows.values.as_ptr().wrapping_add(first * stride);
        let mut base = [start, start.wrapping_add(3 * stride)];
        let mut lines = bytes.as_ptr();
        let mut y = [[isa.splat(0.0); 2]; ROWS];
        let (mut left, mut step, mut group) = (k, 0, 0);
        while left > 0 {
            let len = rows.step.min(left);
            let Some(row_sums) = rows.sums[step * rows.rows + first..].first_chunk::<ROWS>() else {
                unreachable!("each step has a sum of each row")
            };
            let mut acc = [[isa.splat_i32(0); 2]; ROWS];
            if mins.is_empty() {
                for (acc, sum) in acc.iter_mut().zip(row_sums) {
                    *acc = [isa.splat_i32(*sum); 2];
                }
            }
            let mut offset = [isa.splat_i32(0); 2];
            if let Some(zeros) = zeros.get(group) {
                for (offset, zeros) in offset.iter_mut().zip(zeros.as_chunks::<LANES>().0) {
                    *offset = nibble_offset(isa, zeros);
                }
            }
            for _ in 0..len / (4 * QUADS) {
                if let Some(prefetch) = &mut prefetch {
                    prefetch.next(isa);
                }
                // SAFETY: so many whole lines lie in the panel and so many values in each row, both checked above.
                unsafe { line::<I, ROWS, QUADS>(isa, lines, base, stride, offset, &mut acc) };
                lines = lines.wrapping_add(LINE);
                base = base.map(|p| p.wrapping_add(4 * QUADS));
            }
            if !len.is_multiple_of(4 * QUADS) {
                let base = rest.as_flattened().as_ptr();
                let base = [base, base.wrapping_add(3 * 8)];
                // SAFETY: the panel's last line, and as many values on the stack, 8 bytes apart.
                unsafe { line::<I, ROWS, QUADS>(isa, lines, base, 8, offset, &mut acc) };
            }

            let scale = vectors(isa, &scales[group]);
            let mut term = y;
            for (term, acc) in term.iter_mut().zip(&acc) {
                *term = [isa.mul(isa.to_f32(acc[0]), scale[0]), isa.mul(isa.to_f32(acc[1]), scale[1])];
            }
            if let Some(mins) = mins.get(group) {
                let min = vectors(isa, mins);
                for (term, &row_sum) in term.iter_mut().zip(row_sums) {
                    let row_sum = isa.to_f32(isa.splat_i32(row_sum));
                    *term = [
                        isa.add(term[0], isa.mul(row_sum, min[0])),
                        isa.add(term[1], isa.mul(row_sum, min[1])),
                    ];
                }
            }
            if let RowScales::PerGroup { size, .. } = rows.scales {
                for (r, term) in term.iter_mut().enumerate() {
                    let scale = isa.splat(rows.scales.at(first + r, (k - left) / size));
                    *term = [isa.mul(term[0], scale), isa.mul(term[1], scale)];
                }
            }
            for (y, term) in y.iter_mut().zip(term) {
                *y = [isa.add(y[0], term[0]), isa.add(y[1], term[1])];
            }
            left -= len;
            step += 1;
            group += usize::from(step.is_multiple_of(per_group));
        }
        let Some(sums) = sums.first_chunk_mut::<ROWS>() else {
            unreachable!("a tile's sums have room for its rows")
        };
        for (sums, y) in sums.iter_mut().zip(y) {
            isa.store(y[0], &mut sums[0]);
            isa.store(y[1], &mut sums[1]);
        }
    }
}

/// Both vectors of a panel's factors.
#[inline(always)]
fn vectors<I: Isa>(isa: I, factors: &[f32; PANEL]) -> [I::F32; 2] {
    let halves = factors.as_chunks::<LANES>().0;
    [isa.load(&halves[0]), isa.load(&halves[1])]
}

/// The values of K that a line of weights has, for all rows.
///
/// # Safety
/// A line is readable at `lines`, and `4 * QUADS` values at each row, row `r` being `r % 3` strides after `base[r / 3]`.
#[inline(always)]
unsafe fn line<I: Isa, const ROWS: usize, const QUADS: usize>(
    isa: I,
    lines: *const u8,
    base: [*const i8; 2],
    stride: usize,
    offset: [I::I32; 2],
    acc: &mut [[I::I32; 2]; ROWS],
) {
    // SAFETY: the caller's promise.
    let bytes = unsafe { [&*lines.cast(), &*lines.add(4 * LANES).cast()] };
    let bytes = [isa.load_bytes(bytes[0]), isa.load_bytes(bytes[1])];
    let mask = isa.splat_i32(0x0F0F_0F0F);
    for quad in 0..QUADS {
        let mut w = bytes;
        if QUADS == 2 {
            for (w, offset) in w.iter_mut().zip(offset) {
                let nibbles = if quad == 0 { *w } else { isa.shift_right::<4>(*w) };
                *w = isa.add_i32(isa.and(nibbles, mask), offset);
            }
        }
        for (r, acc) in acc.iter_mut().enumerate() {
            // SAFETY: the caller's promise; the read does not need alignment.
            let a = unsafe { base[r / 3].add(r % 3 * stride + 4 * quad).cast::<[i8; 4]>().read_unaligned() };
            let a = isa.splat_quad(a);
            *acc = [isa.dot_u8_i8(acc[0], w[0], a), isa.dot_u8_i8(acc[1], w[1], a)];
        }
    }
}
