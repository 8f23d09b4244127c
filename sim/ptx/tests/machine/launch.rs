//! What a launch takes and refuses, and which threads it starts.

use super::support::{block, options, source};
use halite_ptx::ir::Module;
use halite_ptx::{Arguments, Error, LaunchShape, Machine};

fn machine(text: &str) -> (Machine, halite_ptx::LoadedModule) {
    let mut machine = Machine::new(options());
    let module = machine.load(Module::parse(text).unwrap()).unwrap();
    (machine, module)
}

#[test]
fn every_thread_of_every_block_runs_once() {
    let body = "mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z; mov.u32 %r3, %ntid.x; mov.u32 %r4, %ntid.y;
        mad.lo.u32 %r5, %r2, %r4, %r1; mad.lo.u32 %r5, %r5, %r3, %r0; mov.u32 %r6, %ctaid.x; mov.u32 %r7, %ctaid.y;
        mov.u32 %r8, %ctaid.z; mov.u32 %r9, %nctaid.x; mov.u32 %r10, %nctaid.y; mad.lo.u32 %r11, %r8, %r10, %r7;
        mad.lo.u32 %r11, %r11, %r9, %r6; mad.lo.u32 %r12, %r11, 60, %r5; mul.wide.u32 %d8, %r12, 4;
        add.s64 %d9, %d0, %d8; red.global.add.u32 [%d9], 1; ld.global.u32 %r13, [%d9]; add.s64 %d9, %d1, %d8;
        add.u32 %r13, %r13, %r12; st.global.u32 [%d9], %r13;";
    for threads in [1, 3] {
        let mut run = block(60, body).input(vec![0; 1440]).outputs(1440);
        run.shape = LaunchShape { grid: [2, 3, 4], block: [5, 4, 3], dynamic_shared_bytes: 0 };
        run.options = run.options.with_threads(threads);
        assert_eq!(run.output(), (1..=1440).collect::<Vec<_>>());
    }
}

#[test]
fn dynamic_shared_memory_begins_behind_the_static_one() {
    let text = source(
        16,
        "mov.u32 %r1, %dynamic_smem_size; mov.u32 %r2, %total_smem_size; mov.u32 %r3, dynamic;
        st.shared.u32 [dynamic+60], %r1; st.global.v2.u32 [%d1], {%r1, %r2}; st.global.u32 [%d1+8], %r3;",
    );
    let text = text.replace(".visible .entry", ".extern .shared .align 16 .b8 dynamic[];\n.visible .entry");
    let (mut machine, module) = machine(&text);
    let output = machine.allocate(12).unwrap();
    let arguments = Arguments::new().pointer(0).pointer(output);
    let shape = LaunchShape::linear(1, 1).with_dynamic_shared_bytes(64);
    machine.launch(&module, "k", shape, &arguments).unwrap();
    let mut bytes = [0; 12];
    machine.read(output, &mut bytes).unwrap();
    assert_eq!(bytes, [64, 0, 0, 0, 80, 0, 0, 0, 16, 0, 0, 0]);
    let shape = shape.with_dynamic_shared_bytes(60);
    assert!(matches!(machine.launch(&module, "k", shape, &arguments), Err(Error::Faults(_))));
    let shape = shape.with_dynamic_shared_bytes(300_000);
    let error = machine.launch(&module, "k", shape, &arguments).unwrap_err();
    let limit = 227 * 1024;
    assert_eq!(error, Error::SharedMemory { kernel: "k".to_owned(), bytes: 300_016, limit });
}

#[test]
fn what_no_device_would_take() {
    let text = source(0, "").replace(") {", ") .maxntid 64, 1, 1 {");
    let (machine, module) = machine(&text);
    let launch = |name: &str, shape, arguments: &Arguments| {
        machine.launch(&module, name, shape, arguments).unwrap_err()
    };
    let good = Arguments::new().pointer(0).pointer(0);
    let shape = LaunchShape::linear(1, 32);
    let known = vec!["k".to_owned()];
    assert_eq!(launch("j", shape, &good), Error::NoKernel { name: "j".to_owned(), known });
    let kernel = "k".to_owned();
    let error = launch("k", shape, &Arguments::new().pointer(0));
    assert_eq!(error, Error::ArgumentCount { kernel: kernel.clone(), expected: 2, got: 1 });
    let error = launch("k", shape, &Arguments::new().pointer(0).u32(0));
    let param = "out".to_owned();
    assert_eq!(error, Error::ArgumentBytes { kernel, index: 1, param, expected: 8, got: 4 });
    for (grid, block) in
        [([0, 1, 1], [1; 3]), ([1, 70_000, 1], [1; 3]), ([1; 3], [0, 1, 1]), ([1; 3], [1, 1, 65])]
    {
        let shape = LaunchShape { grid, block, dynamic_shared_bytes: 0 };
        assert!(matches!(launch("k", shape, &good), Error::Shape { .. }));
    }
    let large = source(0, ".local .align 4 .b8 own[600000]; st.local.u32 [own], %r0;");
    let (machine_of_large, large) = self::machine(&large);
    assert!(matches!(machine_of_large.launch(&large, "k", shape, &good), Err(Error::Shape { .. })));
    for threads in [65, 1025] {
        assert!(matches!(launch("k", LaunchShape::linear(1, threads), &good), Error::Shape { .. }));
    }
    machine.launch(&module, "k", LaunchShape::linear(1, 64), &good).unwrap();
    let other = Machine::new(options());
    assert_eq!(other.launch(&module, "k", shape, &good), Err(Error::OtherMachine));
}

#[test]
fn the_host_reads_and_writes_what_is_allocated() {
    let mut machine = Machine::new(options());
    let first = machine.allocate_with(&[1, 2, 3, 4, 5, 6, 7]).unwrap();
    let second = machine.allocate(7).unwrap();
    machine.copy(second + 1, first + 2, 5).unwrap();
    machine.fill(second + 6, 9, 1).unwrap();
    let mut bytes = [0; 7];
    machine.read(second, &mut bytes).unwrap();
    assert_eq!(bytes, [0xff, 3, 4, 5, 6, 7, 9]);
    machine.copy(first + 1, first, 6).unwrap();
    machine.read(first, &mut bytes).unwrap();
    assert_eq!(bytes, [1, 1, 2, 3, 4, 5, 6]);
    let error = machine.copy(second + 1, first, 7).unwrap_err();
    assert_eq!(error, Error::Address { address: second + 1, bytes: 7 });
    assert!(machine.allocate(u64::MAX / 2).is_err());
    assert!(machine.read(0, &mut []).is_ok());
}
