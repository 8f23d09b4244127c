//! Races in shared memory: what is one, and what is none.

use super::support::block;
use halite_ptx::{Access, Checks, FaultKind};

/// What a thread does first, then what another one does, of the same warp (64 lanes apart: of another one).
fn two(first: &str, between: &str, second: &str, thread: u32) -> super::support::Run {
    let body = format!(
        "mov.u32 %r1, 1; setp.eq.u32 %p1, %r0, 0; setp.eq.u32 %p2, %r0, {thread}; @%p1 st.shared.u32 [s+4], %r1; bar.sync 0;
        @!%p1 bra SKIP; {first}
        SKIP: {between}
        @!%p2 bra DONE;
        {second} // HERE
        DONE: st.global.u32 [%d4], %r1;"
    );
    block(96, &body).shared(8)
}

const READ: &str = "ld.shared.u32 %r2, [s+4];";
const WRITE: &str = "st.shared.u32 [s+4], %r1;";
const ATOMIC: &str = "atom.shared.add.u32 %r2, [s+4], 1;";
const BYTE: &str = "st.shared.u8 [s+6], %r1;";
const NEXT_BYTE: &str = "st.shared.u8 [s+7], %r1;";

#[test]
fn two_accesses_one_of_which_writes() {
    for thread in [5, 64] {
        for first in [READ, WRITE, ATOMIC, BYTE] {
            for second in [READ, WRITE, ATOMIC, BYTE] {
                let run = two(first, "", second, thread);
                let harmless = first == READ && second == READ || first == ATOMIC && second == ATOMIC;
                if harmless {
                    run.output();
                    continue;
                }
                let FaultKind::Race { access, other, .. } = run.fault() else { panic!("{first} {second}") };
                let done = |text: &str| match text {
                    READ => Access::Read,
                    ATOMIC => Access::Atomic,
                    _ => Access::Write,
                };
                assert_eq!((access, other.access), (done(second), done(first)));
                assert_eq!((other.warp, other.lane), (0, Some(0)));
                // Barriers order them.
                two(first, "bar.sync 0;", second, thread).output();
            }
        }
        two(BYTE, "", NEXT_BYTE, thread).output();
    }
}

#[test]
fn a_barrier_of_the_warp_orders_its_lanes_only() {
    two(WRITE, "bar.warp.sync 0xffffffff;", READ, 5).output();
    assert!(matches!(two(WRITE, "bar.warp.sync 0xffffffff;", READ, 64).fault(), FaultKind::Race { .. }));
}

#[test]
fn only_those_who_come_to_a_barrier_are_ordered() {
    // Warps 0 and 1 meet; warp 2 reads.
    let meet = "setp.lt.u32 %p3, %r0, 64; @%p3 bar.sync 1, 64;";
    two(WRITE, meet, READ, 40).output();
    assert!(matches!(two(WRITE, meet, READ, 64).fault(), FaultKind::Race { .. }));
}

#[test]
fn fences_and_flags_order() {
    let flagged = |release: &str, acquire: &str| {
        let body = format!(
            "mov.u32 %r1, 1; mov.u32 %r2, 0; setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [s], %r2; bar.sync 0;
            setp.ge.u32 %p2, %r0, 32; @%p2 bra FIRST;
            WAIT: ld.volatile.shared.u32 %r3, [s]; setp.eq.u32 %p3, %r3, 0; @%p3 bra WAIT; {acquire}
            ld.shared.u32 %r4, [s+4]; // HERE
            st.global.u32 [%d4], %r4; ret;
            FIRST: setp.ne.u32 %p4, %r0, 32; @%p4 ret; mov.u32 %r5, 9; st.shared.u32 [s+4], %r5;
            {release} st.volatile.shared.u32 [s], %r1;"
        );
        block(64, &body).shared(8)
    };
    assert_eq!(flagged("membar.cta;", "membar.cta;").output()[..32], [9; 32]);
    assert!(matches!(flagged("membar.cta;", "").fault(), FaultKind::Race { .. }));
    assert!(matches!(flagged("", "membar.cta;").fault(), FaultKind::Race { .. }));
    let with_orders = |run: super::support::Run| {
        let body = run.body.replace("ld.volatile.shared", "ld.acquire.cta.shared");
        super::support::Run { body: body.replace("st.volatile.shared", "st.release.cta.shared"), ..run }
    };
    assert_eq!(with_orders(flagged("", "")).output()[..32], [9; 32]);
}

