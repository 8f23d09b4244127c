//! Comparisons, choices, logic on predicates.

mod common;

use common::{check_predicate, check16, check32, check64, d, f, i32};

const NAN: u64 = 0x7fc0_0000;
const MAX: u64 = 0xffff_ffff;

/// Whether a comparison of f32 holds for (1, 2), (2, 2), (3, 2), (NaN, 2).
fn ordered(name: &str, holds: [u64; 4]) {
    let values = [f(1.0), f(2.0), f(3.0), NAN];
    let cases: Vec<_> = values.into_iter().zip(holds).map(|(a, holds)| ([a, f(2.0), 0], holds)).collect();
    check_predicate(&format!("setp.{name}.f32 %p1, %r1, %r2;"), &cases);
    // A NaN on the other side is one as well.
    check_predicate(&format!("setp.{name}.f32 %p1, %r1, %r2;"), &[([f(2.0), NAN, 0], holds[3])]);
}

#[test]
fn floats_and_nan() {
    ordered("eq", [0, 1, 0, 0]);
    ordered("ne", [1, 0, 1, 0]);
    ordered("lt", [1, 0, 0, 0]);
    ordered("le", [1, 1, 0, 0]);
    ordered("gt", [0, 0, 1, 0]);
    ordered("ge", [0, 1, 1, 0]);
    ordered("equ", [0, 1, 0, 1]);
    ordered("neu", [1, 0, 1, 1]);
    ordered("ltu", [1, 0, 0, 1]);
    ordered("leu", [1, 1, 0, 1]);
    ordered("gtu", [0, 0, 1, 1]);
    ordered("geu", [0, 1, 1, 1]);
    ordered("num", [1, 1, 1, 0]);
    ordered("nan", [0, 0, 0, 1]);
    check_predicate("setp.eq.f32 %p1, %r1, %r2;", &[([0x8000_0000, 0, 0], 1), ([1, 0, 0], 0)]);
    check_predicate("setp.eq.ftz.f32 %p1, %r1, %r2;", &[([1, 0, 0], 1)]);
    check_predicate("setp.lt.f64 %p1, %d1, %d2;", &[([d(-1.0), d(1.0), 0], 1)]);
    check_predicate("setp.lt.f16 %p1, %h1, %h2;", &[([0xbc00, 0x3c00, 0], 1), ([0x7e00, 0x3c00, 0], 0)]);
    check_predicate("setp.geu.bf16 %p1, %h1, %h2;", &[([0xbf80, 0x3f80, 0], 0), ([0x7fc0, 0x3f80, 0], 1)]);
}

#[test]
fn integers_by_sign() {
    check_predicate("setp.lt.s32 %p1, %r1, %r2;", &[([MAX, 0, 0], 1)]);
    check_predicate("setp.lt.u32 %p1, %r1, %r2;", &[([MAX, 0, 0], 0)]);
    check_predicate("setp.lo.u32 %p1, %r1, %r2;", &[([0, MAX, 0], 1)]);
    check_predicate("setp.ls.u32 %p1, %r1, %r2;", &[([MAX, MAX, 0], 1)]);
    check_predicate("setp.hi.u32 %p1, %r1, %r2;", &[([MAX, 0, 0], 1)]);
    check_predicate("setp.hs.u32 %p1, %r1, %r2;", &[([0, 0, 0], 1)]);
    check_predicate("setp.gt.s16 %p1, %h1, %h2;", &[([0xffff, 0, 0], 0), ([1, 0, 0], 1)]);
    check_predicate("setp.ge.s64 %p1, %d1, %d2;", &[([u64::MAX, 0, 0], 0), ([0, 0, 0], 1)]);
    check_predicate("setp.le.u64 %p1, %d1, %d2;", &[([u64::MAX, 0, 0], 0)]);
    check_predicate("setp.eq.b64 %p1, %d1, %d2;", &[([1 << 40, 1 << 41, 0], 0), ([7, 7, 0], 1)]);
    check_predicate("setp.ne.b16 %p1, %h1, %h2;", &[([1, 2, 0], 1)]);
}

