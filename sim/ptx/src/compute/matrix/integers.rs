//! Bytes with sums in S32.

use super::super::context::Context;
use super::super::{ComputeError, unsupported};
use super::N;
use crate::ir::{MatrixMultiply, Type};
use crate::registers::{LANES, Lanes};

/// S8 and U8 with sums in S32.
pub(super) fn multiply<const M: usize>(
    context: &mut Context<'_>,
    mma: &MatrixMultiply,
) -> Result<(), ComputeError> {
    if !matches!(mma.b_type, Type::S8 | Type::U8) || mma.c_type != Type::S32 || mma.d_type != Type::S32 {
        return unsupported(mma);
    }
    let mut products = [[0.0f32; N]; M];
    let mut scratch = [0; LANES];
    for (&of_b, of_a) in mma.b.iter().zip(mma.a.chunks_exact(M / 8)) {
        let lanes = context.registers.operand(of_b, context.specials, &mut scratch);
        let columns = floats_of_bytes(lanes, mma.b_type.is_signed());
        // By rows of B, so that the sums of a row of D go on side by side.
        let mut b = [[0.0; N]; 16];
        for (rows, columns) in b.chunks_exact_mut(4).zip(&columns) {
            for (n, column) in columns.chunks_exact(4).enumerate() {
                for (row, &value) in rows.iter_mut().zip(column) {
                    row[n] = value;
                }
            }
        }
        for (&of_a, products) in of_a.iter().zip(products.chunks_exact_mut(8)) {
            let lanes = context.registers.operand(of_a, context.specials, &mut scratch);
            let a = floats_of_bytes(lanes, mma.a_type.is_signed());
            let (above, below) = products.split_at_mut(4);
            multiply_rows::<0>(above, &a, &b);
            multiply_rows::<16>(below, &a, &b);
        }
    }
    for (i, (&dst, &c)) in mma.d.iter().zip(&mma.c).enumerate() {
        let mut result = context.read(c);
        let rows = products.iter().skip(8 * (i / 2));
        for (results, row) in result.chunks_exact_mut(4).zip(rows) {
            for (result, product) in results.iter_mut().zip(row.chunks_exact(2)) {
                // A float of this size has its integer in its lowest bits.
                let product = (product[i % 2] + LARGE).to_bits().wrapping_sub(LARGE.to_bits()) as i32;
                let c = *result as i32;
                let sum = if mma.saturate { c.saturating_add(product) } else { c.wrapping_add(product) };
                *result = u64::from(sum as u32);
            }
        }
        context.write(dst, &result);
    }
    Ok(())
}

/// 1.5 · 2^23: its neighbours are 1 apart, for 2^22 to both sides.
const LARGE: f32 = 12_582_912.0;

/// The bytes of each lane as floats, the lowest first. Their products are exact, and so are sums of 32 of them, below 2^22.
/// Every host multiplies vectors of floats, while those of integers need more than the oldest hosts have. Pairs of 16-bit
/// integers instead of floats took twice as long in release builds.
#[inline(always)]
fn floats_of_bytes(lanes: &Lanes, signed: bool) -> [[f32; LANES]; 4] {
    let words = lanes.map(|lane| lane as u32);
    let mut floats = [[0.0; LANES]; 4];
    for (floats, shift) in floats.iter_mut().zip([24, 16, 8, 0]) {
        if signed {
            for (float, &word) in floats.iter_mut().zip(&words) {
                *float = ((word << shift) as i32 >> 24) as f32;
            }
        } else {
            for (float, &word) in floats.iter_mut().zip(&words) {
                *float = (word << shift >> 24) as i32 as f32;
            }
        }
    }
    floats
}

/// Adds the products of four rows of A, from lane `FIRST` on: four, so that enough sums are under way. A's values and B's
/// rows have the same order along k, that of bytes within words.
#[inline(always)]
fn multiply_rows<const FIRST: usize>(products: &mut [[f32; N]], a: &[[f32; LANES]; 4], b: &[[f32; N]; 16]) {
    let mut sums = [[0.0f32; N]; 4];
    for (sums, products) in sums.iter_mut().zip(products.iter()) {
        *sums = *products;
    }
    for (a, b) in a.iter().zip(b.chunks_exact(4)) {
        for (t, b) in b.iter().enumerate() {
            for (row, sums) in sums.iter_mut().enumerate() {
                let a = a[FIRST + 4 * row + t];
                for (sum, &b) in sums.iter_mut().zip(b) {
                    *sum += a * b;
                }
            }
        }
    }
    for (sums, products) in sums.iter().zip(products) {
        *products = *sums;
    }
}