#[test]
fn a_fence_by_itself_orders_nothing() {
    // Both orders of writer and reader in the schedule, and all kinds of fence.
    for fence in ["membar.cta;", "membar.gl;", "fence.acq_rel.cta;", "fence.sc.gpu;"] {
        for (first, second) in [(WRITE, READ), (READ, WRITE), (WRITE, WRITE)] {
            assert!(
                matches!(two(first, fence, second, 64).fault(), FaultKind::Race { .. }),
                "{first} {fence}"
            );
        }
    }
    // Nor does a flag that the other warp never reads.
    let other = |flag: u32| {
        let body = format!(
            "mov.u32 %r1, 1; setp.ne.u32 %p1, %r0, 0; @!%p1 st.shared.u32 [s+24], %r1; bar.sync 0;
            setp.eq.u32 %p2, %r0, 32; @%p2 bra OTHER; @%p1 ret;
            st.shared.u32 [s], %r1; membar.cta; atom.shared.exch.b32 %r2, [s+8], %r1; ret;
            OTHER: ld.volatile.shared.u32 %r3, [s+{flag}]; membar.cta;
            st.shared.u32 [s], %r1; // HERE"
        );
        block(64, &body).shared(32).checks(Checks::BOUNDS.with_races(true))
    };
    other(8).output();
    assert!(matches!(other(24).fault(), FaultKind::Race { .. }));
}

#[test]
fn some_lanes_of_a_warp_meet_without_the_others() {
    // Lane l reads the word of lane l ^ by, after tiles of 8 lanes have met.
    let tiles = |by: u32, meet: &str| {
        let body = format!(
            "mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.u32 %r3, %r1, %r2; xor.b32 %r4, %r2, {}; add.u32 %r4, %r4, %r1;
            and.b32 %r5, %r0, 24; mov.u32 %r6, 0xff; shl.b32 %r6, %r6, %r5; setp.lt.u32 %p1, %r0, 8;
            st.shared.u32 [%r3], %r0; {meet}
            ld.shared.u32 %r7, [%r4]; // HERE
            st.global.u32 [%d4], %r7;",
            4 * by
        );
        block(32, &body).shared(128)
    };
    let masks = "bar.warp.sync %r6;";
    let branches = "@%p1 bra LOW; bar.warp.sync %r6; bra MET; LOW: bar.warp.sync %r6; MET:";
    for by in [1, 7] {
        for meet in [masks, branches] {
            assert_eq!(tiles(by, meet).output(), (0..32).map(|lane| lane ^ by).collect::<Vec<_>>());
        }
        // The first tile only.
        assert!(matches!(tiles(by, "@%p1 bar.warp.sync 0xff;").fault(), FaultKind::Race { .. }));
    }
    for meet in [masks, branches] {
        assert!(matches!(tiles(8, meet).fault(), FaultKind::Race { .. }));
    }
}

#[test]
fn a_matrix_is_stored_by_the_lanes_that_hold_it() {
    // Lane l reads word `l ^ by` of the matrix that all have stored: l's own, where it is not transposed.
    let stored = |by: u32, trans: &str, between: &str| {
        let body = format!(
            "mov.u32 %r1, s; and.b32 %r2, %r0, 7; shl.b32 %r2, %r2, 4; add.u32 %r2, %r2, %r1;
            shl.b32 %r3, %r0, 2; xor.b32 %r3, %r3, {}; add.u32 %r3, %r3, %r1;
            stmatrix.sync.aligned.m8n8.x1{trans}.shared.b16 [%r2], {{%r0}}; {between}
            ld.shared.u32 %r4, [%r3]; // HERE
            st.global.u32 [%d4], %r4;",
            4 * by
        );
        block(32, &body).shared(128)
    };
    assert_eq!(stored(0, "", "").output(), (0..32).collect::<Vec<_>>());
    stored(1, "", "bar.warp.sync 0xffffffff;").output();
    stored(0, ".trans", "bar.warp.sync 0xffffffff;").output();
    assert!(matches!(stored(1, "", "").fault(), FaultKind::Race { .. }));
    assert!(matches!(stored(0, ".trans", "").fault(), FaultKind::Race { .. }));
    // Two rows in one place.
    let run = block(32, "stmatrix.sync.aligned.m8n8.x1.shared.b16 [s], {%r0}; // HERE").shared(16);
    assert!(matches!(run.fault(), FaultKind::Race { access: Access::Write, .. }));
}

#[test]
fn lanes_of_one_store() {
    // Different values for one word, or one value.
    let body = "st.shared.u32 [s], %r0; // HERE";
    let FaultKind::Race { access, other, .. } = block(32, body).shared(4).fault() else { panic!() };
    assert_eq!((access, other.access, other.lane), (Access::Write, Access::Write, Some(0)));
    block(32, "mov.u32 %r1, 7; st.shared.u32 [s], %r1;").shared(4).output();
}

#[test]
fn different_races_are_told_together() {
    let body =
        "mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.u32 %r2, %r1, %r2; xor.b32 %r3, %r2, 128; mov.u32 %r4, 0;
        st.shared.u32 [%r2], %r0;
        ld.shared.u32 %r5, [%r3];
        LOOP: ld.shared.u32 %r6, [%r3]; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 9; @%p1 bra LOOP;
        st.global.u32 [%d4], %r5;";
    let run = block(64, body).shared(256).checks(Checks::BOUNDS.with_races(true));
    let lines: Vec<u32> = run.faults().iter().map(|fault| fault.place.line).collect();
    // Warp 0 reads before warp 1 writes: the write and both of warp 1's reads race, each told once.
    assert_eq!(lines.len(), 3, "{lines:?}");
    let mut run = run;
    run.options = run.options.with_max_faults(2);
    assert_eq!(run.faults().len(), 2);
}
