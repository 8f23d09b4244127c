//! `mbarrier`.

use super::support::block;
use halite_ptx::{FaultKind, WaitingFor};

/// Sets up an object at `s` that expects `count` arrivals.
fn init(count: u32) -> String {
    format!("setp.ne.u32 %p7, %r0, 0; @!%p7 mbarrier.init.shared.b64 [s], {count}; bar.sync 0;")
}

#[test]
fn warps_wait_for_a_phase() {
    // All 64 threads write, arrive, wait for phase 0, and read the other warp's words; then the same in phase 1.
    let body = format!(
        "{} mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.u32 %r2, %r2, %r1; xor.b32 %r3, %r2, 128;
        st.shared.u32 [%r2+128], %r0; mbarrier.arrive.shared.b64 %d8, [s];
        WAIT: mbarrier.test_wait.shared.b64 %p1, [s], %d8; @!%p1 bra WAIT;
        ld.shared.u32 %r4, [%r3+128]; mbarrier.arrive.shared.b64 _, [s];
        AGAIN: mbarrier.try_wait.parity.shared.b64 %p1, [s], 1; @!%p1 bra AGAIN;
        st.shared.u32 [%r2+128], %r4; st.global.u32 [%d4], %r4;",
        init(64)
    );
    let run = block(64, &body).shared(512);
    assert_eq!(run.output(), (0..64).map(|thread| thread ^ 32).collect::<Vec<_>>());
    // Without the second phase, words are written that the other warp may still read.
    let start = body.find("mbarrier.arrive.shared.b64 _").unwrap();
    let end = body.find("st.shared.u32 [%r2+128], %r4").unwrap();
    let body = format!("{}\n{}", &body[..start], &body[end..]);
    assert!(matches!(block(64, &body).shared(512).fault(), FaultKind::Race { .. }));
}

#[test]
fn lanes_of_one_warp_wait_for_each_other() {
    // Lane 0 is behind the others in the text, and they wait for it.
    let body = "setp.ne.u32 %p2, %r0, 0; @!%p2 mbarrier.init.shared.b64 [s], 1; bar.sync 0; @!%p2 bra LATER;
        WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [s], 0; @!%p1 bra WAIT; bra DONE;
        LATER: mbarrier.arrive.shared.b64 _, [s]; DONE: st.global.u32 [%d4], %r0;";
    assert_eq!(block(32, body).shared(8).output(), (0..32).collect::<Vec<_>>());
}

#[test]
fn who_drops_out_is_not_expected_again() {
    let body = format!(
        "{} setp.lt.u32 %p2, %r0, 32; @%p2 bra FIRST; mbarrier.arrive_drop.shared.b64 %d8, [s]; bra DONE;
        FIRST: mbarrier.arrive.shared.b64 %d8, [s]; ONE: mbarrier.try_wait.shared.b64 %p1, [s], %d8; @!%p1 bra ONE;
        mbarrier.arrive.shared.b64 %d8, [s]; TWO: mbarrier.try_wait.shared.b64 %p1, [s], %d8; @!%p1 bra TWO;
        mbarrier.pending_count.b64 %r4, %d8; st.global.u32 [%d4], %r4; ret; DONE: st.global.u32 [%d4], %r0;",
        init(64)
    );
    let output = block(64, &body).shared(16).output();
    // Of the second phase's 32 the first found 32 missing, the last one.
    assert_eq!(output[..32], (1..=32).rev().collect::<Vec<_>>());
}

#[test]
fn copies_arrive() {
    let body = format!(
        "{} mul.wide.u32 %d9, %r0, 4; add.s64 %d9, %d0, %d9; mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.u32 %r2, %r2, %r1;
        cp.async.ca.shared.global [%r2+16], [%d9], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [s];
        WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [s], 0; @!%p1 bra WAIT;
        mov.u32 %r3, 63; sub.u32 %r3, %r3, %r0; shl.b32 %r3, %r3, 2; add.u32 %r3, %r3, %r1;
        ld.shared.u32 %r4, [%r3+16]; st.global.u32 [%d4], %r4;",
        init(64)
    );
    assert_eq!(block(64, &body).shared(272).output(), (0..64).rev().collect::<Vec<_>>());
}

#[test]
fn an_object_must_be_one() {
    let run = block(1, "mbarrier.arrive.shared.b64 %d8, [s]; // HERE").shared(8);
    assert!(matches!(run.fault(), FaultKind::Mbarrier { problem: "it was not initialised", .. }));
    let body = "mbarrier.init.shared.b64 [s], 2; mbarrier.inval.shared.b64 [s];
        mbarrier.arrive.shared.b64 %d8, [s]; // HERE";
    assert!(matches!(block(1, body).shared(8).fault(), FaultKind::Mbarrier { .. }));
    let body = "mbarrier.init.shared.b64 [s], 2;\nmbarrier.arrive.noComplete.shared.b64 %d8, [s], 3; // HERE";
    let problem = "more threads arrive than it expects";
    assert_eq!(block(1, body).shared(8).fault(), FaultKind::Mbarrier { address: 0, problem });
}

#[test]
fn a_phase_that_never_ends_is_told() {
    let body = "mbarrier.init.shared.b64 [s], 2; mbarrier.arrive.shared.b64 %d8, [s];
        WAIT: mbarrier.try_wait.shared.b64 %p1, [s], %d8; @!%p1 bra WAIT;";
    let mut run = block(1, body).shared(8);
    run.options = run.options.with_max_steps(1000);
    assert_eq!(run.fault(), FaultKind::Endless { steps: 1000 });
}

#[test]
fn who_asks_in_vain_is_a_deadlock() {
    // Nobody is left who could arrive: warp 0 waits at the barrier, warp 1 asks.
    let body = format!(
        "{} setp.lt.u32 %p2, %r0, 32; @%p2 bra OTHER;
        WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [s], 0;
        @!%p1 bra WAIT; OTHER: bar.sync 1;",
        init(65)
    );
    let FaultKind::Deadlock { waiting } = block(64, &body).shared(8).fault() else { panic!() };
    let what: Vec<_> = waiting.iter().map(|waiting| (waiting.warp, waiting.what)).collect();
    assert_eq!(what, [(0, WaitingFor::Barrier(1)), (1, WaitingFor::MemoryBarrier(0))]);
    assert_eq!(waiting[0].line, waiting[1].line + 1);
}

#[test]
fn others_must_know_that_an_object_is_there() {
    let body = |between: &str| {
        format!(
            "setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared.b64 [s], 64;
            {between}
            mbarrier.arrive.shared.b64 %d8, [s]; // HERE"
        )
    };
    block(64, &body("bar.sync 0;")).shared(8).output();
    for between in ["", "membar.cta;", "bar.warp.sync 0xffffffff;"] {
        assert!(matches!(block(64, &body(between)).shared(8).fault(), FaultKind::Race { .. }), "{between}");
    }
}
