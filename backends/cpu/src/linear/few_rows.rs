//! Few rows times integer weights that are dequantised in registers, `w = (q - zero) · scale` or `q · scale + min`: with one row
//! nothing is used twice, and a turn over the stack would cost half of memory's rate.

use super::{
    blocks::{Prefetch, Tile},
    dequantize::HalfFactors,
    epilogue::RowSums,
    float::FloatRows,
    groups::{LINE, LaneFactors},
};
use crate::simd::{Isa, Kernel};

/// The most rows: beyond, weights made once for all rows are cheaper.
pub(super) const FEW: usize = 4;

/// A piece of a panel, added to the sums of a tile of at most [`FEW`] rows.
pub(super) struct FewRows<'a> {
    /// All rows, of the piece's values of K.
    pub(super) rows: &'a FloatRows<'a>,
    /// Quads of bytes `q + 128`; where they end within a quad, the rest of it is not read.
    pub(super) bytes: &'a [u8],
    pub(super) factors: LaneFactors<'a>,
    pub(super) tile: &'a Tile,
    pub(super) sums: &'a mut [RowSums<f32>],
}

impl FewRows<'_> {
    pub(super) fn run<I: Isa>(self, isa: I) {
        match self.tile.rows.len() {
            1 => isa.call(Body::<1>(self)),
            2 => isa.call(Body::<2>(self)),
            3 => isa.call(Body::<3>(self)),
            FEW => isa.call(Body::<FEW>(self)),
            rows => unreachable!("{rows} are not few"),
        }
    }
}

struct Body<'a, const ROWS: usize>(FewRows<'a>);

impl<const ROWS: usize> Kernel for Body<'_, ROWS> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let FewRows { rows, bytes, factors, tile, sums } = self.0;
        let rows: [&[f32]; ROWS] = std::array::from_fn(|row| rows.row(tile.rows.start + row));
        let halves = [HalfFactors::new(isa, &factors, 0), HalfFactors::new(isa, &factors, 1)];
        let mut acc = [[isa.splat(0.0); 2]; ROWS];
        for (sums, acc) in sums.iter().zip(&mut acc) {
            *acc = [isa.load(&sums[0]), isa.load(&sums[1])];
        }
        let mut prefetch = Prefetch::new(bytes.as_ptr(), bytes.len(), LINE, tile);
        let lines = bytes.as_chunks::<LINE>().0;
        let quads = rows.map(|row| row.as_chunks::<4>().0);
        let whole = lines.len().min(quads[0].len());
        // As long as the first one, they need no check in the loop.
        let quads = quads.map(|quads| &quads[..whole]);
        for (at, line) in lines[..whole].iter().enumerate() {
            prefetch.next(isa);
            let weights = both(isa, &halves, line);
            for (acc, quads) in acc.iter_mut().zip(&quads) {
                add(isa, acc, &quads[at], &weights);
            }
        }
        // What is left of K is less than a quad; the rest of it is no weights.
        if let Some(line) = lines.get(whole) {
            let weights = both(isa, &halves, line);
            for (acc, row) in acc.iter_mut().zip(&rows) {
                add(isa, acc, row.as_chunks::<4>().1, &weights);
            }
        }
        for (sums, acc) in sums.iter_mut().zip(&acc) {
            isa.store(acc[0], &mut sums[0]);
            isa.store(acc[1], &mut sums[1]);
        }
    }
}

/// Four values of K of both halves of a panel. No closure here calls the instruction set: one that is not inlined would be
/// compiled without it.
#[inline(always)]
fn both<I: Isa>(isa: I, halves: &[HalfFactors<I>; 2], line: &[u8; LINE]) -> [[I::F32; 4]; 2] {
    let (low, high) = line.split_at(LINE / 2);
    let (Some(low), Some(high)) = (low.first_chunk(), high.first_chunk()) else {
        unreachable!("a line has two halves");
    };
    [halves[0].quad(isa, low), halves[1].quad(isa, high)]
}

/// Up to four values of one row.
#[inline(always)]
fn add<I: Isa>(isa: I, acc: &mut [I::F32; 2], values: &[f32], [low, high]: &[[I::F32; 4]; 2]) {
    for ((&value, &low), &high) in values.iter().zip(low).zip(high) {
        let value = isa.splat(value);
        *acc = [isa.mul_add(value, low, acc[0]), isa.mul_add(value, high, acc[1])];
    }
}
