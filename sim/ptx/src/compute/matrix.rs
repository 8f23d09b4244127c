//! `mma.sync`: the product of two tiles that are spread over a warp.
//!
//! Lane l = 4 g + t. A register of A holds, of row g (plus 8 for odd registers of a tile of 16 rows), the t-th 32 bits of
//! a block of four; of B the same of column g. D and C have row g, columns 2 t and 2 t + 1, then row g + 8.

use super::context::Context;
use super::convert::f32_of_f16;
use super::format::{E4M3, E5M2, F16, f32_bits, f32_of, f64_bits};
use super::{ComputeError, unsupported};
use crate::ir::{MatrixMultiply, Rounding, Type};
use crate::registers::{LANES, Lanes};

/// Columns of B and D, in every shape.
const N: usize = 8;

/// `d = a · b + c`.
pub(super) fn multiply(context: &mut Context<'_>, mma: &MatrixMultiply) -> Result<(), ComputeError> {
    super::whole_warp(context)?;
    let fits = registers_fit(mma);
    match (mma.m, mma.n, mma.k, mma.a_type) {
        _ if !fits => unsupported(mma),
        (8, 8, 16, Type::S8 | Type::U8) => integers::<8, 4, 16>(context, mma),
        (16, 8, 16, Type::S8 | Type::U8) => integers::<16, 4, 16>(context, mma),
        (16, 8, 32, Type::S8 | Type::U8) => integers::<16, 8, 32>(context, mma),
        (16, 8, 16, Type::E4M3 | Type::E5M2) => bytes::<4, 16>(context, mma),
        (16, 8, 32, Type::E4M3 | Type::E5M2) => bytes::<8, 32>(context, mma),
        (8, 8, 4, Type::F64) | (16, 8, 4 | 8 | 16, Type::F64) => doubles(context, mma),
        _ if mma.a_type != mma.b_type => unsupported(mma),
        (16, 8, 4, Type::TF32) => floats::<4, 1, 4>(context, mma, tf32, tf32),
        (16, 8, 8, Type::TF32) => floats::<8, 1, 8>(context, mma, tf32, tf32),
        (16, 8, 8, Type::F16) => floats::<4, 2, 8>(context, mma, f16_pair, f16_pair),
        (16, 8, 16, Type::F16) => floats::<8, 2, 16>(context, mma, f16_pair, f16_pair),
        (16, 8, 8, Type::BF16) => floats::<4, 2, 8>(context, mma, bf16_pair, bf16_pair),
        (16, 8, 16, Type::BF16) => floats::<8, 2, 16>(context, mma, bf16_pair, bf16_pair),
        _ => unsupported(mma),
    }
}

