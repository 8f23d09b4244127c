//! Modules that were changed by hand, options and shapes out of range: errors, and no panics.

use super::support::{block, options, source};
use halite_ptx::ir::{Base, Kernel, Module, Op, Predicate, Register, Source, Type};
use halite_ptx::{Arguments, Error, FaultKind, LaunchShape, Machine};
use std::sync::Arc;

fn parsed() -> Module {
    let body =
        "setp.lt.u32 %p1, %r0, 5; @%p1 bra END; mov.b32 {%h1, %h2}, %r0; ld.global.v2.u32 {%r1, %r2}, [%d3];
        ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [s];
        mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r6, %r7}, {%r8}, {%r9}, {%r6, %r7};
        selp.u32 %r3, 1, 2, %p1; cvt.u64.u32 %d8, %r1; END:";
    let text =
        source(128, body).replace(".visible .entry", ".global .align 8 .u64 a[2] = {a, 1};\n.visible .entry");
    Module::parse(&text).unwrap()
}

/// What is said of the kernel after a change.
fn said(change: impl FnOnce(&mut Kernel)) -> String {
    let mut module = parsed();
    change(Arc::make_mut(&mut module.kernels[0]));
    match Machine::new(options()).load(module) {
        Err(Error::Module { name, problem }) if name == "k" => problem,
        other => panic!("{other:?}"),
    }
}

/// Changes each instruction that the function knows.
fn each(kernel: &mut Kernel, mut change: impl FnMut(&mut Op)) {
    kernel.instructions.iter_mut().for_each(|instruction| change(&mut instruction.op));
}

#[test]
fn what_the_parser_makes_is_taken() {
    Machine::new(options()).load(parsed()).unwrap();
}

#[test]
fn indices_out_of_range() {
    let problem = said(|kernel| kernel.registers = 3);
    assert!(problem.contains("the kernel has 3"), "{problem}");
    let problem = said(|kernel| kernel.predicates = 0);
    assert!(problem.contains("predicate 0; the kernel has 0"), "{problem}");
    let problem = said(|kernel| {
        let guard = kernel.instructions.iter_mut().find_map(|instruction| instruction.guard.as_mut());
        guard.unwrap().predicate = Predicate(99);
    });
    assert!(problem.contains("predicate 99"), "{problem}");
    let problem = said(|kernel| {
        each(kernel, |op| {
            if let Op::Branch { target, .. } = op {
                *target = usize::MAX;
            }
        });
    });
    assert!(problem.contains("a branch to instruction"), "{problem}");
    let problem = said(|kernel| {
        each(kernel, |op| {
            if let Op::Load { address, .. } = op {
                address.base = Base::Variable(7);
            }
        });
    });
    assert!(problem.contains("variable 7; the module has 1"), "{problem}");
    let problem = said(|kernel| {
        each(kernel, |op| {
            if let Op::MatrixMultiply(multiply) = op {
                multiply.d[1] = Register(u32::MAX);
            }
        });
    });
    assert!(problem.contains("register 4294967295"), "{problem}");
    assert!(said(|kernel| kernel.registers = u32::MAX).contains("at most"));
    assert!(said(|kernel| kernel.params[1].offset = u64::MAX).contains("parameter `out`"));
}

/// Makes of an instruction, if it is the one that is meant, one that PTX does not have.
fn change(which: usize, op: &mut Op) -> bool {
    match (which, op) {
        (0, Op::Unpack { bits, .. }) => *bits = 0,
        (1, Op::Unpack { dst, .. }) => *dst = vec![None; 5].into(),
        (2, Op::Load { dst, .. }) if dst.len() == 2 => *dst = Box::default(),
        (3, Op::Convert { from, .. }) => *from = Type::B128,
        (4, Op::LoadMatrix { dst, .. }) => *dst = vec![Register(0); 5].into(),
        (5, Op::MatrixMultiply(multiply)) => multiply.a = vec![Source::Immediate(0); 3].into(),
        (6, Op::MatrixMultiply(multiply)) => multiply.k = u32::MAX,
        _ => return false,
    }
    true
}

#[test]
fn counts_and_types_that_no_instruction_has() {
    for which in 0..7 {
        let mut changed = 0;
        let problem = said(|kernel| each(kernel, |op| changed += u32::from(change(which, op))));
        assert_eq!(changed, 1, "change {which}");
        assert!(problem.contains("operands or types"), "change {which}: {problem}");
    }
}

#[test]
fn variables_out_of_range() {
    let load = |change: fn(&mut halite_ptx::ir::Variable)| {
        let mut module = parsed();
        change(&mut module.variables[0]);
        Machine::new(options()).load(module).map(drop)
    };
    load(|_| {}).unwrap();
    for change in [
        (|variable| variable.relocations[0].0 = 9) as fn(&mut halite_ptx::ir::Variable),
        |variable| variable.relocations[0].0 = u64::MAX,
        |variable| variable.relocations[0].1 = 1,
        |variable| variable.bytes = 15,
    ] {
        let error = load(change).unwrap_err();
        assert!(matches!(&error, Error::Module { name, .. } if name == "a"), "{error}");
    }
}

#[test]
fn shapes_whose_products_are_too_large() {
    let text = source(0, "").replace(") {", ") .maxntid 4294967295, 4294967295, 4294967295 {");
    let mut machine = Machine::new(options());
    let module = machine.load(Module::parse(&text).unwrap()).unwrap();
    let arguments = Arguments::new().pointer(0).pointer(0);
    for (grid, block) in [([1; 3], [u32::MAX; 3]), ([u32::MAX; 3], [1; 3])] {
        let shape = LaunchShape { grid, block, dynamic_shared_bytes: 0 };
        assert!(matches!(machine.launch(&module, "k", shape, &arguments), Err(Error::Shape { .. })));
    }
    machine.launch(&module, "k", LaunchShape::linear(1, 1024), &arguments).unwrap();
}

#[test]
fn shared_memory_ends_with_its_addresses() {
    let mut run = block(1, "");
    run.options = options().with_max_shared_bytes(u64::MAX);
    run.shape = run.shape.with_dynamic_shared_bytes(u32::MAX);
    let limit = 1 << 24;
    let expected = Error::SharedMemory { kernel: "k".to_owned(), bytes: u32::MAX.into(), limit };
    assert_eq!(run.result(), Err(expected));
}

#[test]
fn a_limit_of_no_faults_hides_none() {
    let mut run = block(1, "trap;");
    run.options.max_faults = 0;
    assert_eq!(run.fault(), FaultKind::Trap);
    let mut run = block(1, "st.global.u32 [%d4], %r0;");
    run.options.threads = 0;
    assert_eq!(run.output(), [0]);
}

#[test]
fn more_host_threads_than_the_host_gives() {
    let mut run = block(
        1,
        "mov.u32 %r1, %ctaid.x; mul.wide.u32 %d8, %r1, 4; add.s64 %d8, %d1, %d8; st.global.u32 [%d8], %r1;",
    )
    .outputs(300);
    run.shape = LaunchShape::linear(300, 1);
    run.options.threads = usize::MAX;
    assert_eq!(run.output(), (0..300).collect::<Vec<_>>());
}
