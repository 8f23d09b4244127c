use super::{error, instructions, kernel, op};
use crate::ir::{
    Address, Base, BoolOp, LaneMask, Op, Predicate, PredicateSource, Source, Space, Special, Type,
};

fn moved(body: &str) -> Source {
    match op(body) {
        Op::Move { src, .. } => src,
        other => panic!("{other:?}"),
    }
}

#[test]
fn numbers_in_every_notation() {
    let cases: &[(&str, u64)] = &[
        ("mov.u32 %r0, 42;", 42),
        ("mov.u32 %r0, -1;", 0xFFFF_FFFF),
        ("mov.u32 %r0, 0x1fU;", 31),
        ("mov.u32 %r0, 017;", 15),
        ("mov.u32 %r0, 0b101;", 5),
        ("mov.u32 %r0, ~0;", 0xFFFF_FFFF),
        ("mov.u32 %r0, 4294967295U;", 0xFFFF_FFFF),
        ("mov.u16 %h0, -2;", 0xFFFE),
        ("mov.u64 %d0, -1;", u64::MAX),
        ("mov.u64 %d0, 0xFFFFFFFFFFFFFFFF;", u64::MAX),
        ("mov.s64 %d0, -9223372036854775808;", 1 << 63),
        ("mov.f32 %f0, 0f3F800000;", 0x3F80_0000),
        ("mov.f32 %f0, 0d3FF8000000000000;", 0x3FC0_0000),
        ("mov.f32 %f0, -2.5;", 0xC020_0000),
        ("mov.f32 %f0, 1e-3;", 0x3A83_126F),
        ("mov.b32 %r0, 0fBF800000;", 0xBF80_0000),
        ("mov.f64 %e0, 0d4000000000000000;", 0x4000_0000_0000_0000),
        ("mov.f64 %e0, 0f3F800000;", 0x3FF0_0000_0000_0000),
    ];
    for &(body, bits) in cases {
        assert_eq!(moved(body), Source::Immediate(bits), "{body}");
    }
}

#[test]
fn special_registers() {
    let cases = [
        ("mov.u32 %r0, %tid.y;", Special::Thread(1)),
        ("mov.u32 %r0, %ntid.x;", Special::BlockShape(0)),
        ("mov.u32 %r0, %ctaid.z;", Special::Block(2)),
        ("mov.u32 %r0, %nctaid.x;", Special::GridShape(0)),
        ("mov.u32 %r0, %laneid;", Special::Lane),
        ("mov.u32 %r0, %lanemask_lt;", Special::LaneMask(LaneMask::Less)),
        ("mov.u32 %r0, %dynamic_smem_size;", Special::DynamicSharedBytes),
        ("mov.u64 %d0, %globaltimer;", Special::GlobalTimer),
        ("mov.u32 %r0, WARP_SZ;", Special::WarpSize),
    ];
    for (body, special) in cases {
        assert_eq!(moved(body), Source::Special(special), "{body}");
    }
    assert_eq!(moved("mov.u32 %r0, %tid.w;"), Source::Immediate(0));
}

#[test]
fn registers_are_numbered_as_they_are_used() {
    let kernel = kernel("mov.u32 %r98, %r50;\nmov.u32 %r50, %r98;\n@%p8 trap;");
    assert_eq!((kernel.registers, kernel.predicates), (2, 1));
}

#[test]
fn addresses() {
    let base = |body| match op(body) {
        Op::Load { space, address, .. } => (space, address),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        base("ld.shared.u32 %r0, [tile+4];"),
        (Space::Shared, Address { base: Base::Space, offset: 4 })
    );
    assert_eq!(base("ld.shared.u32 %r0, [16];"), (Space::Shared, Address { base: Base::Space, offset: 16 }));
    assert_eq!(base("ld.param.u32 %r0, [count];"), (Space::Param, Address { base: Base::Space, offset: 8 }));
    assert_eq!(
        base("ld.u32 %r0, [counter];"),
        (Space::Global, Address { base: Base::Variable(0), offset: 0 })
    );
    let (space, address) = base("ld.u32 %r0, [%d0+-128];");
    assert_eq!((space, address.offset), (Space::Generic, -128));
    assert!(matches!(address.base, Base::Register(_)));
}

