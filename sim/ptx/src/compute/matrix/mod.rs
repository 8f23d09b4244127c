//! `mma.sync`: the product of two tiles that are spread over a warp.
//!
//! Lane l = 4 g + t. A register of A holds, of row g (plus 8 for odd registers of a tile of 16 rows), the t-th 32 bits of
//! a block of four; of B the same of column g. D and C have row g, columns 2 t and 2 t + 1, then row g + 8.

mod floats;
mod integers;

use super::context::Context;
use super::{ComputeError, unsupported};
use crate::ir::{MatrixMultiply, Type};
use crate::registers::{LANES, Lanes};

/// Columns of B and D, in every shape.
const N: usize = 8;

/// `d = a · b + c`, by a whole warp. The operands have the registers that the shape needs: that was asked at loading.
pub(super) fn multiply(context: &mut Context<'_>, mma: &MatrixMultiply) -> Result<(), ComputeError> {
    match (mma.m, mma.n, mma.k, mma.a_type) {
        (8, 8, 16, Type::S8 | Type::U8) => integers::multiply::<8>(context, mma),
        (16, 8, 16 | 32, Type::S8 | Type::U8) => integers::multiply::<16>(context, mma),
        (16, 8, 16, Type::E4M3 | Type::E5M2) => floats::bytes::<4, 16>(context, mma),
        (16, 8, 32, Type::E4M3 | Type::E5M2) => floats::bytes::<8, 32>(context, mma),
        (8, 8, 4, Type::F64) | (16, 8, 4 | 8 | 16, Type::F64) => floats::doubles(context, mma),
        _ if mma.a_type != mma.b_type => unsupported(mma),
        (16, 8, 4, Type::TF32) => floats::floats::<4, 4>(context, mma, floats::tf32, floats::tf32),
        (16, 8, 8, Type::TF32) => floats::floats::<8, 8>(context, mma, floats::tf32, floats::tf32),
        (16, 8, 8, Type::F16) => floats::floats::<4, 8>(context, mma, floats::f16, floats::f16),
        (16, 8, 16, Type::F16) => floats::floats::<8, 16>(context, mma, floats::f16, floats::f16),
        (16, 8, 8, Type::BF16) => floats::floats::<4, 8>(context, mma, floats::bf16, floats::bf16),
        (16, 8, 16, Type::BF16) => floats::floats::<8, 16>(context, mma, floats::bf16, floats::bf16),
        _ => unsupported(mma),
    }
}

/// A's rows as 32-bit words: `W` each.
fn rows_of_a<const M: usize, const W: usize>(context: &Context<'_>, mma: &MatrixMultiply) -> [[u32; W]; M] {
    let mut rows = [[0; W]; M];
    let mut scratch = [0; LANES];
    for (i, &source) in mma.a.iter().enumerate() {
        let lanes = context.registers.operand(source, context.specials, &mut scratch);
        // Registers alternate between the upper and the lower 8 rows, then go on along the row.
        let halves = M / 8;
        let (first, block) = (i % halves * 8, i / halves * 4);
        place(&mut rows[first..first + 8], block, lanes);
    }
    rows
}

/// B's columns as 32-bit words.
fn columns_of_b<const W: usize>(context: &Context<'_>, mma: &MatrixMultiply) -> [[u32; W]; N] {
    let mut columns = [[0; W]; N];
    let mut scratch = [0; LANES];
    for (i, &source) in mma.b.iter().enumerate() {
        let lanes = context.registers.operand(source, context.specials, &mut scratch);
        place(&mut columns, i * 4, lanes);
    }
    columns
}

/// Four lanes a line, from word `block` on.
#[inline(always)]
fn place<const W: usize>(lines: &mut [[u32; W]], block: usize, lanes: &Lanes) {
    for (line, group) in lines.iter_mut().zip(lanes.chunks_exact(4)) {
        for (word, &lane) in line[block..block + 4].iter_mut().zip(group) {
            *word = lane as u32;
        }
    }
}

/// The row of C and D that a lane has in the `half`-th pair of registers.
#[inline(always)]
const fn row_of(half: usize, lane: usize) -> usize {
    lane / 4 + 8 * half
}

/// The column that a lane has in the register.
#[inline(always)]
const fn column_of(register: usize, lane: usize) -> usize {
    lane % 4 * 2 + register % 2
}
