//! Integer arithmetic, as the PTX manual defines it.

mod common;

use common::{check16, check32, check64, i16, i32};

const MAX: u64 = 0xffff_ffff;
const ALL: u64 = u64::MAX;

#[test]
fn add_and_sub_wrap() {
    check16("add.u16 %h0, %h1, %h2;", &[([0xffff, 2, 0], 1)]);
    check16("sub.s16 %h0, %h1, %h2;", &[([1, 2, 0], 0xffff)]);
    check32("add.s32 %r0, %r1, %r2;", &[([0x7fff_ffff, 1, 0], 0x8000_0000), ([MAX, 1, 0], 0)]);
    check32("sub.u32 %r0, %r1, %r2;", &[([0, 1, 0], MAX)]);
    check64("add.u64 %d0, %d1, %d2;", &[([ALL, 2, 0], 1)]);
    check64("sub.s64 %d0, %d1, %d2;", &[([0, 1, 0], ALL)]);
    check32("add.s32 %r0, %r1, -1;", &[([0, 0, 0], MAX)]);
}

#[test]
fn saturating() {
    let cases =
        [([0x7fff_ffff, 1, 0], 0x7fff_ffff), ([i32(i32::MIN), MAX, 0], i32(i32::MIN)), ([1, 2, 0], 3)];
    check32("add.sat.s32 %r0, %r1, %r2;", &cases);
    check32("sub.sat.s32 %r0, %r1, %r2;", &[([i32(i32::MIN), 1, 0], i32(i32::MIN)), ([0, MAX, 0], 1)]);
    // The product's upper half is 2^30; the sum is too large.
    check32(
        "mad.hi.sat.s32 %r0, %r1, %r2, %r3;",
        &[
            ([0x8000_0000, 0x8000_0000, 0x7000_0000], 0x7fff_ffff),
            ([0x8000_0000, 0x8000_0000, 1], 0x4000_0001),
        ],
    );
}

#[test]
fn products() {
    check16("mul.lo.u16 %h0, %h1, %h2;", &[([0xffff, 0xffff, 0], 1)]);
    check16("mul.hi.u16 %h0, %h1, %h2;", &[([0xffff, 0xffff, 0], 0xfffe)]);
    check16("mul.hi.s16 %h0, %h1, %h2;", &[([0xffff, 0xffff, 0], 0), ([i16(-2), 1, 0], 0xffff)]);
    check32("mul.lo.s32 %r0, %r1, %r2;", &[([MAX, 7, 0], i32(-7)), ([0x10000, 0x10000, 0], 0)]);
    check32("mul.hi.u32 %r0, %r1, %r2;", &[([MAX, MAX, 0], 0xffff_fffe)]);
    check32("mul.hi.s32 %r0, %r1, %r2;", &[([MAX, MAX, 0], 0), ([0x8000_0000, 2, 0], MAX)]);
    check64("mul.lo.s64 %d0, %d1, %d2;", &[([ALL, 5, 0], 5u64.wrapping_neg())]);
    check64("mul.hi.u64 %d0, %d1, %d2;", &[([ALL, ALL, 0], ALL - 1)]);
    check64("mul.hi.s64 %d0, %d1, %d2;", &[([ALL, ALL, 0], 0), ([1 << 63, 1 << 63, 0], 1 << 62)]);
    check32("mul.wide.u16 %r0, %h1, %h2;", &[([0xffff, 0xffff, 0], 0xfffe_0001)]);
    check32("mul.wide.s16 %r0, %h1, %h2;", &[([0xffff, 2, 0], i32(-2)), ([0x8000, 0x8000, 0], 1 << 30)]);
    check64("mul.wide.u32 %d0, %r1, %r2;", &[([MAX, MAX, 0], 0xffff_fffe_0000_0001)]);
    check64("mul.wide.s32 %d0, %r1, %r2;", &[([MAX, 2, 0], -2i64 as u64), ([0x8000_0000, MAX, 0], 1 << 31)]);
    // 24 bits: the operands' upper bytes take no part, and bit 23 is the sign.
    check32("mul24.lo.u32 %r0, %r1, %r2;", &[([0xff00_0003, 0x0100_0005, 0], 15)]);
    check32("mul24.lo.s32 %r0, %r1, %r2;", &[([0x00ff_ffff, 5, 0], i32(-5))]);
}

#[test]
fn products_and_sums() {
    check16("mad.lo.u16 %h0, %h1, %h2, %h3;", &[([0x100, 0x100, 7], 7)]);
    check32("mad.lo.s32 %r0, %r1, %r2, %r3;", &[([MAX, 3, 10], 7)]);
    check32("mad.hi.u32 %r0, %r1, %r2, %r3;", &[([MAX, MAX, 3], 1)]);
    check32("mad.hi.s32 %r0, %r1, %r2, %r3;", &[([MAX, 1, 3], 2)]);
    check64("mad.lo.u64 %d0, %d1, %d2, %d3;", &[([1 << 40, 1 << 30, 9], 9)]);
    check64("mad.wide.u32 %d0, %r1, %r2, %d3;", &[([MAX, MAX, 0xffff_ffff], 0xffff_ffff_0000_0000)]);
    check64("mad.wide.s32 %d0, %r1, %r2, %d3;", &[([MAX, 4, 3], ALL)]);
    check32("mad.wide.s16 %r0, %h1, %h2, %r3;", &[([0xffff, 4, 3], MAX)]);
    check32("mad24.lo.s32 %r0, %r1, %r2, %r3;", &[([0x00ff_ffff, 5, 6], 1)]);
    check32("sad.u32 %r0, %r1, %r2, %r3;", &[([1, MAX, 3], 1)]);
    check32("sad.s32 %r0, %r1, %r2, %r3;", &[([1, MAX, 3], 5)]);
}

