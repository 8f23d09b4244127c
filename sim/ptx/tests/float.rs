//! Arithmetic on f32 and f64: roundings, subnormal numbers, NaN, the sign of zero.

mod common;

use common::{check_predicate, check32, check64, d, f};

const NAN: u64 = 0x7fff_ffff;
const NEGATIVE_ZERO: u64 = 0x8000_0000;
const INFINITY: u64 = 0x7f80_0000;
/// The largest subnormal number.
const SUBNORMAL: u64 = 0x007f_ffff;
/// 1 and the next number.
const ONE: u64 = 0x3f80_0000;
const ABOVE_ONE: u64 = 0x3f80_0001;
/// 2^-24 and a little: half of the last place of 1.
const HALF_PLACE: u64 = 0x3380_0000;
const ABOVE_HALF_PLACE: u64 = 0x3380_0001;

#[test]
fn sums_in_every_direction() {
    check32(
        "add.f32 %r0, %r1, %r2;",
        &[([ONE, HALF_PLACE, 0], ONE), ([ONE, ABOVE_HALF_PLACE, 0], ABOVE_ONE)],
    );
    check32("add.rn.f32 %r0, %r1, %r2;", &[([ABOVE_ONE, HALF_PLACE, 0], 0x3f80_0002)]);
    check32(
        "add.rz.f32 %r0, %r1, %r2;",
        &[
            ([ONE, ABOVE_HALF_PLACE, 0], ONE),
            ([f(-1.0), ABOVE_HALF_PLACE | NEGATIVE_ZERO, 0], f(-1.0)),
            // Just below 1, and just below in magnitude.
            ([ONE, f(-1e-30), 0], 0x3f7f_ffff),
            ([f(f32::MAX), f(f32::MAX), 0], f(f32::MAX)),
        ],
    );
    check32(
        "add.rm.f32 %r0, %r1, %r2;",
        &[
            ([ONE, f(1e-30), 0], ONE),
            ([f(-1.0), f(-1e-30), 0], 0xbf80_0001),
            ([ONE, f(-1.0), 0], NEGATIVE_ZERO),
            ([0, 0, 0], 0),
            ([f(-f32::MAX), f(-f32::MAX), 0], 0xff80_0000),
            ([f(f32::MAX), f(f32::MAX), 0], f(f32::MAX)),
        ],
    );
    check32("add.rp.f32 %r0, %r1, %r2;", &[([ONE, f(1e-30), 0], ABOVE_ONE), ([ONE, f(-1.0), 0], 0)]);
    check32("sub.f32 %r0, %r1, %r2;", &[([ONE, ONE, 0], 0), ([INFINITY, INFINITY, 0], NAN)]);
    check32("sub.rz.f32 %r0, %r1, %r2;", &[([ONE, f(1e-30), 0], 0x3f7f_ffff)]);
}

#[test]
fn products_in_every_direction() {
    // (1 + 2^-23)^2 = 1 + 2^-22 + 2^-46.
    check32("mul.f32 %r0, %r1, %r2;", &[([ABOVE_ONE, ABOVE_ONE, 0], 0x3f80_0002), ([0, INFINITY, 0], NAN)]);
    check32("mul.rp.f32 %r0, %r1, %r2;", &[([ABOVE_ONE, ABOVE_ONE, 0], 0x3f80_0003)]);
    check32(
        "mul.rz.f32 %r0, %r1, %r2;",
        &[([ABOVE_ONE, ABOVE_ONE, 0], 0x3f80_0002), ([f(1e-30), f(-1e-30), 0], NEGATIVE_ZERO)],
    );
    check32("mul.rm.f32 %r0, %r1, %r2;", &[([f(1e-30), f(-1e-30), 0], 0x8000_0001)]);
    // Halfway between subnormal numbers: to the even one.
    check32("mul.f32 %r0, %r1, %r2;", &[([3, f(0.5), 0], 2), ([1, f(0.5), 0], 0)]);
}

