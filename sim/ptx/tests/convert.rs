//! `cvt` in its forms: what is out of range, NaN, ties, and the register's upper bits.

mod common;

use common::{check16, check32, check64, d, f, i32};

const MAX: u64 = 0xffff_ffff;
const NAN: u64 = 0x7fc0_0000;

#[test]
fn between_integers() {
    check32("cvt.u32.u8 %r0, %r1;", &[([0xabcd, 0, 0], 0xcd)]);
    check32("cvt.s32.s8 %r0, %r1;", &[([0xab80, 0, 0], 0xffff_ff80), ([0x7f, 0, 0], 0x7f)]);
    // A narrow signed result fills its register with its sign.
    check32("cvt.s8.s32 %r0, %r1;", &[([0x1280, 0, 0], 0xffff_ff80)]);
    check32("cvt.u8.s32 %r0, %r1;", &[([0x1280, 0, 0], 0x80)]);
    check16("cvt.s16.s8 %h0, %h1;", &[([0xff, 0, 0], 0xffff)]);
    check64("cvt.s64.s32 %d0, %r1;", &[([MAX, 0, 0], u64::MAX)]);
    check64("cvt.u64.u32 %d0, %r1;", &[([MAX, 0, 0], MAX)]);
    check64("cvt.u64.s32 %d0, %r1;", &[([MAX, 0, 0], u64::MAX)]);
    check16("cvt.u16.u32 %h0, %r1;", &[([0x12_3456, 0, 0], 0x3456)]);
    check32(
        "cvt.sat.s8.s32 %r0, %r1;",
        &[([300, 0, 0], 127), ([i32(-300), 0, 0], 0xffff_ff80), ([5, 0, 0], 5)],
    );
    check32("cvt.sat.u8.s32 %r0, %r1;", &[([300, 0, 0], 255), ([i32(-1), 0, 0], 0)]);
    check32("cvt.sat.u32.s32 %r0, %r1;", &[([i32(-1), 0, 0], 0)]);
    check32("cvt.sat.s32.u32 %r0, %r1;", &[([MAX, 0, 0], 0x7fff_ffff)]);
    check32("cvt.sat.s32.s64 %r0, %d1;", &[([1 << 40, 0, 0], 0x7fff_ffff), ([1 << 63, 0, 0], 0x8000_0000)]);
}

#[test]
fn packs_with_saturation() {
    check32("cvt.pack.sat.s8.s32.b32 %r0, %r1, %r2, %r3;", &[([300, i32(-300), 0xaaaa_1234], 0x1234_7f80)]);
    check32("cvt.pack.sat.u8.s32.b32 %r0, %r1, %r2, %r3;", &[([300, i32(-300), 0x5678], 0x5678_ff00)]);
    check32("cvt.pack.sat.s16.s32 %r0, %r1, %r2;", &[([40000, i32(-40000), 0], 0x7fff_8000)]);
}

#[test]
fn floats_to_integers() {
    check32(
        "cvt.rni.s32.f32 %r0, %r1;",
        &[
            ([f(2.5), 0, 0], 2),
            ([f(3.5), 0, 0], 4),
            ([f(-2.5), 0, 0], i32(-2)),
            ([f(3e9), 0, 0], 0x7fff_ffff),
            ([f(-3e9), 0, 0], 0x8000_0000),
            ([NAN, 0, 0], 0),
        ],
    );
    check32("cvt.rzi.s32.f32 %r0, %r1;", &[([f(-2.9), 0, 0], i32(-2)), ([f(2.9), 0, 0], 2)]);
    check32("cvt.rmi.s32.f32 %r0, %r1;", &[([f(-2.1), 0, 0], i32(-3)), ([f(2.9), 0, 0], 2)]);
    check32("cvt.rpi.s32.f32 %r0, %r1;", &[([f(-2.9), 0, 0], i32(-2)), ([f(2.1), 0, 0], 3)]);
    check32(
        "cvt.rzi.u32.f32 %r0, %r1;",
        &[([f(-1.0), 0, 0], 0), ([f(1e10), 0, 0], MAX), ([f(3e9), 0, 0], 3_000_000_000)],
    );
    check32("cvt.rni.s8.f32 %r0, %r1;", &[([f(200.0), 0, 0], 127), ([f(-200.0), 0, 0], 0xffff_ff80)]);
    check32("cvt.rni.u8.f32 %r0, %r1;", &[([f(300.0), 0, 0], 255), ([f(-1.0), 0, 0], 0)]);
    check16("cvt.rzi.s16.f32 %h0, %r1;", &[([f(-4e4), 0, 0], 0x8000)]);
    // NaN is 0 only from f32 and f16, to at most 32 bits.
    check64("cvt.rzi.s64.f32 %d0, %r1;", &[([NAN, 0, 0], 1 << 63), ([f(1e19), 0, 0], i64::MAX as u64)]);
    check64("cvt.rzi.u64.f32 %d0, %r1;", &[([NAN, 0, 0], 1 << 63), ([0x5f00_0001, 0, 0], 1 << 63 | 1 << 40)]);
    check32("cvt.rzi.s32.f64 %r0, %d1;", &[([d(f64::NAN), 0, 0], 0x8000_0000), ([d(-7.9), 0, 0], i32(-7))]);
    check32("cvt.rni.ftz.s32.f32 %r0, %r1;", &[([0x1, 0, 0], 0)]);
    check32("cvt.rpi.ftz.s32.f32 %r0, %r1;", &[([0x1, 0, 0], 0)]);
    check32("cvt.rpi.s32.f32 %r0, %r1;", &[([0x1, 0, 0], 1)]);
    check32("cvt.rni.s32.f16 %r0, %h1;", &[([0x4100, 0, 0], 2), ([0x7e00, 0, 0], 0)]);
}

