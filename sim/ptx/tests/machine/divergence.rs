//! Lanes that part, and meet again.

use super::support::{block, options};
use halite_ptx::{FaultKind, WaitingFor};

#[test]
fn loops_of_different_lengths() {
    let run = block(
        40,
        "mov.u32 %r1, 0; mov.u32 %r2, 0; LOOP: setp.ge.u32 %p1, %r1, %r0; @%p1 bra DONE;
        add.u32 %r2, %r2, %r1; add.u32 %r1, %r1, 1; bra LOOP;
        DONE: activemask.b32 %r3; popc.b32 %r3, %r3; shl.b32 %r3, %r3, 16; or.b32 %r2, %r2, %r3; st.global.u32 [%d4], %r2;",
    );
    // All lanes of each warp are together again behind the loop.
    let expected: Vec<u32> = (0..40)
        .map(|lane: u32| (lane * lane.saturating_sub(1) / 2) | ((if lane < 32 { 32 } else { 8 }) << 16))
        .collect();
    assert_eq!(run.output(), expected);
}

#[test]
fn branches_by_a_table() {
    let run = block(
        32,
        "and.b32 %r1, %r0, 3; ts: .branchtargets A, B, C, A; brx.idx %r1, ts;
        A: mov.u32 %r2, 10; bra DONE; B: mov.u32 %r2, 20; bra DONE; C: mov.u32 %r2, 30;
        DONE: st.global.u32 [%d4], %r2;",
    );
    assert_eq!(run.output()[..5], [10, 20, 30, 10, 10]);
    let run = block(32, "ts: .branchtargets A;\nbrx.idx %r0, ts; // HERE\nA: mov.u32 %r2, 10;");
    assert_eq!(run.fault(), FaultKind::BranchIndex { index: 1, targets: 1 });
}

#[test]
fn a_shuffle_waits_for_the_lanes_that_it_names() {
    let run = block(
        32,
        "setp.lt.u32 %p1, %r0, 16; mov.u32 %r1, %r0; @!%p1 bra ALL; mov.u32 %r2, 0;
        LOOP: add.u32 %r1, %r1, 100; add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 3; @%p2 bra LOOP;
        ALL: shfl.sync.bfly.b32 %r3, %r1, 31, 31, 0xffffffff; st.global.u32 [%d4], %r3;",
    );
    let expected: Vec<u32> = (0..32).map(|lane| 31 - lane + if 31 - lane < 16 { 300 } else { 0 }).collect();
    assert_eq!(run.output(), expected);
}

#[test]
fn lanes_synchronise_from_two_branches() {
    // Each half waits at a `bar.warp.sync` of its own.
    let run = block(
        32,
        "mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.u32 %r3, %r1, %r2; xor.b32 %r4, %r2, 64; add.u32 %r4, %r1, %r4;
        setp.lt.u32 %p1, %r0, 16; @%p1 bra LOW;
        st.shared.u32 [%r3], %r0; bar.warp.sync 0xffffffff; ld.shared.u32 %r5, [%r4]; bra DONE;
        LOW: add.u32 %r6, %r0, 50; st.shared.u32 [%r3], %r6; bar.warp.sync 0xffffffff; ld.shared.u32 %r5, [%r4];
        DONE: st.global.u32 [%d4], %r5;",
    );
    let expected: Vec<u32> = (0..32).map(|lane| if lane < 16 { lane + 16 } else { lane - 16 + 50 }).collect();
    assert_eq!(run.shared(128).output(), expected);
}

#[test]
fn a_lane_may_wait_for_another_one_of_its_warp() {
    // A lock: the lanes that spin are less far in the text than the one that holds it.
    let run = block(
        32,
        "mov.u32 %r9, 0; setp.eq.u32 %p3, %r0, 0; @%p3 st.shared.u32 [s], %r9; @%p3 st.shared.u32 [s+4], %r9; bar.sync 0;
        TRY: atom.acquire.cta.shared.cas.b32 %r1, [s], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra TRY;
        ld.volatile.shared.u32 %r2, [s+4]; add.u32 %r2, %r2, 1; st.volatile.shared.u32 [s+4], %r2;
        atom.release.cta.shared.exch.b32 %r3, [s], 0; st.global.u32 [%d4], %r2;",
    );
    let mut order = run.shared(8).output();
    order.sort_unstable();
    assert_eq!(order, (1..=32).collect::<Vec<_>>());
}

