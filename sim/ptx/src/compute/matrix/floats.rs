//! Floats of 8 to 64 bits.

use super::super::context::Context;
use super::super::format::{E4M3, E5M2, F16, f32_bits, f32_of, f64_bits};
use super::super::quick::f32_of_f16;
use super::super::{ComputeError, unsupported};
use super::{N, column_of, columns_of_b, row_of, rows_of_a};
use crate::ir::{MatrixMultiply, Rounding, Type};
use crate::registers::Lanes;

/// Floats of 8 to 32 bits with sums in F32 or F16. Products are exact, they and `c` are summed in f64, and the sum is
/// rounded once. Devices round and truncate between, in an order that PTX leaves open.
pub(super) fn floats<const W: usize, const K: usize>(
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

pub(super) fn f16<const W: usize, const K: usize>(words: &[u32; W]) -> [f32; K] {
    halves(words, f32_of_f16)
}

pub(super) fn bf16<const W: usize, const K: usize>(words: &[u32; W]) -> [f32; K] {
    halves(words, |bits| f32::from_bits(bits << 16))
}

/// The lower 13 bits of a `.tf32` register take no part.
pub(super) fn tf32<const K: usize>(words: &[u32; K]) -> [f32; K] {
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

pub(super) fn bytes<const W: usize, const K: usize>(
    context: &mut Context<'_>,
    mma: &MatrixMultiply,
) -> Result<(), ComputeError> {
    match (quarters::<W, K>(mma.a_type), quarters::<W, K>(mma.b_type)) {
        (Some(a), Some(b)) => floats(context, mma, a, b),
        _ => unsupported(mma),
    }
}

/// F64: fused products, in the order of k.
pub(super) fn doubles(context: &mut Context<'_>, mma: &MatrixMultiply) -> Result<(), ComputeError> {
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
