//! Counters of whole launches.

use super::support::{block, options, source};
use halite_ptx::ir::Module;
use halite_ptx::{Arguments, Counters, LaunchShape, Machine};

fn count(shared: u32, body: &str) -> Counters {
    let mut machine = Machine::new(options());
    let module = machine.load(Module::parse(&source(shared, body)).unwrap()).unwrap();
    let input = machine.allocate_zeroed(4 * 64 * 33).unwrap();
    let arguments = Arguments::new().pointer(input).pointer(input);
    machine.launch(&module, "k", LaunchShape::linear(2, 64), &arguments).unwrap()
}

#[test]
fn conflicts_by_line() {
    // Columns of a matrix of 32 words a row, then of 33.
    let body = |words: u32| {
        format!(
            "and.b32 %r1, %r0, 31; mov.u32 %r2, s; shr.u32 %r3, %r0, 5; shl.b32 %r3, %r3, 2; add.u32 %r2, %r2, %r3;
            mad.lo.u32 %r4, %r1, {}, %r2;\nst.shared.u32 [%r4], %r0;\nld.shared.u32 %r5, [%r4];",
            4 * words
        )
    };
    let counters = count(32 * 33 * 4, &body(32));
    assert_eq!((counters.shared.requests, counters.shared.conflicts()), (8, 8 * 31));
    assert_eq!(counters.lines.len(), 2);
    assert_eq!(counters.lines[1].shared.conflicts(), 4 * 31);
    assert_eq!(counters.lines[1].line, counters.lines[0].line + 1);
    assert_eq!(count(32 * 33 * 4, &body(33)).shared.conflicts(), 0);
}

#[test]
fn sectors_and_instructions() {
    let counters = count(0, "ld.global.u32 %r1, [%d3]; mul.wide.u32 %d8, %r0, 128; add.s64 %d8, %d0, %d8;
        ld.global.u32 %r1, [%d8]; bar.sync 0; setp.lt.u32 %p1, %r0, 9; @%p1 bra DONE; add.u32 %r1, %r1, 1; DONE:");
    assert_eq!((counters.global.requests, counters.global.sectors), (8, 4 * 4 + 4 * 32));
    assert_eq!(counters.global.ideal_sectors, 8 * 4);
    assert_eq!((counters.barriers, counters.divergent_branches), (2, 2));
    // 6 of the frame, 6 more; 9 lanes branch, the others add, then all end.
    assert_eq!(counters.instructions, 4 * (6 + 7 + 1 + 1));
    assert_eq!(counters.lane_instructions, 2 * (64 * (6 + 6) + 9 + 23 + 32 + 64));
    let run = block(32, "").checks(halite_ptx::Checks::BOUNDS);
    assert!(run.result().is_ok());
}
