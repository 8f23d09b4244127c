//! `ld` and `st` in every memory.

use super::support::{block, options, source};
use halite_ptx::ir::Module;
use halite_ptx::{Arguments, Error, LaunchShape, Machine};

#[test]
fn narrow_values_are_extended_by_their_types() {
    let run = block(
        1,
        "ld.global.s8 %r1, [%d0]; st.global.u32 [%d1], %r1;
        ld.global.u8 %r2, [%d0]; st.global.u32 [%d1+4], %r2;
        ld.global.s16 %r3, [%d0+2]; st.global.u32 [%d1+8], %r3;
        ld.global.u16 %r4, [%d0+2]; st.global.u32 [%d1+12], %r4;
        ld.global.s32 %d8, [%d0]; st.global.u64 [%d1+16], %d8;
        ld.global.u32 %d9, [%d0]; st.global.u64 [%d1+24], %d9;",
    );
    let output = run.input([0x8765_43f0]).outputs(8).output();
    let expected = [0xffff_fff0, 0xf0, 0xffff_8765, 0x8765, 0x8765_43f0, 0xffff_ffff, 0x8765_43f0, 0];
    assert_eq!(output, expected);
}

#[test]
fn narrow_stores_leave_their_neighbours() {
    let run = block(
        1,
        "mov.u32 %r1, 0; st.global.u32 [%d1], %r1; st.global.u32 [%d1+4], %r1;
        mov.u32 %r2, 0x12345678; st.global.u8 [%d1+1], %r2; cvt.u16.u32 %h1, %r2; st.global.u16 [%d1+6], %h1;
        st.shared.u32 [s], %r1; st.shared.u8 [s+3], %r2; ld.shared.u32 %r3, [s]; st.global.u32 [%d1+8], %r3;",
    );
    assert_eq!(run.shared(16).outputs(3).output(), [0x7800, 0x5678_0000, 0x7800_0000]);
}

#[test]
fn vectors_lie_side_by_side() {
    let run = block(
        1,
        "ld.global.v4.u32 {%r1, %r2, _, %r4}, [%d0];
        st.shared.v2.b64 [s+16], {%d0, %d0}; st.shared.v4.u32 [s+16], {%r4, %r2, %r1, 77};
        ld.shared.v2.u64 {%d8, %d9}, [s+16]; st.global.v2.u64 [%d1], {%d8, %d9};
        ld.global.v2.u8 {%h1, %h2}, [%d0+8]; st.global.v2.u16 [%d1+16], {%h2, %h1};",
    );
    assert_eq!(run.shared(32).input([1, 2, 0x0403, 5]).outputs(5).output(), [5, 2, 1, 77, 0x0003_0004]);
}

#[test]
fn a_generic_address_reaches_every_memory() {
    // Even lanes shared memory, odd lanes global memory, in one instruction.
    let run = block(
        32,
        "mov.u64 %d8, s; cvta.shared.u64 %d8, %d8; add.s64 %d8, %d8, %d2;
        and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 0; selp.b64 %d9, %d8, %d4, %p1;
        add.u32 %r2, %r0, 100; st.u32 [%d9], %r2; ld.u32 %r3, [%d9];
        isspacep.shared %p2, %d9; selp.u32 %r4, 1000, 0, %p2; add.u32 %r3, %r3, %r4; st.global.u32 [%d4], %r3;",
    );
    let expected: Vec<u32> = (0..32).map(|lane| 100 + lane + if lane % 2 == 0 { 1000 } else { 0 }).collect();
    assert_eq!(run.shared(128).output(), expected);
}

#[test]
fn local_memory_is_each_threads_own() {
    let run = block(
        64,
        ".local .align 8 .b8 own[16]; mov.u64 %d8, own; cvta.local.u64 %d9, %d8;
        st.local.u32 [own+4], %r0; st.u32 [%d9+8], %r0;
        ld.u32 %r1, [%d9+4]; ld.local.u32 %r2, [own+8]; add.u32 %r1, %r1, %r2; st.global.u32 [%d4], %r1;",
    );
    assert_eq!(run.output(), (0..64).map(|thread| 2 * thread).collect::<Vec<_>>());
}

#[test]
fn lanes_that_a_guard_keeps_out_touch_nothing() {
    let run = block(
        32,
        "setp.lt.u32 %p1, %r0, 3; mov.u64 %d8, 0; selp.b64 %d9, %d4, %d8, %p1; mov.u32 %r1, 5;
        @%p1 st.global.u32 [%d9], %r1; @%p1 ld.global.u32 %r1, [%d9]; @!%p1 st.global.u32 [%d4], %r0;",
    );
    let expected: Vec<u32> = (0..32).map(|lane| if lane < 3 { 5 } else { lane }).collect();
    assert_eq!(run.output(), expected);
}

#[test]
fn variables_of_a_module_keep_their_values() -> Result<(), Error> {
    let text = source(
        0,
        "ld.const.u32 %r1, [table+4]; mov.u64 %d8, table; cvta.const.u64 %d9, %d8; ld.u32 %r2, [%d9+8];
        ld.global.u32 %r3, [count]; add.u32 %r3, %r3, %r1; add.u32 %r3, %r3, %r2; st.global.u32 [count], %r3;
        ld.global.u64 %d10, [pointer]; ld.global.u32 %r4, [%d10]; st.global.u32 [%d1], %r4;",
    );
    let variables = ".const .align 4 .u32 table[3] = {1, 20, 300};\n.global .align 4 .u32 count = 5;\n\
        .global .align 8 .u64 pointer = count;\n.visible .entry";
    let mut machine = Machine::new(options());
    let module = machine.load(Module::parse(&text.replace(".visible .entry", variables)).unwrap())?;
    let output = machine.allocate(4)?;
    let (count, bytes) = module.variable("count")?;
    assert_eq!(bytes, 4);
    for expected in [325u32, 645] {
        let arguments = Arguments::new().pointer(0).pointer(output);
        machine.launch(&module, "k", LaunchShape::linear(1, 1), &arguments)?;
        let mut word = [0; 4];
        machine.read(output, &mut word)?;
        assert_eq!(u32::from_le_bytes(word), expected);
        machine.read(count, &mut word)?;
        assert_eq!(u32::from_le_bytes(word), expected);
    }
    assert_eq!(module.variable("none"), Err(Error::NoVariable("none".to_owned())));
    Ok(())
}

#[test]
fn parameters_have_any_size() -> Result<(), Error> {
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n\
        .visible .entry k(.param .u64 out, .param .u8 a, .param .u16 b, .param .align 8 .b8 c[12]) {\n\
        .reg .b32 %r<8>; .reg .b64 %d<4>;\n\
        ld.param.u64 %d0, [out]; ld.param.s8 %r0, [a]; ld.param.u16 %r1, [b]; ld.param.u32 %r2, [c+8];\n\
        st.global.v2.u32 [%d0], {%r0, %r1}; st.global.u32 [%d0+8], %r2; ret; }";
    let mut machine = Machine::new(options());
    let module = machine.load(Module::parse(text).unwrap())?;
    let output = machine.allocate(12)?;
    let mut c = [0; 12];
    c[8] = 9;
    let arguments = Arguments::new().pointer(output).bytes(&[0xfe]).bytes(&[1, 2]).bytes(&c);
    machine.launch(&module, "k", LaunchShape::linear(1, 1), &arguments)?;
    let mut bytes = [0; 12];
    machine.read(output, &mut bytes)?;
    assert_eq!(bytes, [0xfe, 0xff, 0xff, 0xff, 1, 2, 0, 0, 9, 0, 0, 0]);
    Ok(())
}
