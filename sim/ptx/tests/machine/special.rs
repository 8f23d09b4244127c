//! Special registers that change while a kernel runs.

use super::support::block;

#[test]
fn clocks_count_the_instructions_of_the_warp() {
    // Three instructions lie between the first two readings, none between the last two.
    let run = block(
        64,
        "mov.u32 %r1, %clock; add.u32 %r4, %r1, 0; add.u32 %r4, %r4, 0; add.u32 %r4, %r4, 0; mov.u32 %r2, %clock;
        mov.u64 %d8, %clock64; mov.u64 %d9, %globaltimer; sub.u32 %r2, %r2, %r1; cvt.u32.u64 %r5, %d8;
        sub.u32 %r5, %r5, %r1; cvt.u32.u64 %r6, %d9; sub.u32 %r6, %r6, %r1;
        mul.lo.u32 %r2, %r2, 10000; mad.lo.u32 %r2, %r5, 100, %r2; add.u32 %r2, %r2, %r6; st.global.u32 [%d4], %r2;",
    );
    assert_eq!(run.output(), [40_506; 64]);
}

#[test]
fn a_loop_that_waits_for_the_clock_ends() {
    let run = block(
        32,
        "mov.u64 %d8, %clock64; add.s64 %d8, %d8, 1000;
        WAIT: mov.u64 %d9, %clock64; setp.lt.u64 %p1, %d9, %d8; @%p1 bra WAIT; st.global.u32 [%d4], %r0;",
    );
    assert_eq!(run.output(), (0..32).collect::<Vec<_>>());
}
