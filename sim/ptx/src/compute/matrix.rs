//! `mma.sync`: the product of two tiles that are spread over a warp.
//!
//! Lane l = 4 g + t. A register of A holds, of row g (plus 8 for odd registers of a tile of 16 rows), the t-th 32 bits of
//! a block of four; of B the same of column g. D and C have row g, columns 2 t and 2 t + 1, then row g + 8.

use super::context::Context;
use super::format::{E4M3, E5M2, F16, f32_bits, f32_of, f64_bits};
use super::quick::f32_of_f16;
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
        (8, 8, 16, Type::S8 | Type::U8) => integers::<8>(context, mma),
        (16, 8, 16 | 32, Type::S8 | Type::U8) => integers::<16>(context, mma),
        (16, 8, 16, Type::E4M3 | Type::E5M2) => bytes::<4, 16>(context, mma),
        (16, 8, 32, Type::E4M3 | Type::E5M2) => bytes::<8, 32>(context, mma),
        (8, 8, 4, Type::F64) | (16, 8, 4 | 8 | 16, Type::F64) => doubles(context, mma),
        _ if mma.a_type != mma.b_type => unsupported(mma),
        (16, 8, 4, Type::TF32) => floats::<4, 4>(context, mma, tf32, tf32),
        (16, 8, 8, Type::TF32) => floats::<8, 8>(context, mma, tf32, tf32),
        (16, 8, 8, Type::F16) => floats::<4, 8>(context, mma, f16, f16),
        (16, 8, 16, Type::F16) => floats::<8, 16>(context, mma, f16, f16),
        (16, 8, 8, Type::BF16) => floats::<4, 8>(context, mma, bf16, bf16),
        (16, 8, 16, Type::BF16) => floats::<8, 16>(context, mma, bf16, bf16),
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
fn integers<const M: usize>(context: &mut Context<'_>, mma: &MatrixMultiply) -> Result<(), ComputeError> {
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
/// Every host multiplies vectors of floats, while those of integers need more than the oldest hosts have.
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

/// Floats of 8 to 32 bits with sums in F32 or F16. Products are exact, they and `c` are summed in f64, and the sum is
/// rounded once. Devices round and truncate between, in an order that PTX leaves open.
fn floats<const W: usize, const K: usize>(
    context: &mut Context<'_>,
    mma: &MatrixMultiply,
    of_a: impl Fn(&[u32; W]) -> [f32; K],
    of_b: impl Fn(&[u32; W]) -> [f32; K],
) -> Result<(), ComputeError> {
    const M: usize = 16;
    let a = rows_of_a::<M, W>(context, mma);
    let columns = columns_of_b::<W>(context, mma).map(|column| of_b(&column));
    // By rows of B, so that the sums of a row of D go on side by side, each in the order of k.
    let mut b = [[0.0f64; N]; K];
    for (n, column) in columns.iter().enumerate() {
        for (row, &value) in b.iter_mut().zip(column) {
            row[n] = f64::from(value);
        }
    }
    let mut sums = [[0.0f64; N]; M];
    read_c(context, mma, &mut sums)?;
    for (sums, words) in sums.iter_mut().zip(&a) {
        for (a, b) in of_a(words).into_iter().zip(&b) {
            let a = f64::from(a);
            for (sum, &b) in sums.iter_mut().zip(b) {
                *sum += a * b;
            }
        }
    }
    write_d(context, mma, &sums)
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

/// The two 16-bit values of each word.
#[inline(always)]
fn halves<const W: usize, const K: usize>(words: &[u32; W], of: impl Fn(u32) -> f32) -> [f32; K] {
    let mut bits = [0u32; K];
    for (pair, &word) in bits.chunks_exact_mut(2).zip(words) {
        pair.copy_from_slice(&[word & 0xffff, word >> 16]);
    }
    bits.map(of)
}

fn f16<const W: usize, const K: usize>(words: &[u32; W]) -> [f32; K] {
    halves(words, f32_of_f16)
}

fn bf16<const W: usize, const K: usize>(words: &[u32; W]) -> [f32; K] {
    halves(words, |bits| f32::from_bits(bits << 16))
}

/// The lower 13 bits of a `.tf32` register take no part.
fn tf32<const K: usize>(words: &[u32; K]) -> [f32; K] {
    words.map(|word| f32::from_bits(word & !0x1fff))
}

/// The four values of each word, of E4M3 or E5M2.
fn quarters<const W: usize, const K: usize>(ty: Type) -> Option<impl Fn(&[u32; W]) -> [f32; K]> {
    let format = match ty {
        Type::E4M3 => E4M3,
        Type::E5M2 => E5M2,
        _ => return None,
    };
    Some(move |words: &[u32; W]| {
        let mut values = [0.0; K];
        for (four, word) in values.chunks_exact_mut(4).zip(words) {
            for (value, byte) in four.iter_mut().zip(word.to_le_bytes()) {
                *value = format.decode(u64::from(byte)) as f32;
            }
        }
        values
    })
}

fn bytes<const W: usize, const K: usize>(
    context: &mut Context<'_>,
    mma: &MatrixMultiply,
) -> Result<(), ComputeError> {
    match (quarters::<W, K>(mma.a_type), quarters::<W, K>(mma.b_type)) {
        (Some(a), Some(b)) => floats(context, mma, a, b),
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
