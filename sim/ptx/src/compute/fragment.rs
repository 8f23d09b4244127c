//! Matrices of 8 rows of 16 bytes, spread over a warp: `ldmatrix`, `stmatrix`, `movmatrix`.

use super::context::Context;
use crate::ir::{Register, Source};
use crate::registers::Lanes;

/// 8 rows of 8 values of 16 bits.
pub(crate) type Rows = [[u8; 16]; 8];

/// What `ldmatrix` gives each lane of a matrix whose rows are these: lane 4 r + c has the values 2 c and 2 c + 1 of row r;
/// transposed, of column r.
pub(crate) fn of_rows(rows: &Rows, transposed: bool) -> Lanes {
    std::array::from_fn(|lane| {
        let (row, pair) = (lane / 4, lane % 4 * 2);
        if transposed {
            value(&rows[pair], row) | value(&rows[pair + 1], row) << 16
        } else {
            value(&rows[row], pair) | value(&rows[row], pair + 1) << 16
        }
    })
}

/// The rows that `stmatrix` writes.
pub(crate) fn to_rows(lanes: &Lanes, transposed: bool) -> Rows {
    let mut rows = [[0; 16]; 8];
    for (lane, &pair) in lanes.iter().enumerate() {
        for (i, half) in [(0, pair as u16), (1, (pair >> 16) as u16)] {
            let (along, across) = (lane / 4, lane % 4 * 2 + i);
            let (row, column) = if transposed { (across, along) } else { (along, across) };
            rows[row][2 * column..2 * column + 2].copy_from_slice(&half.to_le_bytes());
        }
    }
    rows
}

fn value(row: &[u8; 16], column: usize) -> u64 {
    u64::from(u16::from_le_bytes([row[2 * column], row[2 * column + 1]]))
}

/// `movmatrix.trans`.
pub(super) fn transpose(context: &mut Context<'_>, dst: Register, a: Source) {
    let result = of_rows(&to_rows(&context.read(a), false), true);
    context.write(dst, &result);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_hold_pairs_of_a_row() {
        let rows: Rows = std::array::from_fn(|row| {
            std::array::from_fn(|byte| if byte % 2 == 0 { (row * 8 + byte / 2) as u8 } else { 0 })
        });
        let plain = of_rows(&rows, false);
        // Lane 13: row 3, values 2 and 3.
        assert_eq!(plain[13], 26 | 27 << 16);
        let transposed = of_rows(&rows, true);
        // Column 3, values 2 and 3 of it.
        assert_eq!(transposed[13], 19 | 27 << 16);
        assert_eq!(to_rows(&plain, false), rows);
        assert_eq!(to_rows(&transposed, true), rows);
    }
}
