//! Every other fault, and how it reads.

use super::support::{block, options, source};
use halite_ptx::ir::{Module, Space};
use halite_ptx::{Access, Arguments, Checks, Error, FaultKind, LaunchShape, Machine};

#[test]
fn one_element_too_far() {
    // 40 threads, 39 words.
    let run = block(40, "ld.global.u32 %r1, [%d3]; // HERE\nst.global.u32 [%d4], %r1;").input(0..39);
    let faults = run.faults();
    let FaultKind::OutOfBounds { space, access, address, bytes, nearest } = faults[0].kind.clone() else {
        panic!()
    };
    let (start, size) = nearest.unwrap();
    assert_eq!((space, access, bytes, address - start, size), (Space::Global, Access::Read, 4, 156, 156));
    let place = &faults[0].place;
    assert_eq!((place.thread, place.warp, place.lane, place.block), ([39, 0, 0], 1, 7, [0; 3]));
    let run = block(40, "st.global.u32 [%d4], %r0; // HERE").outputs(39);
    assert!(matches!(run.fault(), FaultKind::OutOfBounds { access: Access::Write, .. }));
    // The first threads' words are written all the same: nothing is undone.
    let run = block(1, "st.global.u32 [%d1-4], %r0; // HERE");
    assert!(matches!(run.fault(), FaultKind::OutOfBounds { access: Access::Write, .. }));
    for address in ["0", "-4", "-1", "0x7ffffffffffffffc"] {
        for access in [
            "ld.global.u32 %r1, [%d8]",
            "st.global.v2.u32 [%d8], {%r1, %r1}",
            "atom.global.add.u32 %r1, [%d8], 1",
        ] {
            let run = block(1, &format!("mov.u64 %d8, {address}; mov.u32 %r1, 0;\n{access}; // HERE"));
            assert!(matches!(run.fault(), FaultKind::OutOfBounds { nearest: None, .. }));
            let run = block(
                1,
                &format!("mov.u64 %d8, {address}; mov.u32 %r1, 0;\n{access}; // HERE")
                    .replace("global", "shared"),
            );
            assert!(matches!(run.fault(), FaultKind::OutOfBounds { space: Space::Shared, .. }));
        }
    }
    for (space, body) in [
        (Space::Shared, "ld.shared.u32 %r1, [s+16]; // HERE"),
        (Space::Shared, "cvta.shared.u64 %d8, 0;\nld.u32 %r1, [%d8+16]; // HERE"),
        (Space::Local, ".local .align 4 .b8 own[16];\nst.local.u32 [own+16], %r0; // HERE"),
    ] {
        let body = body.replace("cvta.shared.u64 %d8, 0;", "mov.u64 %d8, s; cvta.shared.u64 %d8, %d8;");
        let run = block(1, &body).shared(16);
        let FaultKind::OutOfBounds { space: found, nearest, .. } = run.fault() else { panic!("{body}") };
        assert_eq!((found, nearest), (space, Some((0, 16))));
    }
}

#[test]
fn misaligned_vectors() {
    for (align, body) in [
        (16, "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d0+8]; // HERE"),
        (8, "ld.global.u64 %d8, [%d0+4]; // HERE"),
        (16, "st.shared.v2.u64 [s+8], {%d0, %d1}; // HERE"),
        (2, ".local .align 4 .b8 own[16];\nst.local.u16 [own+1], %h0; // HERE"),
    ] {
        let FaultKind::Misaligned { align: found, .. } = block(1, body).shared(64).fault() else {
            panic!("{body}")
        };
        assert_eq!(found, align);
    }
}

#[test]
fn what_nobody_has_written() {
    for (space, body) in [
        (Space::Shared, "ld.shared.u32 %r1, [s]; // HERE"),
        (Space::Shared, "st.shared.u8 [s+1], %r0;\nld.shared.u32 %r1, [s]; // HERE"),
        (Space::Global, "ld.global.u32 %r1, [%d1]; // HERE"),
        (
            Space::Local,
            ".local .align 4 .b8 own[16]; st.local.u16 [own], %h0;\nld.local.u32 %r1, [own]; // HERE",
        ),
    ] {
        let run = block(1, body).shared(16);
        let FaultKind::Uninitialised { space: found, .. } = run.fault() else { panic!("{body}") };
        assert_eq!(found, space);
        run.checks(Checks::BOUNDS).output();
    }
}

