//! Kernels made at random compute the same whether registers are shared or not: with branches that part lanes, loops,
//! guards, calls, and lanes that end early.

use super::random::Random;
use crate::ir::Module;
use crate::{Arguments, LaunchShape, Machine, Options};
use std::fmt::Write as _;

const REGISTERS: usize = 12;
const THREADS: u32 = 64;

/// Straight code, with a guard now and then.
fn straight(random: &mut Random, text: &mut String) {
    for _ in 0..=random.below(6) {
        if random.below(3) == 0 {
            let _ = write!(text, "@{}%p{} ", ["", "!"][random.below(2)], random.below(3));
        }
        let (d, a, b) = (random.below(REGISTERS), random.below(REGISTERS), random.below(REGISTERS));
        let _ = match random.below(8) {
            0 => writeln!(text, "mov.u32 %r{d}, %r{a};"),
            1 => writeln!(text, "mad.lo.u32 %r{d}, %r{a}, %r{b}, {};", random.below(100)),
            2 => writeln!(text, "mov.b64 %d0, {{%r{a}, %r{b}}};\nmov.b64 {{%r{b}, %r{d}}}, %d0;"),
            3 => writeln!(text, "setp.lt.u32 %p{}, %r{a}, %r{b};", random.below(3)),
            4 => writeln!(text, "selp.b32 %r{d}, %r{a}, %r{b}, %p{};", random.below(3)),
            5 => writeln!(
                text,
                "st.local.u32 [param0], %r{a};\ncall.uni (retval0), mix, (param0);\nld.local.u32 %r{d}, [retval0];"
            ),
            _ => writeln!(text, "xor.b32 %r{d}, %r{a}, %r{b};"),
        };
    }
}

/// Code with branches forward and loops within each other.
fn code(random: &mut Random, text: &mut String, labels: &mut usize, depth: usize) {
    for _ in 0..=random.below(3) {
        straight(random, text);
        *labels += 1;
        let label = *labels;
        match random.below(if depth < 3 { 4 } else { 1 }) {
            0 => {}
            1 => {
                let _ = writeln!(text, "@%p{} bra L{label};", random.below(3));
                code(random, text, labels, depth + 1);
                let _ = writeln!(text, "L{label}:");
            }
            2 => {
                // The count is the loop's own, and differs by lane.
                let _ = writeln!(text, "{{ .reg .b32 n; .reg .pred q; and.b32 n, %r0, 3;\nL{label}:");
                code(random, text, labels, depth + 1);
                let _ = writeln!(text, "sub.u32 n, n, 1;\nsetp.gt.s32 q, n, 0;\n@q bra L{label}; }}");
            }
            _ => {
                let _ = writeln!(text, "@%p{} bra L{label};", random.below(3));
                code(random, text, labels, depth + 1);
                let _ = writeln!(text, "bra E{label};\nL{label}:");
                code(random, text, labels, depth + 1);
                let _ = writeln!(text, "E{label}:");
            }
        }
    }
}

fn kernel(random: &mut Random) -> String {
    let mut text = String::from(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .func (.param .b32 r) mix(.param .b32 v) {\n.reg .b32 a, b; .reg .pred p;\nld.param.u32 a, [v];\nmul.lo.u32 b, a, 77;\nst.param.b32 [r], b;\n\
         setp.gt.u32 p, b, a;\n@p ret;\nadd.u32 a, a, b;\nst.param.b32 [r], a;\nret;\n}\n\
         .entry k(.param .u64 out) {\n.reg .b32 %r<12>;\n.reg .b64 %d<4>;\n.reg .pred %p<3>;\n.reg .b32 t;\n\
         .param .b32 param0;\n.param .b32 retval0;\nmov.u32 %r0, %tid.x;\nst.local.u32 [param0], %r0;\n",
    );
    for register in 1..REGISTERS {
        let _ =
            writeln!(text, "mul.lo.u32 %r{register}, %r{}, {};", register - 1, 2 * random.below(1000) + 1);
    }
    for predicate in 0..3 {
        let _ = writeln!(text, "and.b32 t, %r0, {};\nsetp.eq.u32 %p{predicate}, t, 0;", 1 << predicate);
    }
    code(random, &mut text, &mut 0, 0);
    let _ = writeln!(
        text,
        "ld.param.u64 %d1, [out];\nmov.u32 t, %tid.x;\nmul.wide.u32 %d2, t, 48;\nadd.s64 %d3, %d1, %d2;"
    );
    for register in 0..REGISTERS {
        let _ = writeln!(text, "st.global.u32 [%d3+{}], %r{register};", 4 * register);
    }
    text.push_str("ret;\n}\n");
    text
}

fn execute(module: Module) -> Vec<u8> {
    let mut machine = Machine::new(Options::default().with_threads(1));
    let module = machine.load(module).unwrap();
    let mut out = vec![0; 4 * REGISTERS * THREADS as usize];
    let address = machine.allocate(out.len() as u64).unwrap();
    machine.launch(&module, "k", LaunchShape::linear(1, THREADS), &Arguments::new().u64(address)).unwrap();
    machine.read(address, &mut out).unwrap();
    out
}

#[test]
fn sharing_registers_changes_no_result() {
    let mut random = Random(0xD1B5_4A32_D192_ED03);
    let mut fewer = 0;
    for _ in 0..300 {
        let text = kernel(&mut random);
        let (shared, apart) =
            (super::super::parse(&text, true).unwrap(), super::super::parse(&text, false).unwrap());
        fewer += u32::from(shared.kernels[0].registers < apart.kernels[0].registers);
        assert!(execute(shared) == execute(apart), "{text}");
    }
    assert!(fewer > 250, "{fewer}");
}
