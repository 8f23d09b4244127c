//! A pipelined W8A8 product, and the mistakes that are made in such kernels.

use super::support::options;
use halite_ptx::ir::{Module, Space};
use halite_ptx::{Access, Arguments, Error, FaultKind, LaunchShape, Machine};

const KERNEL: &str = include_str!("../../examples/w8a8.ptx");

const PARTS: usize = 4;
const K: usize = 32 * PARTS;

fn random(count: usize, mut seed: u32) -> Vec<i8> {
    let next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 24) as i8
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// Whether the product is right.
fn run(text: &str) -> Result<bool, Error> {
    let mut machine = Machine::new(options());
    let module = machine.load(Module::parse(text).unwrap_or_else(|error| panic!("{error}")))?;
    let (x, w) = (random(32 * K, 1), random(64 * K, 2));
    let bytes = |values: &[i8]| values.iter().map(|&v| v as u8).collect::<Vec<_>>();
    let (x_at, w_at) = (machine.allocate_with(&bytes(&x))?, machine.allocate_with(&bytes(&w))?);
    let out = machine.allocate(32 * 64 * 4)?;
    let arguments = Arguments::new().pointer(x_at).pointer(w_at).pointer(out).u32(64).u32(PARTS as u32);
    machine.launch(&module, "product", LaunchShape::linear(1, 64), &arguments)?;
    let mut result = vec![0; 32 * 64 * 4];
    machine.read(out, &mut result)?;
    let dot = |m: usize, n: usize| -> i32 {
        let (x, w) = (&x[m * K..][..K], &w[n * K..][..K]);
        x.iter().zip(w).map(|(&x, &w)| i32::from(x) * i32::from(w)).sum()
    };
    let expected: Vec<u8> = (0..32 * 64).flat_map(|i| dot(i / 64, i % 64).to_le_bytes()).collect();
    Ok(result == expected)
}

/// The kernel with one thing changed.
fn mutated(from: &str, to: &str) -> Result<bool, Error> {
    assert_eq!(KERNEL.matches(from).count(), 1, "{from}");
    run(&KERNEL.replace(from, to))
}

fn fault(from: &str, to: &str) -> FaultKind {
    match mutated(from, to) {
        Err(Error::Faults(faults)) => faults.first().kind.clone(),
        other => panic!("{from}: {other:?}"),
    }
}

#[test]
fn it_is_right() {
    assert_eq!(run(KERNEL), Ok(true));
}

#[test]
fn swapped_fragments_make_wrong_products() {
    assert_eq!(mutated("{%a0, %a1, %a2, %a3}, {%b0,", "{%a0, %a2, %a1, %a3}, {%b0,"), Ok(false));
    assert_eq!(mutated("{%b0, %b1}, {", "{%b1, %b0}, {"), Ok(false));
    assert_eq!(mutated("{%sum0, %sum1};", "{%sum1, %sum0};"), Ok(false));
}

#[test]
fn a_missing_barrier_before_the_loads() {
    let kind = fault("bar.sync 0;                       // this", "//");
    assert!(
        matches!(kind, FaultKind::Race { access: Access::Read, .. } | FaultKind::CopyUnderWay { .. }),
        "{kind}"
    );
}

#[test]
fn a_missing_barrier_after_the_loads() {
    let kind = fault("bar.sync 0;                       // all", "//");
    let FaultKind::Race { access, other, .. } = kind else { panic!("{kind}") };
    assert_eq!((access, other.access), (Access::Write, Access::Read));
}

#[test]
fn a_missing_wait() {
    let kind = fault("cp.async.wait_group 1;", "");
    assert!(matches!(kind, FaultKind::CopyUnderWay { access: Access::Read, .. }), "{kind}");
    let kind = fault("cp.async.wait_group 1;", "cp.async.wait_group 2;");
    assert!(matches!(kind, FaultKind::CopyUnderWay { access: Access::Read, .. }), "{kind}");
    // To wait for more than needed is slow, not wrong.
    assert_eq!(mutated("cp.async.wait_group 1;", "cp.async.wait_group 0;"), Ok(true));
}

#[test]
fn a_copy_that_is_forgotten() {
    let first = "cp.async.cg.shared.global [%r11+2048], [%d6], 16;";
    let kind = fault(first, "");
    assert!(matches!(kind, FaultKind::Uninitialised { space: Space::Shared, .. }), "{kind}");
    // By one thread in the loop; by all of them in its third round, when the stage holds an older part.
    let thread = "setp.ne.u32 %p3, %r2, 5; @%p3 cp.async.cg.shared.global [%r34], [%d4], 16;";
    let kind = fault("cp.async.cg.shared.global [%r34], [%d4], 16;", thread);
    assert!(matches!(kind, FaultKind::Uninitialised { space: Space::Shared, .. }), "{kind}");
    let thread = thread.replace("%r2, 5;", "%r30, 2;");
    assert_eq!(mutated("cp.async.cg.shared.global [%r34], [%d4], 16;", &thread), Ok(false));
}

#[test]
fn one_part_too_many() {
    let kind = fault("setp.ge.u32 %p1, %r33, %r1;", "setp.gt.u32 %p1, %r33, %r1;");
    let FaultKind::OutOfBounds { access: Access::Read, nearest: Some((_, bytes)), .. } = kind else {
        panic!("{kind}")
    };
    assert!(bytes == 32 * K as u64 || bytes == 64 * K as u64);
}