/// Whether the operands have the registers that the shape needs.
fn registers_fit(mma: &MatrixMultiply) -> bool {
    let register = if mma.a_type == Type::F64 { 64 } else { 32 };
    let count = |rows: u32, columns: u32, ty: Type| (rows * columns * ty.bits()).div_ceil(32 * register);
    mma.a.len() as u32 == count(mma.m, mma.k, mma.a_type)
        && mma.b.len() as u32 == count(mma.k, mma.n, mma.b_type)
        && mma.c.len() as u32 == count(mma.m, mma.n, mma.c_type)
        && mma.d.len() as u32 == count(mma.m, mma.n, mma.d_type)
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

/// S8 and U8 with sums in S32.
fn integers<const M: usize, const W: usize, const K: usize>(
    context: &mut Context<'_>,
    mma: &MatrixMultiply,
) -> Result<(), ComputeError> {
    if !matches!(mma.b_type, Type::S8 | Type::U8) || mma.c_type != Type::S32 || mma.d_type != Type::S32 {
        return unsupported(mma);
    }
    let a = rows_of_a::<M, W>(context, mma).map(|row| widened::<W, K>(&row, mma.a_type.is_signed()));
    let b = columns_of_b::<W>(context, mma).map(|column| widened::<W, K>(&column, mma.b_type.is_signed()));
    let mut products = [[0i32; N]; M];
    for (sums, row) in products.iter_mut().zip(&a) {
        for (sum, column) in sums.iter_mut().zip(&b) {
            *sum = dot(row, column);
        }
    }
    for (i, (&dst, &c)) in mma.d.iter().zip(&mma.c).enumerate() {
        let mut result = context.read(c);
        for (lane, result) in result.iter_mut().enumerate() {
            let product = products[row_of(i / 2, lane) % M][column_of(i, lane)];
            let c = *result as i32;
            let sum = if mma.saturate { c.saturating_add(product) } else { c.wrapping_add(product) };
            *result = u64::from(sum as u32);
        }
        context.write(dst, &result);
    }
    Ok(())
}

/// Bytes as 16-bit numbers: products of those, summed in pairs, are one vector instruction.
#[inline(always)]
fn widened<const W: usize, const K: usize>(words: &[u32; W], signed: bool) -> [i16; K] {
    let mut wide = [0; K];
    for (four, word) in wide.chunks_exact_mut(4).zip(words) {
        for (wide, byte) in four.iter_mut().zip(word.to_le_bytes()) {
            *wide = if signed { i16::from(byte as i8) } else { i16::from(byte) };
        }
    }
    wide
}

#[inline(always)]
fn dot<const K: usize>(a: &[i16; K], b: &[i16; K]) -> i32 {
    a.iter().zip(b).fold(0i32, |sum, (&a, &b)| sum.wrapping_add(i32::from(a).wrapping_mul(i32::from(b))))
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

/// Floats of 8 to 32 bits with sums in F32 or F16: `P` values a word. Products are exact, they and `c` are summed in
/// f64, and the sum is rounded once. Devices round and truncate between, in an order that PTX leaves open.
fn floats<const W: usize, const P: usize, const K: usize>(
    context: &mut Context<'_>,
    mma: &MatrixMultiply,
    of_a: impl Fn(u32) -> [f64; P],
    of_b: impl Fn(u32) -> [f64; P],
) -> Result<(), ComputeError> {
    const M: usize = 16;
    let a = rows_of_a::<M, W>(context, mma).map(|row| values::<W, P, K>(&row, &of_a));
    let columns = columns_of_b::<W>(context, mma).map(|column| values::<W, P, K>(&column, &of_b));
    // By rows of B, so that the sums of a row of D go on side by side, each in the order of k.
    let b: [[f64; N]; K] = std::array::from_fn(|k| std::array::from_fn(|n| columns[n][k]));
    let mut sums = [[0.0f64; N]; M];
    read_c(context, mma, &mut sums)?;
    for (sums, row) in sums.iter_mut().zip(&a) {
        for (&a, b) in row.iter().zip(&b) {
            for (sum, &b) in sums.iter_mut().zip(b) {
                *sum += a * b;
            }
        }
    }
    write_d(context, mma, &sums)
}

/// All values of a line.
#[inline(always)]
fn values<const W: usize, const P: usize, const K: usize>(
    words: &[u32; W],
    of: impl Fn(u32) -> [f64; P],
) -> [f64; K] {
    let mut values = [0.0; K];
    for (values, &word) in values.chunks_exact_mut(P).zip(words) {
        values.copy_from_slice(&of(word));
    }
    values
}

fn read_c(
    context: &Context<'_>,
    mma: &MatrixMultiply,
    sums: &mut [[f64; N]; 16],
) -> Result<(), ComputeError> {
    for (i, &source) in mma.c.iter().enumerate() {
        let lanes = context.read(source);
        for (lane, &c) in lanes.iter().enumerate() {
            match mma.c_type {
                Type::F32 => sums[row_of(i / 2, lane) % 16][column_of(i, lane)] = f64::from(f32_of(c)),
                Type::F16 => {
                    let line = &mut sums[row_of(i, lane) % 16];
                    for (column, bits) in [(0, c as u32 & 0xffff), (1, (c >> 16) as u32)] {
                        line[column_of(column, lane)] = f64::from(f32_of_f16(bits));
                    }
                }
                _ => return unsupported(mma),
            }
        }
    }
    Ok(())
}

fn write_d(
    context: &mut Context<'_>,
    mma: &MatrixMultiply,
    sums: &[[f64; N]; 16],
) -> Result<(), ComputeError> {
    for (i, &dst) in mma.d.iter().enumerate() {
        let result: Lanes = match mma.d_type {
            Type::F32 => std::array::from_fn(|lane| {
                f32_bits(sums[row_of(i / 2, lane) % 16][column_of(i, lane)] as f32)
            }),
            Type::F16 => std::array::from_fn(|lane| {
                let line = &sums[row_of(i, lane) % 16];
                let of = |i| F16.encode(line[column_of(i, lane)], Rounding::NearestEven, false);
                of(0) | of(1) << 16
            }),
            _ => return unsupported(mma),
        };
        context.write(dst, &result);
    }
    Ok(())
}

fn f16_pair(word: u32) -> [f64; 2] {
    [f32_of_f16(word & 0xffff), f32_of_f16(word >> 16)].map(f64::from)
}

fn bf16_pair(word: u32) -> [f64; 2] {
    [word << 16, word & 0xffff_0000].map(|bits| f64::from(f32::from_bits(bits)))
}

/// The lower 13 bits of a `.tf32` register take no part.
fn tf32(word: u32) -> [f64; 1] {
    [f64::from(f32::from_bits(word & !0x1fff))]
}

/// The four values of a word of E4M3 or E5M2.
fn four_bytes(ty: Type) -> Option<impl Fn(u32) -> [f64; 4]> {
    let format = match ty {
        Type::E4M3 => E4M3,
        Type::E5M2 => E5M2,
        _ => return None,
    };
    Some(move |word: u32| word.to_le_bytes().map(|byte| format.decode(u64::from(byte))))
}

fn bytes<const W: usize, const K: usize>(
    context: &mut Context<'_>,
    mma: &MatrixMultiply,
) -> Result<(), ComputeError> {
    match (four_bytes(mma.a_type), four_bytes(mma.b_type)) {
        (Some(a), Some(b)) => floats::<W, 4, K>(context, mma, a, b),
        _ => unsupported(mma),
    }
}

/// F64: fused products, in the order of k.
fn doubles(context: &mut Context<'_>, mma: &MatrixMultiply) -> Result<(), ComputeError> {
    if [mma.b_type, mma.c_type, mma.d_type] != [Type::F64; 3] {
        return unsupported(mma);
    }
    let read = |sources: &[crate::ir::Source]| -> Vec<Lanes> {
        sources.iter().map(|&source| context.read(source)).collect()
    };
    let (a, b, c) = (read(&mma.a), read(&mma.b), read(&mma.c));
    let halves = mma.m as usize / 8;
    for (i, &dst) in mma.d.iter().enumerate() {
        let result = std::array::from_fn(|lane| {
            let (row, column) = (lane / 4, column_of(i, lane));
            let mut sum = f64::from_bits(c[i][lane]);
            for (block, b) in b.iter().enumerate() {
                let a = &a[block * halves + i / 2];
                for t in 0..4 {
                    sum = f64::from_bits(a[4 * row + t]).mul_add(f64::from_bits(b[4 * column + t]), sum);
                }
            }
            f64_bits(sum)
        });
        context.write(dst, &result);
    }
    Ok(())
}
