use super::{instructions, kernel, text};
use crate::ir::{Address, Base, Module, Op, SourceLine, Space};

fn module(text: &str) -> Module {
    Module::parse(&format!(".version 9.5\n.target sm_90a, debug\n.address_size 64\n{text}")).unwrap()
}

#[test]
fn the_head_is_kept() {
    let module = module("");
    assert_eq!((module.version, module.target.as_str()), ((9, 5), "sm_90a"));
}

#[test]
fn linkage_changes_nothing() {
    let module = module(
        ".visible .entry a() { ret; }\n.weak .entry b() { ret; }\n.entry c { ret; }\n.visible .global .u32 g;\n.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n.func never(.param .b32 x) .noreturn;",
    );
    let names: Vec<&str> = module.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(module.variables[0].name, "g");
}

#[test]
fn variables_have_sizes_alignments_and_first_bytes() {
    let module = module(
        ".global .align 8 .b8 bytes[5] = {1, 0xFF, -1};\n\
         .const .align 4 .f32 reals[2] = {0f3F800000, 2.5};\n\
         .global .u16 halves[] = {1, 2, 3};\n\
         .global .u32 nested[2][2] = {{1, 2}, {3, 4}};\n\
         .global .v4 .f32 vector;\n\
         .global .f64 one = 0d3FF0000000000000, two;",
    );
    let found: Vec<(&str, Space, u64, u64, &[u8])> = module
        .variables
        .iter()
        .map(|v| (v.name.as_str(), v.space, v.bytes, v.align, v.initial.as_slice()))
        .collect();
    let one = 1.0f64.to_le_bytes();
    let reals = [1.0f32.to_le_bytes(), 2.5f32.to_le_bytes()].concat();
    assert_eq!(
        found,
        [
            ("bytes", Space::Global, 5, 8, &[1, 255, 255][..]),
            ("reals", Space::Const, 8, 4, &reals[..]),
            ("halves", Space::Global, 6, 2, &[1, 0, 2, 0, 3, 0][..]),
            ("nested", Space::Global, 16, 4, &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0][..]),
            ("vector", Space::Global, 16, 16, &[][..]),
            ("one", Space::Global, 8, 8, &one[..]),
            ("two", Space::Global, 8, 8, &[][..]),
        ]
    );
}

#[test]
fn addresses_in_variables_are_relocations() {
    let module = module(
        ".global .u32 first;\n.global .b8 second[64];\n.global .u64 both[3] = {generic(second)+8, 1, first};",
    );
    assert_eq!(module.variables[2].relocations, [(0, 1, 8), (16, 0, 0)]);
    assert_eq!(module.variables[2].initial.len(), 24);
}

#[test]
fn parameters_lie_one_behind_another() {
    let module = module(
        ".entry k(.param .u32 a, .param .u64 .ptr .global .align 16 b, .param .align 16 .b8 c[20], .param .u8 d, .param .f32 e) { ret; }",
    );
    let kernel = &module.kernels[0];
    let places: Vec<(u64, u64, u64)> = kernel.params.iter().map(|p| (p.offset, p.bytes, p.align)).collect();
    assert_eq!(places, [(0, 4, 4), (8, 8, 8), (16, 20, 16), (36, 1, 1), (40, 4, 4)]);
    assert_eq!(kernel.param_bytes, 44);
}

#[test]
fn launch_bounds_are_kept() {
    let module = module(
        ".entry a() .maxntid 256 .minnctapersm 2 .maxnreg 64 { ret; }\n.entry b() .reqntid 8, 4, 2 .pragma \"x\"; { ret; }",
    );
    assert_eq!(module.kernels[0].max_threads, Some([256, 1, 1]));
    assert_eq!(module.kernels[1].required_threads, Some([8, 4, 2]));
    assert_eq!(module.kernels[1].max_threads, None);
}