#[test]
fn after_it_was_freed() -> Result<(), Error> {
    let text = source(0, "ld.global.u32 %r1, [%d0];");
    let mut machine = Machine::new(options());
    let module = machine.load(Module::parse(&text).unwrap())?;
    let input = machine.allocate_zeroed(64)?;
    let arguments = Arguments::new().pointer(input).pointer(0);
    machine.launch(&module, "k", LaunchShape::linear(1, 1), &arguments)?;
    machine.free(input)?;
    let Err(Error::Faults(faults)) = machine.launch(&module, "k", LaunchShape::linear(1, 1), &arguments)
    else {
        panic!()
    };
    let expected = FaultKind::Freed { access: Access::Read, address: input, allocation: (input, 64) };
    assert_eq!(faults.first().kind, expected);
    assert_eq!(machine.free(input), Err(Error::NotAllocated(input)));
    assert!(matches!(machine.write(input, &[1]), Err(Error::Address { .. })));
    Ok(())
}

#[test]
fn constants_are_not_written() {
    let text = source(0, "mov.u64 %d8, c; cvta.const.u64 %d8, %d8;\nst.u32 [%d8], %r0;")
        .replace(".visible .entry", ".const .align 4 .u32 c = 1;\n.visible .entry");
    let mut machine = Machine::new(options());
    let module = machine.load(Module::parse(&text).unwrap()).unwrap();
    let arguments = Arguments::new().pointer(0).pointer(0);
    let result = machine.launch(&module, "k", LaunchShape::linear(1, 1), &arguments);
    let Err(Error::Faults(faults)) = result else { panic!() };
    assert!(matches!(faults.first().kind, FaultKind::ReadOnly { .. }));
}

#[test]
fn a_barrier_in_two_branches() {
    let body = "setp.lt.u32 %p1, %r0, 16; @%p1 bra LOW;
        bar.sync 0; // HERE
        bra DONE; LOW:
        bar.sync 0;
        DONE: st.global.u32 [%d4], %r0;";
    // The group that is less far comes first: lanes 16 to 31, then the others find them there.
    let run = block(
        32,
        &body.replace(" // HERE", "").replacen("LOW:\n        bar.sync 0;", "LOW:\nbar.sync 0; // HERE", 1),
    );
    assert!(matches!(run.fault(), FaultKind::DivergentBarrier { barrier: 0, .. }));
}

#[test]
fn a_barrier_that_half_of_a_block_never_reaches() {
    let body = "setp.lt.u32 %p1, %r0, 32; @!%p1 bra OTHER;\nbar.sync 0; // HERE\nbra DONE; OTHER: bar.sync 1;
        DONE: st.global.u32 [%d4], %r0;";
    let FaultKind::Deadlock { waiting } = block(64, body).fault() else { panic!() };
    assert_eq!(waiting.iter().map(|w| (w.warp, w.lanes)).collect::<Vec<_>>(), [(0, u32::MAX), (1, u32::MAX)]);
}

#[test]
fn trap_ends_the_kernel() {
    assert_eq!(block(32, "setp.eq.u32 %p1, %r0, 9;\n@%p1 trap; // HERE").fault(), FaultKind::Trap);
}

#[test]
fn a_fault_names_kernel_line_source_block_and_thread() {
    let text = source(
        0,
        "mov.u32 %r1, %ctaid.y; setp.ne.u32 %p1, %r1, 1; @%p1 ret;\n.loc 3 17 5\nld.global.u32 %r2, [%d3];",
    );
    let line = text.lines().position(|line| line.starts_with("ld.global")).unwrap() + 1;
    let text = format!("{text}\n.file 3 \"sums.cu\"\n");
    let mut machine = Machine::new(options());
    let module = machine.load(Module::parse(&text).unwrap()).unwrap();
    let input = machine.allocate_zeroed(4 * 33).unwrap();
    let shape = LaunchShape { grid: [1, 2, 1], block: [8, 6, 1], dynamic_shared_bytes: 0 };
    let text = text.replace("%tid.x", "%tid.y");
    let tall = machine.load(Module::parse(&text).unwrap()).unwrap();
    let arguments = Arguments::new().pointer(input).pointer(0);
    machine.launch(&module, "k", shape, &arguments).unwrap();
    machine.launch(&tall, "k", shape, &arguments).unwrap();
    machine.free(input).unwrap();
    let error = machine.launch(&tall, "k", shape, &arguments).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "k, PTX line {line} (sums.cu:17), block (0, 1, 0), thread (0, 0, 0) = warp 0 lane 0: \
            reads global memory at {input:#x}, which was freed: offset 0 of 132 bytes that began at {input:#x}"
        )
    );
    let Error::Faults(faults) = error else { panic!() };
    assert_eq!(faults.first().place.source, Some(("sums.cu".to_owned(), 17)));
}