#[test]
fn quotients() {
    check32(
        "div.s32 %r0, %r1, %r2;",
        &[([i32(-7), 2, 0], i32(-3)), ([7, i32(-2), 0], i32(-3)), ([i32(i32::MIN), MAX, 0], i32(i32::MIN))],
    );
    check32(
        "rem.s32 %r0, %r1, %r2;",
        &[([i32(-7), 2, 0], MAX), ([7, i32(-2), 0], 1), ([i32(i32::MIN), MAX, 0], 0)],
    );
    check32("div.u32 %r0, %r1, %r2;", &[([MAX, 2, 0], 0x7fff_ffff)]);
    check16("div.u16 %h0, %h1, %h2;", &[([0xffff, 0x10, 0], 0xfff)]);
    check16("rem.s16 %h0, %h1, %h2;", &[([i16(-5), 3, 0], i16(-2))]);
    check64("div.s64 %d0, %d1, %d2;", &[([1 << 63, ALL, 0], 1 << 63)]);
    check64("rem.u64 %d0, %d1, %d2;", &[([ALL, 10, 0], 5)]);
    // PTX leaves the result of a division by zero open; it ends no kernel.
    check32("div.u32 %r0, %r1, %r2;", &[([5, 0, 0], MAX)]);
    check64("rem.s64 %d0, %d1, %d2;", &[([5, 0, 0], ALL)]);
}

#[test]
fn extremes_and_signs() {
    check32("min.s32 %r0, %r1, %r2;", &[([MAX, 1, 0], MAX)]);
    check32("min.u32 %r0, %r1, %r2;", &[([MAX, 1, 0], 1)]);
    check16("max.s16 %h0, %h1, %h2;", &[([0xffff, 1, 0], 1)]);
    check64("max.u64 %d0, %d1, %d2;", &[([ALL, 1, 0], ALL)]);
    check64("max.s64 %d0, %d1, %d2;", &[([ALL, 1, 0], 1)]);
    check32("max.relu.s32 %r0, %r1, %r2;", &[([MAX, i32(-5), 0], 0), ([4, i32(-5), 0], 4)]);
    check32("min.relu.s32 %r0, %r1, %r2;", &[([3, i32(-5), 0], 0), ([4, 9, 0], 4)]);
    check32("abs.s32 %r0, %r1;", &[([MAX, 0, 0], 1), ([0x8000_0000, 0, 0], 0x8000_0000)]);
    check16("abs.s16 %h0, %h1;", &[([i16(-300), 0, 0], 300)]);
    check32("neg.s32 %r0, %r1;", &[([1, 0, 0], MAX), ([0x8000_0000, 0, 0], 0x8000_0000)]);
    check64("neg.s64 %d0, %d1;", &[([1, 0, 0], ALL)]);
}

#[test]
fn pairs_of_16_bits() {
    check32("add.u16x2 %r0, %r1, %r2;", &[([0xffff_0001, 0x0002_ffff, 0], 0x0001_0000)]);
    check32("min.s16x2 %r0, %r1, %r2;", &[([0xffff_0005, 0x0001_0003, 0], 0xffff_0003)]);
    check32("max.u16x2 %r0, %r1, %r2;", &[([0xffff_0005, 0x0001_0009, 0], 0xffff_0009)]);
    check32("min.relu.s16x2 %r0, %r1, %r2;", &[([0xffff_0005, 0x0001_0003, 0], 0x0000_0003)]);
}

#[test]
fn carries_run_through_words() {
    // 128 bits in two 64-bit words.
    let add = "add.cc.u64 %d4, %d1, %d2; addc.u64 %d0, %d3, 0;";
    check64(add, &[([ALL, 1, 7], 8), ([ALL - 1, 1, 7], 7)]);
    let subtract = "sub.cc.u32 %r4, %r1, %r2; subc.u32 %r0, %r3, 0;";
    check32(subtract, &[([0, 1, 7], 6), ([1, 1, 7], 7)]);
    // A carry that came in goes on.
    let chain = "add.cc.u32 %r4, %r1, %r2; addc.cc.u32 %r4, %r3, 0; addc.u32 %r0, 0, 0;";
    check32(chain, &[([MAX, 1, MAX], 1), ([MAX, 0, MAX], 0)]);
    // The square of 2^32 - 1 from its halves.
    let square = "mad.lo.cc.u32 %r4, %r1, %r2, %r3; madc.hi.u32 %r0, %r1, %r2, 0;";
    check32(square, &[([MAX, MAX, MAX], MAX), ([MAX, MAX, 0], 0xffff_fffe)]);
}

#[test]
fn dot_products_of_bytes() {
    check32("dp4a.s32.s32 %r0, %r1, %r2, %r3;", &[([0x01ff_0203, 0x0402_0503, 100], 4 - 2 + 10 + 9 + 100)]);
    check32("dp4a.u32.u32 %r0, %r1, %r2, %r3;", &[([0xffff_ffff, 0xffff_ffff, 1], 4 * 65025 + 1)]);
    check32("dp4a.u32.s32 %r0, %r1, %r2, %r3;", &[([0xff, 0xff, 0], i32(-255))]);
    check32("dp2a.lo.s32.s32 %r0, %r1, %r2, %r3;", &[([0xffff_0100, 0x7f7f_0203, 1], 256 * 3 - 2 + 1)]);
    check32("dp2a.hi.s32.u32 %r0, %r1, %r2, %r3;", &[([0xffff_0002, 0x80ff_0000, 0], 510 - 128)]);
}