#[test]
fn vectors_and_sinks() {
    let Op::Load { dst, ty, into, .. } = op("ld.global.nc.v4.u8 {%r0, _, %r1, _}, [%d0];") else { panic!() };
    assert_eq!((ty, into, dst.len()), (Type::U8, Type::U32, 4));
    assert!(dst[0].is_some() && dst[1].is_none() && dst[3].is_none());
    let Op::Store { src, .. } = op("st.global.v2.f32 [%d0], {%f0, 0f00000000};") else { panic!() };
    assert_eq!(src[1], Source::Immediate(0));
    let Op::Unpack { dst, bits, .. } = op("mov.b32 {_, %h1}, %r0;") else { panic!() };
    assert_eq!((dst[0].is_some(), dst[1].is_some(), bits), (false, true, 16));
    let Op::Pack { parts, bits, .. } = op("mov.b64 %d0, {%r0, 7};") else { panic!() };
    assert_eq!((parts[1], bits), (Source::Immediate(7), 32));
}

#[test]
fn narrow_values_in_wide_registers() {
    let into = |body| match op(body) {
        Op::Load { into, .. } => into,
        other => panic!("{other:?}"),
    };
    assert_eq!(into("ld.global.s8 %r0, [%d0];"), Type::S32);
    assert_eq!(into("ld.global.s8 %h0, [%d0];"), Type::S16);
    assert_eq!(into("ld.global.s32 %d1, [%d0];"), Type::S64);
    assert_eq!(into("ld.global.b16 %r0, [%d0];"), Type::U32);
    assert_eq!(into("ld.global.f32 %f0, [%d0];"), Type::F32);
}

#[test]
fn predicates() {
    let Op::Compare { dst, second, combine, .. } = op("setp.lt.and.s32 %p0|%p1, %r0, 5, !%p2;") else {
        panic!()
    };
    assert_eq!((dst, second), (Some(Predicate(0)), Some(Predicate(1))));
    let third = PredicateSource::Register { predicate: Predicate(2), negated: true };
    assert_eq!(combine, Some((BoolOp::And, third)));
    let Op::Compare { dst, second, .. } = op("setp.ne.b32 _|%p1, %r0, 0;") else { panic!() };
    assert_eq!((dst, second), (None, Some(Predicate(0))));
    let Op::Shuffle { in_range, .. } = op("shfl.sync.down.b32 %r0|%p0, %r1, 1, 31, -1;") else { panic!() };
    assert_eq!(in_range, Some(Predicate(0)));
    let Op::PredicateLogic { a, .. } = op("mov.pred %p0, -1;") else { panic!() };
    assert_eq!(a, PredicateSource::Constant(true));
    let Op::PredicateLogic { a, .. } = op("not.pred %p0, !%p1;") else { panic!() };
    assert!(matches!(a, PredicateSource::Register { negated: false, .. }));
}

#[test]
fn guards_on_every_instruction() {
    let found = instructions("@%p3 mov.u32 %r0, 1;\n@!%p3 mov.u32 %r0, 2;");
    let guards: Vec<bool> = found.iter().map(|instruction| instruction.guard.unwrap().negated).collect();
    assert_eq!(guards, [false, true]);
}

#[test]
fn widths_are_checked() {
    for body in [
        "add.s32 %r0, %r1, %d0;",
        "add.s64 %d0, %r1, %d1;",
        "mov.u16 %r0, 1;",
        "ld.global.u32 %h0, [%d0];",
        "ld.global.u32 %r0, [%h0];",
        "shl.b64 %d0, %d1, %d2;",
        "mul.wide.s32 %r0, %r1, %r2;",
        "cvt.u32.u64 %r0, %r1;",
        "selp.b32 %r0, %r1, %r2, %r3;",
        "@%r0 trap;",
        "mov.u32 %p0, 1;",
        "and.pred %p0, %p1, %r0;",
    ] {
        let found = error(body);
        assert!(
            found.expected.contains("bits")
                || found.expected.contains("predicate")
                || found.expected == "a register",
            "{body} {found}"
        );
    }
}