#[test]
fn fused_products_round_once() {
    // 1 + 2^-22 + 2^-46 - 1 - 2^-22 = 2^-46.
    check32(
        "fma.rn.f32 %r0, %r1, %r2, %r3;",
        &[
            ([ABOVE_ONE, ABOVE_ONE, 0xbf80_0002], f(2f32.powi(-46))),
            ([INFINITY, 0, ONE], NAN),
            ([f(2.0), f(3.0), f(-6.0)], 0),
        ],
    );
    check32("fma.rz.f32 %r0, %r1, %r2, %r3;", &[([ABOVE_ONE, ABOVE_ONE, f(-1e-30)], 0x3f80_0002)]);
    check32("fma.rp.f32 %r0, %r1, %r2, %r3;", &[([ONE, ONE, f(1e-30)], ABOVE_ONE)]);
    check32("fma.rm.f32 %r0, %r1, %r2, %r3;", &[([f(2.0), f(3.0), f(-6.0)], NEGATIVE_ZERO)]);
    check32("mad.rn.f32 %r0, %r1, %r2, %r3;", &[([f(2.0), f(3.0), f(4.0)], f(10.0))]);
    check64(
        "fma.rn.f64 %d0, %d1, %d2, %d3;",
        &[([d(1.0 + f64::EPSILON), d(1.0 + f64::EPSILON), d(-1.0 - 2.0 * f64::EPSILON)], d(2f64.powi(-104)))],
    );
}

#[test]
fn quotients_and_roots() {
    check32(
        "div.rn.f32 %r0, %r1, %r2;",
        &[([ONE, f(3.0), 0], f(1.0 / 3.0)), ([ONE, NEGATIVE_ZERO, 0], 0xff80_0000), ([0, 0, 0], NAN)],
    );
    // 1/3 is rounded up to the nearest: 0x3eaaaaab.
    check32("div.rz.f32 %r0, %r1, %r2;", &[([ONE, f(3.0), 0], 0x3eaa_aaaa), ([f(6.0), f(3.0), 0], f(2.0))]);
    check32("div.rp.f32 %r0, %r1, %r2;", &[([ONE, f(-3.0), 0], 0xbeaa_aaaa)]);
    check32("rcp.rn.f32 %r0, %r1;", &[([f(3.0), 0, 0], 0x3eaa_aaab), ([NEGATIVE_ZERO, 0, 0], 0xff80_0000)]);
    check32("rcp.rm.f32 %r0, %r1;", &[([f(3.0), 0, 0], 0x3eaa_aaaa)]);
    // sqrt 2 = 1.41421356237..., between 0x3fb504f3 and 0x3fb504f4.
    check32("sqrt.rn.f32 %r0, %r1;", &[([f(2.0), 0, 0], 0x3fb5_04f3), ([f(-1.0), 0, 0], NAN)]);
    check32("sqrt.rp.f32 %r0, %r1;", &[([f(2.0), 0, 0], 0x3fb5_04f4), ([f(4.0), 0, 0], f(2.0))]);
    check32("sqrt.rn.f32 %r0, %r1;", &[([NEGATIVE_ZERO, 0, 0], NEGATIVE_ZERO)]);
    check64("div.rn.f64 %d0, %d1, %d2;", &[([d(1.0), d(3.0), 0], d(1.0 / 3.0))]);
    check64("sqrt.rn.f64 %d0, %d1;", &[([d(2.0), 0, 0], d(std::f64::consts::SQRT_2))]);
}

#[test]
fn subnormal_numbers_are_flushed_where_told() {
    check32("add.f32 %r0, %r1, %r2;", &[([SUBNORMAL, 0, 0], SUBNORMAL)]);
    check32(
        "add.ftz.f32 %r0, %r1, %r2;",
        &[
            ([SUBNORMAL, 0, 0], 0),
            ([SUBNORMAL | NEGATIVE_ZERO, NEGATIVE_ZERO, 0], NEGATIVE_ZERO),
            // Results too: 2^-126 · 1.5 - 2^-126 is subnormal.
            ([0x00c0_0000, 0x8080_0000, 0], 0),
        ],
    );
    check32(
        "mul.ftz.f32 %r0, %r1, %r2;",
        &[([f(-1e-30), f(1e-10), 0], NEGATIVE_ZERO), ([f(2.0), f(3.0), 0], f(6.0))],
    );
    check32("fma.rn.ftz.f32 %r0, %r1, %r2, %r3;", &[([SUBNORMAL, f(1e30), ONE], ONE)]);
    check32("abs.ftz.f32 %r0, %r1;", &[([SUBNORMAL | NEGATIVE_ZERO, 0, 0], 0)]);
    check32("neg.ftz.f32 %r0, %r1;", &[([SUBNORMAL, 0, 0], NEGATIVE_ZERO)]);
    check32("max.ftz.f32 %r0, %r1, %r2;", &[([SUBNORMAL, f(-1.0), 0], 0)]);
    check32("rcp.approx.ftz.f32 %r0, %r1;", &[([SUBNORMAL, 0, 0], INFINITY), ([f(4.0), 0, 0], f(0.25))]);
}

