//! `cp.async`.

use super::support::block;
use halite_ptx::{Access, Checks, FaultKind};

/// Each lane copies 16 bytes to its own place, then reads the first word of what its neighbour copied.
fn copy(after: &str) -> String {
    format!(
        "mul.wide.u32 %d8, %r0, 16; add.s64 %d9, %d0, %d8; shl.b32 %r2, %r0, 4; mov.u32 %r3, s; add.u32 %r2, %r2, %r3;
        cp.async.cg.shared.global [%r2], [%d9], 16; cp.async.commit_group;
        {after}
        xor.b32 %r4, %r2, 16;
        ld.shared.u32 %r5, [%r4]; // HERE
        st.global.u32 [%d4], %r5;"
    )
}

#[test]
fn copies_have_come_when_they_were_waited_for() {
    let expected: Vec<u32> = (0..64).map(|thread| 4 * (thread ^ 1)).collect();
    for wait in ["cp.async.wait_group 0;", "cp.async.wait_all;"] {
        let run = block(64, &copy(&format!("{wait} bar.sync 0;"))).shared(1024).input(0..256);
        assert_eq!(run.output(), expected);
    }
}

#[test]
fn a_missing_wait_is_found() {
    let run = block(64, &copy("bar.sync 0;")).shared(1024).input(0..256);
    let expected = FaultKind::CopyUnderWay { access: Access::Read, address: 16 };
    assert_eq!(run.fault(), expected);
    // By each of the checks alone.
    let run = run.checks(Checks::BOUNDS.with_races(true));
    assert_eq!(run.fault(), expected);
    let run = run.checks(Checks::BOUNDS.with_uninitialised(true));
    assert_eq!(run.fault(), expected);
    // And with none it has its effect.
    let run = run.checks(Checks::BOUNDS);
    assert_eq!(run.output(), [u32::MAX; 64]);
}

#[test]
fn a_missing_barrier_is_a_race() {
    let run = block(64, &copy("cp.async.wait_group 0;")).shared(1024).input(0..256);
    let FaultKind::Race { access, other, .. } = run.fault() else { panic!() };
    assert_eq!((access, other.access, other.warp), (Access::Read, Access::Write, 0));
}

#[test]
fn the_newest_groups_may_be_under_way() {
    // Three groups of one copy each: after `wait_group 1` the first two are there.
    let body = "cp.async.ca.shared.global [s], [%d0], 4; cp.async.commit_group;
        cp.async.ca.shared.global [s+4], [%d0+4], 4; cp.async.commit_group;
        cp.async.ca.shared.global [s+8], [%d0+8], 4; cp.async.commit_group;
        cp.async.wait_group 1; ld.shared.u32 %r1, [s]; ld.shared.u32 %r2, [s+4]; st.global.v2.u32 [%d1], {%r1, %r2};";
    assert_eq!(block(1, body).shared(16).outputs(2).output(), [0, 1]);
    let body = format!("{body}\nld.shared.u32 %r3, [s+8]; // HERE");
    let expected = FaultKind::CopyUnderWay { access: Access::Read, address: 8 };
    assert_eq!(block(1, &body).shared(16).outputs(2).fault(), expected);
}

#[test]
fn bytes_beyond_the_source_are_zeros() {
    let body = "mov.u32 %r1, 6; mov.u32 %r2, 0; setp.eq.u32 %p1, %r0, %r0; mov.u64 %d8, 0;
        cp.async.ca.shared.global [s], [%d0], 8, %r1;
        cp.async.cg.shared.global [s+16], [%d8], 16, %r2;
        cp.async.wait_all; ld.shared.v2.u32 {%r3, %r4}, [s]; ld.shared.u32 %r5, [s+28];
        st.global.v2.u32 [%d1], {%r3, %r4}; st.global.u32 [%d1+8], %r5;";
    let run = block(1, body).shared(32).input([0x0403_0201, 0x0807_0605]).outputs(3);
    assert_eq!(run.output(), [0x0403_0201, 0x0605, 0]);
}

#[test]
fn what_is_read_must_exist() {
    let body = "cp.async.cg.shared.global [s], [%d0+16], 16; // HERE";
    let run = block(1, body).shared(16).input(0..7);
    assert!(matches!(run.fault(), FaultKind::OutOfBounds { bytes: 16, .. }));
    let body = "cp.async.cg.shared.global [s+8], [%d0], 16; // HERE";
    assert!(matches!(block(1, body).shared(32).fault(), FaultKind::Misaligned { align: 16, .. }));
    let body = "cp.async.cg.shared.global [s+16], [%d0], 16; // HERE";
    assert!(matches!(
        block(1, body).shared(16).fault(),
        FaultKind::OutOfBounds { access: Access::Write, .. }
    ));
}

#[test]
fn a_place_that_is_read_must_not_be_filled() {
    // Warp 1 fills what warp 0 reads, with no barrier between.
    let body = "setp.ge.u32 %p1, %r0, 32; mov.u32 %r1, 5; @!%p1 st.shared.u32 [s], %r1; @!%p1 bra DONE;
        setp.ne.u32 %p2, %r0, 32; @%p2 ret;
        cp.async.ca.shared.global [s], [%d0], 4; // HERE\nDONE: ";
    assert!(matches!(block(64, body).shared(4).fault(), FaultKind::Race { access: Access::Write, .. }));
}