#[test]
fn shared_memory_is_laid_out_and_dynamic_memory_follows_it() {
    let module = module(
        ".extern .shared .align 128 .b8 dynamic[];\n.shared .align 4 .b8 unused[1000];\n.shared .u32 used;\n\
         .entry k() {\n.shared .align 2 .b8 own[6];\n.reg .b32 %r<4>;\nmov.u32 %r0, dynamic;\nst.shared.u32 [used], 1;\nmov.u32 %r1, own+2;\nret; }",
    );
    let kernel = &module.kernels[0];
    let place = |name| kernel.shared.iter().find(|v| v.name == name).map(|v| (v.offset, v.bytes));
    assert_eq!(place("unused"), None);
    let (used, own) = (place("used").unwrap(), place("own").unwrap());
    assert_eq!((used.1, own.1), (4, 6));
    assert_eq!(place("dynamic"), Some((128, 0)));
    assert_eq!(kernel.shared_bytes, 128);
    let Op::AddressOf { space: Space::Shared, address, generic: false, .. } = kernel.instructions[2].op
    else {
        panic!("{:?}", kernel.instructions[2]);
    };
    assert_eq!(address, Address { base: Base::Space, offset: own.0 as i64 + 2 });
}

#[test]
fn the_local_depot_is_a_thread_s_memory() {
    let kernel = kernel("mov.u64 %d0, stack;\ncvta.local.u64 %d1, %d0;");
    assert_eq!(kernel.local_bytes, 64);
    assert!(matches!(kernel.instructions[0].op, Op::AddressOf { space: Space::Local, .. }));
    assert!(matches!(
        kernel.instructions[1].op,
        Op::ConvertAddress { space: Space::Local, to_generic: true, .. }
    ));
}

#[test]
fn lines_of_the_source_are_kept() {
    let found = instructions(
        ".loc 1 16 13\ntrap;\n.loc 2 4 5, function_name $L__names0, inlined_at 1 16 13\n.loc 2 5 5, function_name $L__names0 + 12, inlined_at 1 16 13\nbrkpt;\n.loc 1 0 5\ntrap;",
    );
    let lines: Vec<_> = found.iter().map(|instruction| (instruction.line, instruction.source)).collect();
    let first = lines[0].0;
    assert_eq!(lines[0].1, Some(SourceLine { file: 1, line: 16 }));
    assert_eq!(lines[1], (first + 3, Some(SourceLine { file: 2, line: 5 })));
    assert_eq!(lines[2], (first + 5, None));
}

#[test]
fn files_and_sections_for_debuggers() {
    let module = module(
        ".entry k() { ret; }\n.file 1 \"a b.cu\"\n.file 2 \"c.cuh\", 1700000000, 99\n.section .debug_str\n{\n$L__info_string0:\n.b8 95,90,0\n.b64 .debug_abbrev+4\n}\n",
    );
    assert_eq!(module.files, [(1, "a b.cu".to_owned()), (2, "c.cuh".to_owned())]);
}

#[test]
fn pragmas_and_comments_are_skipped() {
    let found =
        instructions(".pragma \"nounroll\";\n/* trap;\n trap; */ trap; // trap;\n.pragma \"a\", \"b\";");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].line as usize, text("").lines().count() + 1);
}

#[test]
fn inner_scopes_have_registers_and_labels_of_their_own() {
    let kernel = kernel(
        "mov.u32 %r1, 1;\n{ .reg .b32 t; .reg .pred p; mov.u32 t, 2; L: setp.eq.u32 p, t, %r1; @p bra L; bra OUT; }\n\
         { .reg .b64 t; mov.u64 t, 3; L: bra L; }\nOUT:\nmov.u32 %r1, 4;",
    );
    let targets: Vec<usize> = kernel
        .instructions
        .iter()
        .filter_map(|instruction| match instruction.op {
            Op::Branch { target, .. } => Some(target),
            _ => None,
        })
        .collect();
    assert_eq!(targets, [2, 7, 6]);
}

#[test]
fn branches_go_to_positions_and_a_label_may_end_the_kernel() {
    let found = kernel("bra.uni END;\nSTART: @!%p1 bra START;\nEND:").instructions;
    assert_eq!(found[0].op, Op::Branch { target: 2, uniform: true });
    assert_eq!(found[1].op, Op::Branch { target: 1, uniform: false });
    assert!(found[1].guard.unwrap().negated);
    assert_eq!(found[2].op, Op::Exit);
}

#[test]
fn tables_of_branches() {
    let found =
        kernel("A: trap;\nB: trap;\nT: .branchtargets A, B, C;\nbrx.idx %r3, T;\nC: ret;").instructions;
    let Op::BranchIndexed { targets, .. } = &found[2].op else { panic!("{found:?}") };
    assert_eq!(**targets, [0, 1, 3]);
}