#[test]
fn both_results_are_joined_with_a_predicate() {
    let with = |body: &str| format!("setp.ne.u32 %p3, %r3, 0; {body}");
    // The first holds a < b and c; the second a >= b and c.
    let cases = [([1, 2, 1], 1), ([1, 2, 0], 0), ([2, 1, 1], 0)];
    check_predicate(&with("setp.lt.and.u32 %p1|%p2, %r1, %r2, %p3;"), &cases);
    let cases = [([1, 2, 1], 0), ([2, 1, 0], 0), ([2, 1, 1], 1)];
    check_predicate(&with("setp.lt.and.u32 %p2|%p1, %r1, %r2, %p3;"), &cases);
    check_predicate(&with("setp.lt.or.u32 %p1, %r1, %r2, !%p3;"), &[([2, 1, 0], 1), ([2, 1, 1], 0)]);
    check_predicate(&with("setp.lt.xor.u32 %p1, %r1, %r2, %p3;"), &[([1, 2, 1], 0), ([1, 2, 0], 1)]);
    // Of a pair of halves, the lower one's result first.
    let halves = "setp.lt.f16x2 %p1|%p2, %r1, %r2;";
    check_predicate(halves, &[([0x4000_3c00, 0x3c00_4000, 0], 1)]);
    check_predicate("setp.lt.f16x2 %p2|%p1, %r1, %r2;", &[([0x4000_3c00, 0x3c00_4000, 0], 0)]);
}

#[test]
fn results_in_registers() {
    check32("set.lt.u32.s32 %r0, %r1, %r2;", &[([MAX, 0, 0], MAX), ([0, 0, 0], 0)]);
    check32("set.lt.f32.s32 %r0, %r1, %r2;", &[([MAX, 0, 0], f(1.0)), ([0, 0, 0], 0)]);
    check32("set.gt.u32.f32 %r0, %r1, %r2;", &[([f(2.0), f(1.0), 0], MAX), ([NAN, f(1.0), 0], 0)]);
    check16("set.lt.f16.f16 %h0, %h1, %h2;", &[([0x3c00, 0x4000, 0], 0x3c00)]);
    check32("set.lt.f16x2.f16x2 %r0, %r1, %r2;", &[([0x4000_3c00, 0x3c00_4000, 0], 0x3c00)]);
    check32("set.ge.u32.bf16x2 %r0, %r1, %r2;", &[([0x4000_3f80, 0x3f80_4000, 0], 0xffff_0000)]);
}

#[test]
fn choices() {
    let chosen = "setp.ne.u32 %p2, %r3, 0; selp.b32 %r0, %r1, %r2, %p2;";
    check32(chosen, &[([1, 2, 1], 1), ([1, 2, 0], 2)]);
    check64("setp.ne.u32 %p2, %r3, 0; selp.f64 %d0, %d1, %d2, %p2;", &[([1 << 40, 2, 1], 1 << 40)]);
    check32("slct.b32.s32 %r0, %r1, %r2, %r3;", &[([1, 2, 0], 1), ([1, 2, i32(-1)], 2)]);
    check32(
        "slct.f32.f32 %r0, %r1, %r2, %r3;",
        &[([1, 2, 0x8000_0000], 1), ([1, 2, f(-1.0)], 2), ([1, 2, NAN], 2)],
    );
    check32("slct.ftz.u32.f32 %r0, %r1, %r2, %r3;", &[([1, 2, 0x8000_0001], 1)]);
}

#[test]
fn logic_on_predicates() {
    let set = "setp.ne.u32 %p2, %r1, 0; setp.ne.u32 %p3, %r2, 0;";
    let table = |values: [u64; 4]| {
        [[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]].into_iter().zip(values).collect::<Vec<_>>()
    };
    check_predicate(&format!("{set} and.pred %p1, %p2, %p3;"), &table([0, 0, 0, 1]));
    check_predicate(&format!("{set} or.pred %p1, %p2, %p3;"), &table([0, 1, 1, 1]));
    check_predicate(&format!("{set} xor.pred %p1, %p2, %p3;"), &table([0, 1, 1, 0]));
    check_predicate(&format!("{set} not.pred %p1, %p2;"), &table([1, 1, 0, 0]));
    check_predicate(&format!("{set} mov.pred %p1, %p3;"), &table([0, 1, 0, 1]));
}
