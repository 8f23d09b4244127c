//! Integer sums times their scales, each product rounded by itself; no multiply-add is used.
//!
//! ```text
//! y = (f32(sum) * w_scale[n]) * a_scale[m]                      one scale a row, or for all rows
//! y = y + f32(sum_g) * a_scale[m, g], g ascending;  y = y * w_scale[n]      a scale for each group of columns
//! y = y + outliers
//! ```

use super::{
    blocks::Tile,
    epilogue::RowSums,
    int8::Int8Product,
    outliers::Outliers,
    pack::Place,
    product::{Product, TALL, TILE, TileSums},
};
use crate::simd::{Isa, Kernel, LANES, matrix::DEPTH};

/// An INT8 product with its scales, and what is added in float.
#[derive(Clone, Copy)]
pub(super) struct Scaled<'a> {
    pub(super) sums: Int8Product<'a>,
    pub(super) a_scale: RowScales<'a>,
    /// `[weight_rows]`
    pub(super) w_scale: &'a [f32],
    pub(super) outliers: Option<Outliers<'a>>,
}

/// The scales of the activations.
#[derive(Clone, Copy)]
pub(super) enum RowScales<'a> {
    /// `[rows]`
    PerRow(&'a [f32]),
    One(f32),
    /// `[rows][groups]`, rows `stride` apart, of `size` columns each.
    PerGroup {
        scales: &'a [f32],
        stride: usize,
        size: usize,
    },
}

impl RowScales<'_> {
    #[inline(always)]
    pub(super) fn at(&self, row: usize, group: usize) -> f32 {
        match *self {
            Self::PerRow(scales) => scales[row],
            Self::One(scale) => scale,
            Self::PerGroup { scales, stride, .. } => scales[row * stride + group],
        }
    }
}

impl Product for Scaled<'_> {
    type Sum = f32;

    fn rows(&self) -> usize {
        self.sums.rows()
    }

    fn row_bytes(&self) -> usize {
        self.sums.row_bytes()
    }

    fn panels(&self) -> usize {
        self.sums.panels()
    }

    fn panel_cost(&self) -> usize {
        self.sums.panel_cost()
    }

    fn tall(&self) -> bool {
        // A group that fills no step of a matrix unit would be copied for each tile.
        let steps = !matches!(self.a_scale, RowScales::PerGroup { size, .. } if size < DEPTH);
        steps && self.sums.tall()
    }

    fn place(&self, panel: usize) -> Place {
        self.sums.place(panel)
    }

    fn tile<I: Isa>(&self, isa: I, tile: &Tile, sums: &mut TileSums<f32>) {
        let (rows, panel) = (tile.rows.len(), tile.panels.start);
        let (first, a_scale) = (tile.rows.start, self.a_scale);
        let w_scale = self.sums.channels(panel).map(|channels| &self.w_scale[channels]);
        if let RowScales::PerGroup { size, .. } = a_scale {
            let sums = &mut sums[..rows];
            if rows > TILE {
                self.add_groups::<I, TALL>(isa, size, tile, sums);
            } else {
                self.add_groups::<I, TILE>(isa, size, tile, sums);
            }
            isa.call(ScaleChannels { w_scale, sums });
        } else {
            // In place: a sum is as large before as it is after.
            self.sums.tile(isa, tile, bytemuck::cast_slice_mut(sums));
            isa.call(Scale { a_scale, first, w_scale, sums: &mut sums[..rows] });
        }
        if let Some(outliers) = &self.outliers {
            isa.call(outliers.add(first, panel, &mut sums[..rows]));
        }
    }
}

impl Scaled<'_> {
    /// The sums of a tile of `ROOM` rows at most, group after group.
    fn add_groups<I: Isa, const ROOM: usize>(
        &self,
        isa: I,
        size: usize,
        tile: &Tile,
        to: &mut [RowSums<f32>],
    ) {
        let mut exact = [[[0; LANES]; 2]; ROOM];
        let (first, a_scale) = (tile.rows.start, self.a_scale);
        for (group, columns) in self.sums.groups(size).enumerate() {
            self.sums.partial_tile(isa, columns, group, tile, &mut exact);
            isa.call(AddGroup { sums: &exact, a_scale, first, group, to });
        }
    }
}

/// Scales the sums of a tile, which are integers before.
struct Scale<'a> {
    a_scale: RowScales<'a>,
    /// The first row.
    first: usize,
    /// Of the channels of each vector.
    w_scale: [&'a [f32]; 2],
    sums: &'a mut [RowSums<f32>],
}

impl Kernel for Scale<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let w_scale = [isa.load_partial(self.w_scale[0]), isa.load_partial(self.w_scale[1])];
        for (row, sums) in self.sums.iter_mut().enumerate() {
            let a_scale = isa.splat(self.a_scale.at(self.first + row, 0));
            for (sums, w_scale) in sums.iter_mut().zip(w_scale) {
                let exact = isa.to_f32(isa.load_i32(bytemuck::cast_ref(sums)));
                isa.store(isa.mul(isa.mul(exact, w_scale), a_scale), sums);
            }
        }
    }
}

/// Adds the sums of one group; the first starts them.
struct AddGroup<'a> {
    sums: &'a [RowSums<i32>],
    a_scale: RowScales<'a>,
    first: usize,
    group: usize,
    to: &'a mut [RowSums<f32>],
}

impl Kernel for AddGroup<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for (row, (to, sums)) in self.to.iter_mut().zip(self.sums).enumerate() {
            let a_scale = isa.splat(self.a_scale.at(self.first + row, self.group));
            for (sums, to) in sums.iter().zip(to) {
                let scaled = isa.mul(isa.to_f32(isa.load_i32(sums)), a_scale);
                let y = if self.group == 0 { scaled } else { isa.add(isa.load(to), scaled) };
                isa.store(y, to);
            }
        }
    }
}

/// Multiplies with the channels' scales.
struct ScaleChannels<'a> {
    w_scale: [&'a [f32]; 2],
    sums: &'a mut [RowSums<f32>],
}

impl Kernel for ScaleChannels<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let w_scale = [isa.load_partial(self.w_scale[0]), isa.load_partial(self.w_scale[1])];
        for sums in self.sums {
            for (sums, w_scale) in sums.iter_mut().zip(w_scale) {
                isa.store(isa.mul(isa.load(sums), w_scale), sums);
            }
        }
    }
}
