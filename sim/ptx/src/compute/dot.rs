//! `dp4a`, `dp2a`: dot products of bytes within a register.

use super::context::Context;
use crate::ir::{Register, Source};

/// Four products of bytes, added to `c`.
pub(super) fn four(
    context: &mut Context<'_>,
    a_signed: bool,
    b_signed: bool,
    dst: Register,
    sources: [Source; 3],
) {
    context.ternary(dst, sources, |a, b, c| {
        (0..4).fold(c, |sum, i| {
            sum.wrapping_add(byte(a, i, a_signed).wrapping_mul(byte(b, i, b_signed)) as u64)
        }) & 0xffff_ffff
    });
}

/// Two products of `a`'s 16-bit halves with two of `b`'s bytes, added to `c`.
pub(super) fn two(
    context: &mut Context<'_>,
    [a_signed, b_signed, high]: [bool; 3],
    dst: Register,
    sources: [Source; 3],
) {
    let first = if high { 2 } else { 0 };
    context.ternary(dst, sources, |a, b, c| {
        (0..2).fold(c, |sum, i| {
            let half = (a >> (16 * i)) as u16;
            let half = if a_signed { i64::from(half as i16) } else { i64::from(half) };
            sum.wrapping_add(half.wrapping_mul(byte(b, first + i, b_signed)) as u64)
        }) & 0xffff_ffff
    });
}

fn byte(lane: u64, index: u32, signed: bool) -> i64 {
    let byte = (lane >> (8 * index)) as u8;
    if signed { i64::from(byte as i8) } else { i64::from(byte) }
}
