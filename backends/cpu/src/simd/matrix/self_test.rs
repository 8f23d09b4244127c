//! Whether a matrix unit multiplies right, asked once before any product is given to it.
//!
//! No machine that this was written on has such a unit, and an emulator or a hypervisor may lend half of one. So it must
//! first compute what plain loops compute, with every kind of tail, or it is not offered.

use super::{LANES, Panel, Tiles, product};

/// Whether products by these tiles have the bits of plain loops.
pub(super) fn passes<T: Tiles>(unit: T::Unit) -> bool {
    // Rows of both halves, of one, and of a second block; steps of K that are whole, and what is left of 1 to 4 bytes.
    [(32, 128), (13, 67), (16, 64), (19, 130), (35, 61), (1, 4)]
        .into_iter()
        .all(|(m, k)| right::<T>(unit, m, k))
}

fn right<T: Tiles>(unit: T::Unit, m: usize, k: usize) -> bool {
    let stride = k + 3;
    // Every byte occurs, the extremes side by side; what lies between the rows must not count.
    let rows: Vec<i8> = (0..m * stride).map(|i| (i * 89 % 256) as u8 as i8).collect();
    let bytes: Vec<u8> = (0..k.div_ceil(4) * 8 * LANES).map(|i| (i * 57 % 256) as u8).collect();
    // Sums begin where they soon pass the ends of `i32`.
    let start = |row: usize, column: usize| {
        let end = if column.is_multiple_of(2) { i32::MAX } else { i32::MIN };
        end.wrapping_add(row as i32)
    };
    let mut sums: Vec<[[i32; LANES]; 2]> = (0..m)
        .map(|row| [0, LANES].map(|first| std::array::from_fn(|lane| start(row, first + lane))))
        .collect();
    product::add::<T>(unit, &rows, stride, Panel { bytes: &bytes, k }, &mut sums);
    sums.iter().enumerate().all(|(row, sums)| {
        sums.as_flattened().iter().enumerate().all(|(column, &sum)| {
            let terms = rows[row * stride..][..k].iter().enumerate();
            let exact = terms.fold(start(row, column), |sum, (at, &a)| {
                let w = bytes[at / 4 * 8 * LANES + 4 * column + at % 4];
                sum.wrapping_add(i32::from(a) * i32::from(w))
            });
            sum == exact
        })
    })
}
