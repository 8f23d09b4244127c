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
