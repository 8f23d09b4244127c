//! `atom` and `red`.

use super::support::{Run, block};
use halite_ptx::{FaultKind, LaunchShape};

#[test]
fn every_lane_gets_another_ticket() {
    let run = block(
        64,
        "setp.ne.u32 %p1, %r0, 0; mov.u32 %r1, 0; @!%p1 st.shared.u32 [s], %r1; bar.sync 0;
        atom.shared.add.u32 %r2, [s], 1; st.global.u32 [%d4], %r2;",
    );
    let mut tickets = run.shared(4).output();
    tickets.sort_unstable();
    assert_eq!(tickets, (0..64).collect::<Vec<_>>());
}

#[test]
fn blocks_on_several_host_threads_count_together() {
    let mut run = block(
        128,
        "red.global.add.u32 [%d0], 1; atom.global.add.u64 %d8, [%d0+8], 3; mov.f32 %f1, 0f3F800000;
        atom.global.add.f32 %f2, [%d0+16], %f1; atom.global.max.s32 %r1, [%d0+20], %r0;
        mov.u32 %r5, %ctaid.x; mov.u32 %r6, %nctaid.x; membar.gl; atom.global.inc.u32 %r7, [%d0+24], 1000;
        setp.ne.u32 %p1, %r7, 8191; @%p1 ret;
        ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d0]; st.global.v4.u32 [%d1], {%r1, %r2, %r3, %r4};
        ld.global.v2.u32 {%r1, %r2}, [%d0+16]; st.global.v2.u32 [%d1+16], {%r1, %r2};",
    );
    run.body = run.body.replace("1000;", "100000;");
    run.options = run.options.with_threads(4);
    let run = Run { shape: LaunchShape::linear(64, 128), ..run }
        .input([0, 0, 0, 0, 0, (-5i32) as u32, 0])
        .outputs(6);
    assert_eq!(run.output(), [8192, 0, 3 * 8192, 0, 8192f32.to_bits(), 127]);
}

#[test]
fn each_operation() {
    let one = |operation: &str, old: u32, b: u32| {
        let body = format!(
            "ld.global.v2.u32 {{%r1, %r2}}, [%d0]; mov.u32 %r9, 7; st.shared.u32 [s], %r1;
            atom.shared.{operation} %r3, [s], %r2{}; ld.shared.u32 %r4, [s];
            atom.global.{operation} %r5, [%d0], %r2{}; st.global.v2.u32 [%d1], {{%r3, %r4}};
            ld.global.u32 %r6, [%d0]; st.global.v2.u32 [%d1+8], {{%r5, %r6}};",
            if operation.starts_with("cas") { ", %r9" } else { "" },
            if operation.starts_with("cas") { ", %r9" } else { "" },
        );
        let output = block(1, &body).shared(4).input([old, b]).outputs(4).output();
        assert_eq!((output[0], output[2]), (old, old), "{operation}");
        assert_eq!(output[1], output[3], "{operation}");
        output[1]
    };
    assert_eq!(one("and.b32", 0b1100, 0b1010), 0b1000);
    assert_eq!(one("or.b32", 0b1100, 0b1010), 0b1110);
    assert_eq!(one("xor.b32", 0b1100, 0b1010), 0b0110);
    assert_eq!(one("exch.b32", 3, 9), 9);
    assert_eq!(one("cas.b32", 3, 3), 7);
    assert_eq!(one("cas.b32", 3, 4), 3);
    assert_eq!(one("min.s32", 3, u32::MAX), u32::MAX);
    assert_eq!(one("min.u32", 3, u32::MAX), 3);
    assert_eq!(one("max.s32", 3, u32::MAX), 3);
    assert_eq!(one("inc.u32", 3, 3), 0);
    assert_eq!(one("dec.u32", 0, 8), 8);
    assert_eq!(one("add.s32", 3, u32::MAX), 2);
}

#[test]
fn halves_of_a_word_change_by_themselves() {
    let run = block(
        2,
        "mul.wide.u32 %d8, %r0, 2; add.s64 %d8, %d0, %d8; mov.b16 %h1, 0x3C00;
        atom.global.add.noftz.f16 %h2, [%d8], %h1; bar.sync 0; setp.ne.u32 %p1, %r0, 0; @%p1 ret;
        ld.global.u32 %r1, [%d0]; st.global.u32 [%d1], %r1;
        atom.global.add.noftz.f16x2 %r2, [%d0], 0x3C003C00; ld.global.u32 %r1, [%d0]; st.global.u32 [%d1+4], %r1;",
    );
    // 1.0 and 2.0, each plus 1, and once more.
    assert_eq!(run.input([0x4000_3c00]).output(), [0x4200_4000, 0x4400_4200]);
}

#[test]
fn a_misaligned_address_is_a_fault() {
    let run = block(1, "atom.global.add.u32 %r1, [%d0+2], 1; // HERE");
    assert!(matches!(run.fault(), FaultKind::Misaligned { align: 4, .. }));
}
