//! Arithmetic on f16 and bf16, single and in pairs.

mod common;

use common::{check16, check32};
use half::{bf16, f16};

fn h(value: f32) -> u64 {
    u64::from(f16::from_f32(value).to_bits())
}

fn b(value: f32) -> u64 {
    u64::from(bf16::from_f32(value).to_bits())
}

const NAN: u64 = 0x7fff;
const NEGATIVE_ZERO: u64 = 0x8000;

#[test]
fn f16_arithmetic() {
    check16(
        "add.f16 %h0, %h1, %h2;",
        &[
            // 2048 + 1 is a tie, to the even one; 2050 + 1 too.
            ([h(2048.0), h(1.0), 0], h(2048.0)),
            ([h(2050.0), h(1.0), 0], h(2052.0)),
            ([h(65504.0), h(16.0), 0], 0x7c00),
            ([0x7c00, 0xfc00, 0], NAN),
        ],
    );
    check16("sub.f16 %h0, %h1, %h2;", &[([h(1.0), h(1.0), 0], 0), ([h(1.0), h(3.0), 0], h(-2.0))]);
    check16(
        "mul.f16 %h0, %h1, %h2;",
        &[([h(1.5), h(-2.0), 0], h(-3.0)), ([1, h(0.5), 0], 0), ([3, h(0.5), 0], 2)],
    );
    // 1.0009765625^2 - 1.001953125 = 2^-20.
    check16("fma.rn.f16 %h0, %h1, %h2, %h3;", &[([0x3c01, 0x3c01, 0xbc02], 0x0010), ([0x7c00, 0, 0], NAN)]);
    check16(
        "fma.rn.relu.f16 %h0, %h1, %h2, %h3;",
        &[([h(1.0), h(-1.0), h(0.5)], 0), ([h(1.0), h(1.0), h(0.5)], h(1.5)), ([NAN, 0, 0], NAN)],
    );
    check16("add.sat.f16 %h0, %h1, %h2;", &[([h(1.0), h(1.0), 0], h(1.0)), ([h(-1.0), 0, 0], 0)]);
    check16(
        "add.ftz.f16 %h0, %h1, %h2;",
        &[([0x03ff, 0, 0], 0), ([0x83ff, NEGATIVE_ZERO, 0], NEGATIVE_ZERO)],
    );
    check16("add.f16 %h0, %h1, %h2;", &[([0x03ff, 0, 0], 0x03ff)]);
    check16("neg.f16 %h0, %h1;", &[([h(1.0), 0, 0], h(-1.0))]);
    check16("abs.f16 %h0, %h1;", &[([h(-1.0), 0, 0], h(1.0))]);
    check16("ex2.approx.f16 %h0, %h1;", &[([h(3.0), 0, 0], h(8.0)), ([0xfc00, 0, 0], 0)]);
    check16("tanh.approx.f16 %h0, %h1;", &[([0x7c00, 0, 0], h(1.0))]);
}

#[test]
fn bf16_arithmetic() {
    check16(
        "add.rn.bf16 %h0, %h1, %h2;",
        &[([b(256.0), b(1.0), 0], b(256.0)), ([b(258.0), b(1.0), 0], b(260.0))],
    );
    check16("mul.rn.bf16 %h0, %h1, %h2;", &[([b(1.5), b(3.0), 0], b(4.5)), ([0x7f7f, b(2.0), 0], 0x7f80)]);
    // (1 + 2^-7)^2 - (1 + 2^-6) = 2^-14.
    check16("fma.rn.bf16 %h0, %h1, %h2, %h3;", &[([0x3f81, 0x3f81, 0xbf82], b(2f32.powi(-14)))]);
    check16("fma.rn.relu.bf16 %h0, %h1, %h2, %h3;", &[([b(1.0), b(-2.0), b(0.5)], 0)]);
    check16("neg.bf16 %h0, %h1;", &[([b(1.0), 0, 0], b(-1.0))]);
    check16("abs.bf16 %h0, %h1;", &[([b(-1.0), 0, 0], b(1.0))]);
    check16("ex2.approx.ftz.bf16 %h0, %h1;", &[([b(-1.0), 0, 0], b(0.5))]);
}

#[test]
fn extremes() {
    check16(
        "min.f16 %h0, %h1, %h2;",
        &[([NAN, h(1.0), 0], h(1.0)), ([0, NEGATIVE_ZERO, 0], NEGATIVE_ZERO), ([NAN, 0x7e01, 0], NAN)],
    );
    check16("max.f16 %h0, %h1, %h2;", &[([NEGATIVE_ZERO, 0, 0], 0), ([h(-1.0), h(-2.0), 0], h(-1.0))]);
    check16("max.NaN.bf16 %h0, %h1, %h2;", &[([0x7fc1, b(1.0), 0], NAN)]);
    check32(
        "max.f16x2 %r0, %r1, %r2;",
        &[([h(1.0) << 16 | NAN, h(2.0) << 16 | h(3.0), 0], h(2.0) << 16 | h(3.0))],
    );
}

#[test]
fn pairs() {
    let pair = |low: u64, high: u64| high << 16 | low;
    check32(
        "add.f16x2 %r0, %r1, %r2;",
        &[([pair(h(1.0), h(2.0)), pair(h(3.0), h(-2.0)), 0], pair(h(4.0), 0))],
    );
    check32(
        "mul.rn.bf16x2 %r0, %r1, %r2;",
        &[([pair(b(1.0), b(2.0)), pair(b(3.0), b(-2.0)), 0], pair(b(3.0), b(-4.0)))],
    );
    check32(
        "fma.rn.f16x2 %r0, %r1, %r2, %r3;",
        &[([pair(0x3c01, h(2.0)), pair(0x3c01, h(3.0)), pair(0xbc02, h(1.0))], pair(0x10, h(7.0)))],
    );
    check32(
        "fma.rn.bf16x2 %r0, %r1, %r2, %r3;",
        &[(
            [pair(0x3f81, b(2.0)), pair(0x3f81, b(3.0)), pair(0xbf82, b(1.0))],
            pair(b(2f32.powi(-14)), b(7.0)),
        )],
    );
    check32("neg.f16x2 %r0, %r1;", &[([pair(h(1.0), h(-2.0)), 0, 0], pair(h(-1.0), h(2.0)))]);
    check32("tanh.approx.bf16x2 %r0, %r1;", &[([pair(0x7f80, 0), 0, 0], pair(b(1.0), 0))]);
}