#[test]
fn integers_to_floats() {
    // 2^24 + 1 is a tie.
    let odd = (1 << 24) + 1;
    check32("cvt.rn.f32.s32 %r0, %r1;", &[([odd, 0, 0], f(16_777_216.0)), ([MAX, 0, 0], f(-1.0))]);
    check32("cvt.rp.f32.s32 %r0, %r1;", &[([odd, 0, 0], f(16_777_218.0))]);
    check32(
        "cvt.rz.f32.s32 %r0, %r1;",
        &[([odd + 2, 0, 0], f(16_777_218.0)), ([i32(-16_777_217), 0, 0], f(-16_777_216.0))],
    );
    check32("cvt.rm.f32.s32 %r0, %r1;", &[([i32(-16_777_217), 0, 0], f(-16_777_218.0)), ([0, 0, 0], 0)]);
    check32("cvt.rn.f32.u32 %r0, %r1;", &[([MAX, 0, 0], f(4_294_967_296.0))]);
    check32("cvt.rz.f32.u32 %r0, %r1;", &[([MAX, 0, 0], f(4_294_967_040.0))]);
    check32(
        "cvt.rn.f32.u64 %r0, %d1;",
        &[
            ([u64::MAX, 0, 0], f(18_446_744_073_709_551_616.0)),
            ([(1 << 24) + 1 + (1 << 40), 0, 0], f(1_099_528_404_992.0)),
        ],
    );
    check32("cvt.rn.f32.s64 %r0, %d1;", &[([u64::MAX, 0, 0], f(-1.0))]);
    check32("cvt.rn.f32.s8 %r0, %r1;", &[([0x1280, 0, 0], f(-128.0))]);
    check32("cvt.rn.f32.u8 %r0, %r1;", &[([0x1280, 0, 0], f(128.0))]);
    check64(
        "cvt.rn.f64.s64 %d0, %d1;",
        &[
            ([(1 << 53) + 1, 0, 0], d(9_007_199_254_740_992.0)),
            ([(1 << 53) + 3, 0, 0], d(9_007_199_254_740_996.0)),
        ],
    );
    check64("cvt.rz.f64.u64 %d0, %d1;", &[([u64::MAX, 0, 0], d(18_446_744_073_709_549_568.0))]);
    check64("cvt.rn.f64.s32 %d0, %r1;", &[([MAX, 0, 0], d(-1.0))]);
    check16(
        "cvt.rn.f16.s32 %h0, %r1;",
        &[([2049, 0, 0], 0x6800), ([2051, 0, 0], 0x6802), ([70000, 0, 0], 0x7c00)],
    );
    check16("cvt.rz.f16.u32 %h0, %r1;", &[([70000, 0, 0], 0x7bff)]);
    check16("cvt.rn.bf16.s32 %h0, %r1;", &[([257, 0, 0], 0x4380)]);
}

