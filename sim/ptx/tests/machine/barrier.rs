//! `bar`: all threads, some threads, arrivals, reductions.

use super::support::block;
use halite_ptx::FaultKind;

#[test]
fn warps_exchange_values() {
    let run = block(
        96,
        "mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.u32 %r3, %r1, %r2; st.shared.u32 [%r3], %r0; bar.sync 0;
        mov.u32 %r4, 95; sub.u32 %r4, %r4, %r0; shl.b32 %r4, %r4, 2; add.u32 %r4, %r1, %r4;
        ld.shared.u32 %r5, [%r4]; st.global.u32 [%d4], %r5;",
    );
    assert_eq!(run.shared(384).output(), (0..96).rev().collect::<Vec<_>>());
}

#[test]
fn threads_that_have_ended_are_not_waited_for() {
    let run = block(
        96,
        "mov.u32 %r1, 1; st.global.u32 [%d4], %r1; setp.gt.u32 %p1, %r0, 40; @%p1 ret;
        bar.sync 0; st.global.u32 [%d4], %r0;",
    );
    let expected: Vec<u32> = (0..96).map(|thread| if thread > 40 { 1 } else { thread }).collect();
    assert_eq!(run.output(), expected);
}

#[test]
fn lanes_that_came_by_two_ways_meet_at_one_barrier() {
    let run = block(
        64,
        "setp.lt.u32 %p1, %r0, 9; @%p1 bra LESS; mov.u32 %r1, 1; bra JOIN; LESS: mov.u32 %r1, 2; JOIN:
        bar.sync 0; st.global.u32 [%d4], %r1;",
    );
    let expected: Vec<u32> = (0..64).map(|thread| if thread < 9 { 2 } else { 1 }).collect();
    assert_eq!(run.output(), expected);
}

#[test]
fn predicates_are_reduced_over_the_block() {
    let run = block(
        48,
        "setp.lt.u32 %p1, %r0, 40; bar.red.popc.u32 %r1, 0, %p1;
        bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 0, %p1; bar.red.or.pred %p4, 0, !%p1;
        selp.u32 %r2, 100, 0, %p2; selp.u32 %r3, 200, 0, %p3; selp.u32 %r4, 400, 0, %p4;
        add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; add.u32 %r1, %r1, %r4; st.global.u32 [%d4], %r1;",
    );
    assert_eq!(run.output(), [640; 48]);
}

#[test]
fn producers_arrive_and_consumers_wait() {
    // Warp 0 writes and arrives, warp 1 waits and reads; warps 2 and 3 have nothing to do with it.
    let run = block(
        128,
        "mov.u32 %r1, s; and.b32 %r2, %r0, 31; shl.b32 %r2, %r2, 2; add.u32 %r1, %r1, %r2; mov.u32 %r4, 0;
        setp.ge.u32 %p1, %r0, 32; @%p1 bra CONSUMER; st.shared.u32 [%r1], %r0; bar.arrive 3, 64; bra DONE;
        CONSUMER: setp.ge.u32 %p2, %r0, 64; @%p2 bra DONE; bar.sync 3, 64; ld.shared.u32 %r4, [%r1];
        DONE: st.global.u32 [%d4], %r4;",
    );
    let expected: Vec<u32> = (0..128).map(|thread| if thread / 32 == 1 { thread - 32 } else { 0 }).collect();
    assert_eq!(run.shared(128).output(), expected);
}

#[test]
fn a_barrier_is_used_again_and_again() {
    // A sum over neighbours, doubling the distance: two barriers a round.
    let run = block(
        128,
        "mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.u32 %r3, %r1, %r2; st.shared.u32 [%r3], %r0; mov.u32 %r6, 64;
        LOOP: bar.sync 0; setp.ge.u32 %p1, %r0, %r6; @%p1 bra SKIP; shl.b32 %r7, %r6, 2; add.u32 %r8, %r3, %r7;
        ld.shared.u32 %r9, [%r8]; ld.shared.u32 %r10, [%r3]; add.u32 %r9, %r9, %r10; st.shared.u32 [%r3], %r9;
        SKIP: shr.u32 %r6, %r6, 1; setp.ne.u32 %p2, %r6, 0; @%p2 bra LOOP;
        bar.sync 0; ld.shared.u32 %r9, [s]; st.global.u32 [%d4], %r9;",
    );
    assert_eq!(run.shared(512).output(), [127 * 64; 128]);
}

#[test]
fn numbers_and_counts_are_looked_at() {
    for (body, says) in [
        ("bar.sync 16; // HERE", "0 to 15"),
        ("bar.sync 1, 48; // HERE", "no multiple of 32"),
        ("mov.u32 %r1, 0; bar.sync 1, %r1; // HERE", "no multiple of 32"),
        (
            "setp.lt.u32 %p1, %r0, 32; @%p1 bar.sync 1, 64;\n@!%p1 bar.sync 1, 96; // HERE",
            "96 threads, where others wait at it with 64",
        ),
    ] {
        // A constant number that no block has is refused when the text is read.
        let body = body.replace("bar.sync 16;", "mov.u32 %r1, 16; bar.sync %r1;");
        let FaultKind::Barrier(problem) = block(64, &body).fault() else { panic!("{body}") };
        assert!(problem.contains(says), "{problem}");
    }
}
