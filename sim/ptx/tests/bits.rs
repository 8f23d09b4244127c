//! Logic, shifts, fields and permutations of bits.

mod common;

use common::{check16, check32, check64, i32};

const MAX: u64 = 0xffff_ffff;
const ALL: u64 = u64::MAX;

#[test]
fn logic() {
    check32("and.b32 %r0, %r1, %r2;", &[([0xff00, 0x0ff0, 0], 0x0f00)]);
    check64("or.b64 %d0, %d1, %d2;", &[([1 << 63, 1, 0], 1 << 63 | 1)]);
    check16("xor.b16 %h0, %h1, %h2;", &[([0xffff, 0x00ff, 0], 0xff00)]);
    check16("not.b16 %h0, %h1;", &[([0x00ff, 0, 0], 0xff00)]);
    check32("not.b32 %r0, %r1;", &[([0, 0, 0], MAX)]);
    check32("cnot.b32 %r0, %r1;", &[([0, 0, 0], 1), ([5, 0, 0], 0)]);
}

#[test]
fn three_way_logic() {
    let cases = |table: fn(u64, u64, u64) -> u64| {
        let (a, b, c) = (0xf0f0_1234, 0xcccc_5678, 0xaaaa_9abc);
        [([a, b, c], table(a, b, c) & MAX)]
    };
    check32("lop3.b32 %r0, %r1, %r2, %r3, 0x80;", &cases(|a, b, c| a & b & c));
    check32("lop3.b32 %r0, %r1, %r2, %r3, 0xfe;", &cases(|a, b, c| a | b | c));
    check32("lop3.b32 %r0, %r1, %r2, %r3, 0x96;", &cases(|a, b, c| a ^ b ^ c));
    check32("lop3.b32 %r0, %r1, %r2, %r3, 0x1a;", &cases(|a, b, c| (a & b | c) ^ a));
    check32("lop3.b32 %r0, %r1, %r2, %r3, 0x40;", &cases(|a, b, c| a & b & !c));
    check32("lop3.b32 %r0, %r1, %r2, %r3, 0x01;", &cases(|a, b, c| !(a | b | c)));
}

#[test]
fn shifts_are_clamped() {
    let left =
        [([1, 31, 0], 0x8000_0000), ([1, 32, 0], 0), ([1, 33, 0], 0), ([1, MAX, 0], 0), ([5, 0, 0], 5)];
    check32("shl.b32 %r0, %r1, %r2;", &left);
    check16("shl.b16 %h0, %h1, %r2;", &[([0x8001, 1, 0], 2), ([1, 16, 0], 0)]);
    check64("shl.b64 %d0, %d1, %r2;", &[([1, 63, 0], 1 << 63), ([1, 64, 0], 0)]);
    check32("shr.u32 %r0, %r1, %r2;", &[([0x8000_0000, 31, 0], 1), ([MAX, 32, 0], 0), ([MAX, 200, 0], 0)]);
    check32(
        "shr.s32 %r0, %r1, %r2;",
        &[
            ([0x8000_0000, 31, 0], MAX),
            ([0x8000_0000, 32, 0], MAX),
            ([0x7fff_ffff, 99, 0], 0),
            ([i32(-8), 1, 0], i32(-4)),
        ],
    );
    check16("shr.s16 %h0, %h1, %r2;", &[([0x8000, 4, 0], 0xf800), ([0x8000, 16, 0], 0xffff)]);
    check16("shr.u16 %h0, %h1, %r2;", &[([0x8000, 15, 0], 1), ([0x8000, 16, 0], 0)]);
    check64("shr.s64 %d0, %d1, %r2;", &[([1 << 63, 70, 0], ALL)]);
}

#[test]
fn funnel_shifts() {
    // The pair is %r2:%r1.
    let (low, high) = (0x89ab_cdef, 0x0123_4567);
    check32(
        "shf.l.wrap.b32 %r0, %r1, %r2, %r3;",
        &[([low, high, 8], 0x2345_6789), ([low, high, 40], 0x2345_6789), ([low, high, 32], high)],
    );
    check32("shf.l.clamp.b32 %r0, %r1, %r2, %r3;", &[([low, high, 40], low), ([low, high, 4], 0x1234_5678)]);
    check32("shf.r.wrap.b32 %r0, %r1, %r2, %r3;", &[([low, high, 8], 0x6789_abcd), ([low, high, 32], low)]);
    check32("shf.r.clamp.b32 %r0, %r1, %r2, %r3;", &[([low, high, 32], high), ([low, high, 77], high)]);
}

#[test]
fn counts() {
    check32("popc.b32 %r0, %r1;", &[([0xf0f0, 0, 0], 8), ([0, 0, 0], 0), ([MAX, 0, 0], 32)]);
    check32("popc.b64 %r0, %d1;", &[([ALL, 0, 0], 64)]);
    check32("clz.b32 %r0, %r1;", &[([0, 0, 0], 32), ([1, 0, 0], 31), ([MAX, 0, 0], 0)]);
    check32("clz.b64 %r0, %d1;", &[([0, 0, 0], 64), ([1, 0, 0], 63)]);
    check32("brev.b32 %r0, %r1;", &[([1, 0, 0], 0x8000_0000), ([0x1234_5678, 0, 0], 0x1e6a_2c48)]);
    check64("brev.b64 %d0, %d1;", &[([1, 0, 0], 1 << 63)]);
    check32("bfind.u32 %r0, %r1;", &[([0, 0, 0], MAX), ([1, 0, 0], 0), ([MAX, 0, 0], 31)]);
    check32("bfind.s32 %r0, %r1;", &[([MAX, 0, 0], MAX), ([i32(-5), 0, 0], 2), ([5, 0, 0], 2)]);
    check32("bfind.shiftamt.u32 %r0, %r1;", &[([1, 0, 0], 31), ([0, 0, 0], MAX), ([MAX, 0, 0], 0)]);
    check32("bfind.shiftamt.s32 %r0, %r1;", &[([i32(-5), 0, 0], 29)]);
    check32("bfind.u64 %r0, %d1;", &[([1 << 40, 0, 0], 40)]);
}