#[test]
fn saturation_is_to_the_unit_interval() {
    let cases =
        [([f(3.0), f(1.0), 0], ONE), ([f(-3.0), f(1.0), 0], 0), ([NAN, ONE, 0], 0), ([0, f(0.5), 0], f(0.5))];
    check32("add.sat.f32 %r0, %r1, %r2;", &cases);
    check32("mul.sat.f32 %r0, %r1, %r2;", &[([f(-3.0), 0, 0], 0), ([f(0.5), f(0.5), 0], f(0.25))]);
    check32("fma.rn.sat.f32 %r0, %r1, %r2, %r3;", &[([f(2.0), f(2.0), ONE], ONE)]);
}

#[test]
fn nan_loses_a_comparison() {
    check32(
        "min.f32 %r0, %r1, %r2;",
        &[
            ([NAN, f(2.0), 0], f(2.0)),
            ([f(2.0), 0x7fc0_0001, 0], f(2.0)),
            ([0x7fc0_0001, 0xffc0_0002, 0], NAN),
            ([0, NEGATIVE_ZERO, 0], NEGATIVE_ZERO),
            ([NEGATIVE_ZERO, 0, 0], NEGATIVE_ZERO),
            ([f(1.0), f(-1.0), 0], f(-1.0)),
        ],
    );
    check32(
        "max.f32 %r0, %r1, %r2;",
        &[
            ([0, NEGATIVE_ZERO, 0], 0),
            ([NEGATIVE_ZERO, 0, 0], 0),
            ([NAN, f(-2.0), 0], f(-2.0)),
            ([INFINITY, f(1.0), 0], INFINITY),
        ],
    );
    check32("max.NaN.f32 %r0, %r1, %r2;", &[([f(1.0), 0x7fc0_0001, 0], NAN), ([f(1.0), f(2.0), 0], f(2.0))]);
    check64("min.f64 %d0, %d1, %d2;", &[([d(0.0), d(-0.0), 0], d(-0.0)), ([d(f64::NAN), d(1.0), 0], d(1.0))]);
}

#[test]
fn signs() {
    check32("abs.f32 %r0, %r1;", &[([f(-2.0), 0, 0], f(2.0)), ([NEGATIVE_ZERO, 0, 0], 0)]);
    check32("neg.f32 %r0, %r1;", &[([f(-2.0), 0, 0], f(2.0)), ([0, 0, 0], NEGATIVE_ZERO)]);
    // The first operand's sign, the second one's value.
    check32(
        "copysign.f32 %r0, %r1, %r2;",
        &[([f(-1.0), f(5.0), 0], f(-5.0)), ([f(1.0), f(-5.0), 0], f(5.0))],
    );
    check64("copysign.f64 %d0, %d1, %d2;", &[([d(-1.0), d(5.0), 0], d(-5.0))]);
    check64("neg.f64 %d0, %d1;", &[([d(1.0), 0, 0], d(-1.0))]);
    check64("abs.f64 %d0, %d1;", &[([d(-1.0), 0, 0], d(1.0))]);
}

#[test]
fn functions_at_their_special_points() {
    check32(
        "ex2.approx.f32 %r0, %r1;",
        &[
            ([f(10.0), 0, 0], f(1024.0)),
            ([0xff80_0000, 0, 0], 0),
            ([INFINITY, 0, 0], INFINITY),
            ([f(200.0), 0, 0], INFINITY),
            ([f(-130.0), 0, 0], f(2f32.powi(-130))),
        ],
    );
    check32("ex2.approx.ftz.f32 %r0, %r1;", &[([f(-130.0), 0, 0], 0), ([SUBNORMAL, 0, 0], ONE)]);
    check32(
        "lg2.approx.f32 %r0, %r1;",
        &[
            ([f(1024.0), 0, 0], f(10.0)),
            ([NEGATIVE_ZERO, 0, 0], 0xff80_0000),
            ([f(-1.0), 0, 0], NAN),
            ([INFINITY, 0, 0], INFINITY),
        ],
    );
    check32(
        "rsqrt.approx.f32 %r0, %r1;",
        &[
            ([f(16.0), 0, 0], f(0.25)),
            ([0, 0, 0], INFINITY),
            ([NEGATIVE_ZERO, 0, 0], 0xff80_0000),
            ([INFINITY, 0, 0], 0),
            ([f(-1.0), 0, 0], NAN),
        ],
    );
    check32("sin.approx.f32 %r0, %r1;", &[([NEGATIVE_ZERO, 0, 0], NEGATIVE_ZERO), ([INFINITY, 0, 0], NAN)]);
    check32("cos.approx.f32 %r0, %r1;", &[([0, 0, 0], ONE)]);
    check32("tanh.approx.f32 %r0, %r1;", &[([INFINITY, 0, 0], ONE), ([f(-100.0), 0, 0], f(-1.0))]);
    check32("sqrt.approx.f32 %r0, %r1;", &[([f(9.0), 0, 0], f(3.0))]);
    check32("div.approx.f32 %r0, %r1, %r2;", &[([f(9.0), f(3.0), 0], f(3.0))]);
    check32("div.full.f32 %r0, %r1, %r2;", &[([f(1.0), f(8.0), 0], f(0.125))]);
    // The lower half of operand and result takes no part.
    check64(
        "rcp.approx.ftz.f64 %d0, %d1;",
        &[([d(4.0) | 0xffff, 0, 0], d(0.25)), ([1, 0, 0], d(f64::INFINITY))],
    );
}