#[test]
fn between_floats() {
    check16(
        "cvt.rn.f16.f32 %h0, %r1;",
        &[
            ([f(1.0), 0, 0], 0x3c00),
            ([f(65519.0), 0, 0], 0x7bff),
            ([f(65520.0), 0, 0], 0x7c00),
            ([f(2f32.powi(-25)), 0, 0], 0),
            ([f(1.5 * 2f32.powi(-25)), 0, 0], 1),
            ([0xffc1_2345, 0, 0], 0x7fff),
            ([f(-0.0), 0, 0], 0x8000),
        ],
    );
    check16("cvt.rz.f16.f32 %h0, %r1;", &[([f(65535.0), 0, 0], 0x7bff), ([f(1e9), 0, 0], 0x7bff)]);
    check16(
        "cvt.rn.bf16.f32 %h0, %r1;",
        &[
            ([0x3f80_8000, 0, 0], 0x3f80),
            ([0x3f81_8000, 0, 0], 0x3f82),
            ([0x3f80_8001, 0, 0], 0x3f81),
            ([0x7f7f_ffff, 0, 0], 0x7f80),
            ([0x7f80_0001, 0, 0], 0x7fff),
        ],
    );
    check16("cvt.rz.bf16.f32 %h0, %r1;", &[([0x3f80_ffff, 0, 0], 0x3f80)]);
    check16("cvt.rn.relu.bf16.f32 %h0, %r1;", &[([f(-1.0), 0, 0], 0), ([f(1.0), 0, 0], 0x3f80)]);
    check32(
        "cvt.f32.f16 %r0, %h1;",
        &[([0x3c00, 0, 0], f(1.0)), ([1, 0, 0], f(2f32.powi(-24))), ([0x7c00, 0, 0], 0x7f80_0000)],
    );
    check32("cvt.f32.bf16 %r0, %h1;", &[([0x3f80, 0, 0], f(1.0)), ([1, 0, 0], 0x10000)]);
    check32("cvt.rn.f32.f64 %r0, %d1;", &[([d(0.1), 0, 0], f(0.1)), ([d(1e300), 0, 0], 0x7f80_0000)]);
    check32("cvt.rz.f32.f64 %r0, %d1;", &[([d(1e300), 0, 0], 0x7f7f_ffff)]);
    check32("cvt.rp.f32.f64 %r0, %d1;", &[([d(1e-300), 0, 0], 1)]);
    check64("cvt.f64.f32 %d0, %r1;", &[([f(0.1), 0, 0], d(f64::from(0.1f32)))]);
    check16("cvt.rn.f16.f64 %h0, %d1;", &[([d(1.0 + 2f64.powi(-11) + 2f64.powi(-40)), 0, 0], 0x3c01)]);
    check32("cvt.rni.f32.f32 %r0, %r1;", &[([f(2.5), 0, 0], f(2.0)), ([f(-0.2), 0, 0], f(-0.0))]);
    check32("cvt.rpi.f32.f32 %r0, %r1;", &[([f(2.1), 0, 0], f(3.0))]);
    check32("cvt.rzi.f32.f32 %r0, %r1;", &[([f(-2.9), 0, 0], f(-2.0))]);
    check64("cvt.rmi.f64.f64 %d0, %d1;", &[([d(-2.1), 0, 0], d(-3.0))]);
    check16("cvt.rni.f16.f16 %h0, %h1;", &[([0x4100, 0, 0], 0x4000)]);
    check32("cvt.sat.f32.f32 %r0, %r1;", &[([f(2.0), 0, 0], f(1.0)), ([NAN, 0, 0], 0), ([f(-2.0), 0, 0], 0)]);
    check32("cvt.ftz.f32.f32 %r0, %r1;", &[([0x8000_0001, 0, 0], 0x8000_0000)]);
    check32(
        "cvt.rna.tf32.f32 %r0, %r1;",
        &[([0x3f80_1000, 0, 0], 0x3f80_2000), ([0x3f80_0fff, 0, 0], 0x3f80_0000)],
    );
}

#[test]
fn pairs() {
    // The first source is the upper half.
    check32("cvt.rn.f16x2.f32 %r0, %r1, %r2;", &[([f(1.0), f(-2.0), 0], 0x3c00_c000)]);
    check32("cvt.rn.bf16x2.f32 %r0, %r1, %r2;", &[([f(1.0), f(-2.0), 0], 0x3f80_c000)]);
    check32("cvt.rn.relu.f16x2.f32 %r0, %r1, %r2;", &[([f(1.0), f(-2.0), 0], 0x3c00_0000)]);
    check32("cvt.rz.bf16x2.f32 %r0, %r1, %r2;", &[([0x3f80_ffff, 0xbf80_ffff, 0], 0x3f80_bf80)]);
    check16(
        "cvt.rn.satfinite.e4m3x2.f32 %h0, %r1, %r2;",
        &[
            ([f(1.0), f(-448.0), 0], 0x38fe),
            ([f(1000.0), NAN, 0], 0x7e7f),
            // The smallest is 2^-9; half of it is a tie with 0.
            ([f(2f32.powi(-9)), f(2f32.powi(-10)), 0], 0x0100),
        ],
    );
    check16("cvt.rn.satfinite.e5m2x2.f32 %h0, %r1, %r2;", &[([f(1.0), f(1e9), 0], 0x3c7b)]);
    check32("cvt.rn.f16x2.e4m3x2 %r0, %h1;", &[([0x38fe, 0, 0], 0x3c00_df00), ([0x017f, 0, 0], 0x1800_7fff)]);
    check32("cvt.rn.f16x2.e5m2x2 %r0, %h1;", &[([0x3cfc, 0, 0], 0x3c00_fc00)]);
    check16("cvt.rn.satfinite.e4m3x2.f16x2 %h0, %r1;", &[([0x3c00_7c00, 0, 0], 0x387e)]);
}

#[test]
fn a_rounding_where_nothing_is_rounded_is_an_error() {
    use halite_ptx::ir::Module;
    for wrong in [
        "cvt.rn.f32.f32 %r1, %r2;",
        "cvt.rn.f32.f16 %r1, %h2;",
        "cvt.f16.f32 %h1, %r2;",
        "cvt.s32.f32 %r1, %r2;",
    ] {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.entry k() {{ .reg .b16 %h<4>; .reg .b32 %r<4>; {wrong} ret; }}"
        );
        assert!(Module::parse(&text).is_err(), "{wrong}");
    }
}