#[test]
fn fields() {
    check32(
        "bfe.u32 %r0, %r1, %r2, %r3;",
        &[
            ([0x1234_5678, 8, 8], 0x56),
            ([0x1234_5678, 8, 0], 0),
            ([0x1234_5678, 28, 8], 1),
            ([0x1234_5678, 32, 8], 0),
            ([0x1234_5678, 0, 32], 0x1234_5678),
            // Only the low byte of position and length counts.
            ([0x1234_5678, 0x108, 0x108], 0x56),
        ],
    );
    check32(
        "bfe.s32 %r0, %r1, %r2, %r3;",
        &[
            ([0x0000_8000, 8, 8], 0xffff_ff80),
            // Beyond the end, the sign goes on.
            ([0x8000_0000, 28, 8], 0xffff_fff8),
            ([0x8000_0000, 40, 8], MAX),
            ([0x8000_0000, 40, 0], 0),
        ],
    );
    check64("bfe.s64 %d0, %d1, %r2, %r3;", &[([0x80 << 40, 40, 8], -128i64 as u64)]);
    check32("bfi.b32 %r0, %r1, %r2, 8, 8;", &[([0xfab, 0x1111_1111, 0], 0x1111_ab11)]);
    check32(
        "bfi.b32 %r0, %r1, %r2, %r3, 8;",
        &[([0xab, 0x1111_1111, 28], 0xb111_1111), ([0xab, 0x1111_1111, 32], 0x1111_1111)],
    );
    check32("bfi.b32 %r0, %r1, %r2, 4, 0;", &[([0xab, 0x1111_1111, 0], 0x1111_1111)]);
    check64("bfi.b64 %d0, %d1, %d2, 60, 8;", &[([0xab, 0, 0], 0xb << 60)]);
    check32(
        "bmsk.clamp.b32 %r0, %r1, %r2;",
        &[([4, 8, 0], 0xff0), ([28, 8, 0], 0xf000_0000), ([32, 8, 0], 0), ([0, 40, 0], MAX), ([3, 0, 0], 0)],
    );
    check32(
        "szext.clamp.s32 %r0, %r1, %r2;",
        &[([0x80, 8, 0], 0xffff_ff80), ([0x80, 40, 0], 0x80), ([5, 0, 0], 0)],
    );
    check32("szext.clamp.u32 %r0, %r1, %r2;", &[([0x1ff, 8, 0], 0xff)]);
}

#[test]
fn permutations_of_bytes() {
    let (a, b) = (0x3322_1100, 0x7766_5544);
    check32(
        "prmt.b32 %r0, %r1, %r2, %r3;",
        &[
            ([a, b, 0x3210], a),
            ([a, b, 0x7654], b),
            ([a, b, 0x0123], 0x0011_2233),
            ([a, b, 0x5140], 0x5511_4400),
        ],
    );
    // The nibble's highest bit takes the byte's sign only.
    check32("prmt.b32 %r0, %r1, %r2, %r3;", &[([0x80ff_7f00, 0, 0xba98], 0xffff_0000)]);
    let by = |values: [u64; 4]| (0..4).map(|i| ([a, b, i], values[i as usize])).collect::<Vec<_>>();
    check32("prmt.b32.f4e %r0, %r1, %r2, %r3;", &by([0x3322_1100, 0x4433_2211, 0x5544_3322, 0x6655_4433]));
    check32("prmt.b32.b4e %r0, %r1, %r2, %r3;", &by([0x5566_7700, 0x6677_0011, 0x7700_1122, 0x0011_2233]));
    check32("prmt.b32.rc8 %r0, %r1, %r2, %r3;", &by([0, 0x1111_1111, 0x2222_2222, 0x3333_3333]));
    check32("prmt.b32.ecl %r0, %r1, %r2, %r3;", &by([0x3322_1100, 0x3322_1111, 0x3322_2222, 0x3333_3333]));
    check32("prmt.b32.ecr %r0, %r1, %r2, %r3;", &by([0, 0x1111_1100, 0x2222_1100, 0x3322_1100]));
    check32("prmt.b32.rc16 %r0, %r1, %r2, %r3;", &by([0x1100_1100, 0x3322_3322, 0x1100_1100, 0x3322_3322]));
}

#[test]
fn packs_and_parts() {
    check32("mov.b32 %r0, {%h1, %h2};", &[([0x1234, 0x5678, 0], 0x5678_1234)]);
    check64("mov.b64 %d0, {%r1, %r2};", &[([1, 2, 0], 0x2_0000_0001)]);
    check16("mov.b32 {%h4, %h0}, %r1;", &[([0xaaaa_bbbb, 0, 0], 0xaaaa)]);
    check32("mov.b64 {%r0, _}, %d1;", &[([0xaaaa_bbbb_cccc_dddd, 0, 0], 0xcccc_dddd)]);
    check32("mov.b64 {_, %r0}, %d1;", &[([0xaaaa_bbbb_cccc_dddd, 0, 0], 0xaaaa_bbbb)]);
    check16("mov.b64 {%h4, %h5, %h0, %h6}, %d1;", &[([0xaaaa_bbbb_cccc_dddd, 0, 0], 0xbbbb)]);
    // Both parts are read before one is written.
    check32("mov.b64 %d4, {%r1, %r2}; mov.b64 {%r2, %r1}, %d4; mov.b32 %r0, %r1;", &[([1, 2, 0], 2)]);
}
