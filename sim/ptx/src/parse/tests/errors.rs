use super::{error, text};
use crate::ir::Module;

#[test]
fn an_error_says_where_and_what() {
    let found = error("mov.u32 %r0, 1;\n  add.s32 \t%r0, %r1, [%d0];");
    assert_eq!(found.line as usize, text("").lines().count());
    assert_eq!(found.column, 22);
    assert_eq!(found.text, "add.s32 \t%r0, %r1, [%d0];");
    assert_eq!(found.expected, "a register or a number");
    assert_eq!(found.found, "an address in brackets");
    let shown = found.to_string();
    assert!(shown.contains("column 22: expected a register or a number, found an address"), "{shown}");
}

#[test]
fn what_is_not_known_is_named() {
    for (body, word) in [
        ("wgmma.fence.sync.aligned;", "wgmma.fence.sync.aligned"),
        ("tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [t, {%f0, %f1}];", "tex.2d"),
        ("cp.async.bulk.commit_group;", ".bulk"),
        ("add.rq.f32 %f0, %f1, %f2;", ".rq"),
        ("add.s32.x %r0, %r1, %r2;", ".x"),
        (
            "mma.sync.aligned.m16n8k99.row.col.s32.s8.s8.s32 {%r0,%r1,%r2,%r3}, {%r4,%r5,%r6,%r7}, {%r8,%r9}, {%r0,%r1,%r2,%r3};",
            ".s32",
        ),
        ("mov.u32 %r0, %clusterid.x;", "%clusterid.x"),
        ("mov.u32 %r0, nowhere;", "nowhere"),
        ("mov.u32 %r0, %r99;", "%r99"),
        ("mov.u32 %r0, %r01;", "%r01"),
        ("bra NOWHERE;", "NOWHERE"),
        ("call printf, (tile);", "printf"),
        ("call %d0, (), X;", "%d0"),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r0], [%d0, {%r1, %r2}], [%r3];",
            ",",
        ),
        (".surfref s;", ".surfref"),
        ("ld.shared::cluster.u32 %r0, [%r1];", ".shared::cluster"),
        ("fence.proxy.async;", ".proxy"),
    ] {
        let found = error(body);
        assert!(found.found.contains(word), "{body}: {found}");
    }
}

#[test]
fn wrong_texts() {
    for body in [
        "mov.u32 %r0 1;",
        "mov.u32 %r0, 1",
        "mov.u32 , 1;",
        "mov.u32 %r0, 1, 2;",
        "mov %r0, 1;",
        "ld.global.u32 %r0, %d0;",
        "ld.global.u32 %r0, [%d0+%r1];",
        "ld.global.v4.u32 {%r0, %r1}, [%d0];",
        "ld.global.v4.u32 %r0, [%d0];",
        "ld.shared.u32 %r0, [counter];",
        "ld.global.f16 %h0, [%d0];",
        "mov.f32 %f0, 1;",
        "mov.u32 %r0, 0f3F800000000;",
        "mov.u32 %r0, 09;",
        "mov.u32 %r0, 99999999999999999999;",
        "mov.u32 %r0, 1.5;",
        "add.sat.u32 %r0, %r1, %r2;",
        "add.ftz.f64 %e0, %e1, %e2;",
        "div.f32 %f0, %f1, %f2;",
        "setp.lt.b32 %p0, %r0, %r1;",
        "setp.lo.s32 %p0, %r0, %r1;",
        "setp.equ.s32 %p0, %r0, %r1;",
        "cvt.f16.f32 %h0, %f0;",
        "cvt.s32.f32 %r0, %f0;",
        "cvt.rn.s32.f32 %r0, %f0;",
        "cp.async.cg.shared.global [%r0], [%d0], 8;",
        "cp.async.ca.shared.global [%r0], [%d0], 5;",
        "red.global.cas.b32 [%d0], %r0, %r1;",
        "atom.global.add.f16 %h0, [%d0], %h1;",
        "atom.global.add.noftz.f32 %f0, [%d0], %f1;",
        "atom.global.min.f16 %h0, [%d0], %h1;",
        "lop3.b32 %r0, %r1, %r2, %r3, 256;",
        "bar.arrive 1;",
        "L: L: trap;",
        ".reg .b32 %r<4>;",
        ".reg .b32 twice; .reg .b32 twice;",
        ".shared .b8 tile[4];",
        ".shared .b8 huge[9999999999999];",
        ".local .align 3 .b8 odd[4];",
        ".shared .b8 none[];",
        ".shared .u32 first = 1;",
        "T: .branchtargets NOWHERE;",
        "{ trap;",
        "/* trap;",
        ".pragma \"open",
        "mov.u32 %r0, \u{e4};",
        "#",
    ] {
        error(body);
    }
}

#[test]
fn wrong_modules() {
    for text in [
        "",
        ".target sm_80",
        ".version 8",
        ".version 8.0 .target compute",
        ".version 8.0 .target sm_80 .address_size 32",
        ".version 8.0 .target sm_80 .entry",
        ".version 8.0 .target sm_80 .entry k(",
        ".version 8.0 .target sm_80 .entry k();",
        ".version 8.0 .target sm_80 .entry k() { ret; } .entry k() { ret; }",
        ".version 8.0 .target sm_80 .entry k() { ret; } }",
        ".version 8.0 .target sm_80 .entry k(.param .u32 a, .param .u32 a) { ret; }",
        ".version 8.0 .target sm_80 .entry k(.reg .u32 a) { ret; }",
        ".version 8.0 .target sm_80 .entry k() .explicitcluster { ret; }",
        ".version 8.0 .target sm_80 .global .u32 a; .global .u32 a;",
        ".version 8.0 .target sm_80 .global .u32 a[2] = {1, 2, 3};",
        ".version 8.0 .target sm_80 .global .u32 a = b;",
        ".version 8.0 .target sm_80 .global .u64 a = b;",
        ".version 8.0 .target sm_80 .global .f32 a = 1;",
        ".version 8.0 .target sm_80 .global .b8 a[] = {{{{{{{{{{{{1}}}}}}}}}}}};",
        ".version 8.0 .target sm_80 .extern .global .u32 a;",
        ".version 8.0 .target sm_80 .texref t;",
        ".version 8.0 .target sm_80 .section .debug_str { .b8 1",
        ".version 8.0 .target sm_80 .alias a, b;",
    ] {
        assert!(Module::parse(text).is_err(), "{text}");
    }
}