#[test]
fn f64_in_every_direction() {
    let (one, tiny) = (d(1.0), d(1e-300));
    check64("add.rz.f64 %d0, %d1, %d2;", &[([one, d(-1e-300), 0], d(1f64.next_down()))]);
    check64("add.rp.f64 %d0, %d1, %d2;", &[([one, tiny, 0], d(1f64.next_up()))]);
    check64("sub.rm.f64 %d0, %d1, %d2;", &[([one, tiny, 0], d(1f64.next_down())), ([one, one, 0], d(-0.0))]);
    // (1 + e)^2 = 1 + 2 e + e^2.
    let above = d(1f64.next_up());
    check64("mul.rp.f64 %d0, %d1, %d2;", &[([above, above, 0], d(1f64.next_up().next_up().next_up()))]);
    check64(
        "mul.rz.f64 %d0, %d1, %d2;",
        &[([above, above, 0], d(1f64.next_up().next_up())), ([tiny, d(-1e-300), 0], d(-0.0))],
    );
    check64(
        "mul.rm.f64 %d0, %d1, %d2;",
        &[([tiny, d(-1e-300), 0], 1 << 63 | 1), ([d(f64::MAX), d(2.0), 0], d(f64::MAX))],
    );
    check64(
        "fma.rm.f64 %d0, %d1, %d2, %d3;",
        &[([one, one, d(-1.0)], d(-0.0)), ([one, one, d(-1e-300)], d(1f64.next_down()))],
    );
    check64(
        "fma.rp.f64 %d0, %d1, %d2, %d3;",
        &[([above, above, d(-1.0)], d(2.0 * f64::EPSILON).wrapping_add(1))],
    );
    check64(
        "div.rz.f64 %d0, %d1, %d2;",
        &[([one, d(3.0), 0], d(1.0 / 3.0)), ([one, d(10.0), 0], d(0.1) - 1)],
    );
    check64(
        "div.rp.f64 %d0, %d1, %d2;",
        &[([one, d(3.0), 0], d(1.0 / 3.0) + 1), ([one, 0, 0], d(f64::INFINITY))],
    );
    check64("rcp.rm.f64 %d0, %d1;", &[([d(-3.0), 0, 0], d(-1.0 / 3.0) + 1)]);
    // sqrt 2 to the nearest is above it.
    check64("sqrt.rz.f64 %d0, %d1;", &[([d(2.0), 0, 0], d(2f64.sqrt()) - 1), ([d(4.0), 0, 0], d(2.0))]);
}

#[test]
fn classes() {
    check_predicate(
        "testp.finite.f32 %p1, %r1;",
        &[([ONE, 0, 0], 1), ([INFINITY, 0, 0], 0), ([NAN, 0, 0], 0)],
    );
    check_predicate("testp.infinite.f32 %p1, %r1;", &[([0xff80_0000, 0, 0], 1), ([NAN, 0, 0], 0)]);
    check_predicate("testp.number.f32 %p1, %r1;", &[([INFINITY, 0, 0], 1), ([NAN, 0, 0], 0)]);
    check_predicate("testp.notanumber.f64 %p1, %d1;", &[([d(f64::NAN), 0, 0], 1), ([d(1.0), 0, 0], 0)]);
    check_predicate(
        "testp.normal.f32 %p1, %r1;",
        &[([ONE, 0, 0], 1), ([SUBNORMAL, 0, 0], 0), ([0, 0, 0], 0)],
    );
    check_predicate("testp.subnormal.f32 %p1, %r1;", &[([SUBNORMAL, 0, 0], 1), ([0, 0, 0], 0)]);
}