#[test]
fn a_warp_may_wait_for_another_one() {
    let run = block(
        64,
        "mov.u32 %r9, 0; setp.eq.u32 %p3, %r0, 0; @%p3 st.shared.u32 [s], %r9; bar.sync 0;
        setp.ge.u32 %p1, %r0, 32; @%p1 bra SECOND;
        WAIT: ld.volatile.shared.u32 %r1, [s]; setp.eq.u32 %p2, %r1, 0; @%p2 bra WAIT;
        st.global.u32 [%d4], %r1; ret;
        SECOND: mov.u32 %r2, 7; setp.eq.u32 %p4, %r0, 32; @%p4 st.volatile.shared.u32 [s], %r2;
        st.global.u32 [%d4], %r2;",
    );
    assert_eq!(run.shared(4).output(), [7; 64]);
}

#[test]
fn lanes_that_never_come_are_a_deadlock() {
    // The upper half waits at the block's barrier, the lower half for the upper half.
    let run = block(
        32,
        "setp.lt.u32 %p1, %r0, 16; @%p1 bra LOW; bar.sync 0; bra DONE;
        LOW: shfl.sync.idx.b32 %r1, %r0, 0, 31, 0xffffffff; DONE: st.global.u32 [%d4], %r0;",
    );
    let FaultKind::Deadlock { waiting } = run.fault() else { panic!() };
    assert_eq!(waiting.len(), 2);
    assert!(waiting.iter().any(|w| w.lanes == 0xffff_0000 && w.what == WaitingFor::Barrier(0)));
    assert!(waiting.iter().any(|w| w.lanes == 0xffff && w.what == WaitingFor::Lanes(0xffff_0000)));
}

#[test]
fn member_masks_must_be_true() {
    let run = block(32, "setp.lt.u32 %p1, %r0, 9;\n@%p1 vote.sync.any.pred %p2, %p1, 0xffffffff; // HERE");
    assert_eq!(run.fault(), FaultKind::MissingLanes { lanes: 0x1ff, missing: 0xffff_fe00 });
    let run = block(32, "setp.lt.u32 %p1, %r0, 9;\nvote.sync.any.pred %p2, %p1, 0x1ff; // HERE");
    assert_eq!(run.fault(), FaultKind::NotAMember { members: 0x1ff });
    // Lanes that no thread has, and lanes that have ended, are not waited for.
    let run = block(
        20,
        "setp.gt.u32 %p1, %r0, 9; @%p1 ret; redux.sync.add.u32 %r1, %r0, 0xffffffff;
        st.global.u32 [%d4], %r1;",
    );
    assert_eq!(run.output()[..10], [45; 10]);
}

#[test]
fn tiles_of_a_warp_have_masks_of_their_own() {
    let body = |op: &str| {
        format!(
            "and.b32 %r1, %r0, 16; mov.u32 %r2, 0xffff; shl.b32 %r2, %r2, %r1;
            {op} st.global.u32 [%d4], %r4;"
        )
    };
    let by_tile = |values: [u32; 2]| [[values[0]; 16], [values[1]; 16]].concat();
    for (op, expected) in [
        ("setp.ge.u32 %p2, %r0, 0; vote.sync.ballot.b32 %r4, %p2, %r2;", by_tile([0xffff, 0xffff_0000])),
        ("redux.sync.add.u32 %r4, %r0, %r2;", by_tile([120, 376])),
        ("shfl.sync.bfly.b32 %r4, %r0, 15, 0x101f, %r2;", (0..32).map(|lane| lane ^ 15).collect()),
    ] {
        assert_eq!(block(32, &body(op)).output(), expected, "{op}");
    }
    // Where a tile's lanes come to the instruction at different times, each waits for all of its own.
    let apart = "setp.ge.u32 %p1, %r0, 28; and.b32 %r1, %r0, 16; mov.u32 %r2, 0xffff; shl.b32 %r2, %r2, %r1; setp.ge.u32 %p2, %r0, 0;
        @%p1 bra LATE; BACK: vote.sync.ballot.b32 %r4, %p2, %r2; bra DONE;
        LATE: add.u32 %r3, %r3, 1; bra BACK; DONE: st.global.u32 [%d4], %r4;";
    assert_eq!(block(32, apart).output(), by_tile([0xffff, 0xffff_0000]));
}

#[test]
fn what_never_ends_is_stopped() {
    let mut run = block(64, "LOOP:\nbra LOOP; // HERE");
    run.options = options().with_max_steps(10_000);
    assert_eq!(run.fault(), FaultKind::Endless { steps: 10_000 });
}
