//! A pipelined W8A8 product, and the mistakes that are made in such kernels.
//!
//! A block of two warps computes 32 x 8: each warp 16 rows. Parts of 32 of K come to shared memory two ahead.

use super::support::options;
use halite_ptx::ir::Module;
use halite_ptx::{Access, Arguments, Error, FaultKind, LaunchShape, Machine};

/// A stage is 32 rows of x, then 8 of w, 32 bytes each.
const KERNEL: &str = r"
.version 8.0
.target sm_80
.address_size 64
.visible .entry product(.param .u64 x, .param .u64 w, .param .u64 out, .param .u32 parts)
{
    .reg .pred %p<8>;
    .reg .b32 %r<64>;
    .reg .b64 %d<16>;
    .shared .align 16 .b8 stages[2560];
    ld.param.u64 %d1, [x];
    ld.param.u64 %d2, [w];
    ld.param.u64 %d3, [out];
    ld.param.u32 %r1, [parts];
    mov.u32 %r2, %tid.x;
    shl.b32 %r3, %r1, 5;              // bytes of a row
    shr.u32 %r4, %r2, 1;              // row that this thread copies a chunk of
    and.b32 %r5, %r2, 1;              // which chunk
    shl.b32 %r6, %r2, 4;              // its place in a stage
    mov.u32 %r7, stages;
    add.u32 %r6, %r6, %r7;
    mad.lo.u32 %r8, %r4, %r3, 0;
    shl.b32 %r9, %r5, 4;
    add.u32 %r8, %r8, %r9;
    cvt.u64.u32 %d4, %r8;
    add.s64 %d5, %d1, %d4;            // source in x
    add.s64 %d6, %d2, %d4;            // source in w, for the first 16 threads
    setp.lt.u32 %p1, %r2, 16;
    shr.u32 %r10, %r2, 5;             // warp
    and.b32 %r11, %r2, 31;            // lane
    and.b32 %r12, %r11, 15;
    shr.u32 %r13, %r11, 4;
    shl.b32 %r14, %r10, 4;
    add.u32 %r14, %r14, %r12;
    shl.b32 %r14, %r14, 5;
    shl.b32 %r15, %r13, 4;
    add.u32 %r14, %r14, %r15;
    add.u32 %r14, %r14, %r7;          // this lane's row of x for ldmatrix
    and.b32 %r16, %r11, 7;
    shl.b32 %r16, %r16, 5;
    shr.u32 %r17, %r11, 3;
    and.b32 %r17, %r17, 1;
    shl.b32 %r17, %r17, 4;
    add.u32 %r16, %r16, %r17;
    add.u32 %r16, %r16, %r7;          // and of w
    mov.u32 %r20, 0;
    mov.u32 %r21, 0;
    mov.u32 %r22, 0;
    mov.u32 %r23, 0;
    cp.async.cg.shared.global [%r6], [%d5], 16;
    @%p1 cp.async.cg.shared.global [%r6+1024], [%d6], 16;
    cp.async.commit_group;
    mov.u32 %r30, 0;                  // part
    mov.u32 %r31, 0;                  // its stage
LOOP:
    xor.b32 %r32, %r31, 1280;
    add.u32 %r33, %r30, 1;
    setp.ge.u32 %p2, %r33, %r1;
    @%p2 bra LAST;
    add.s64 %d5, %d5, 32;
    add.s64 %d6, %d6, 32;
    add.u32 %r34, %r6, %r32;
    cp.async.cg.shared.global [%r34], [%d5], 16;
    @%p1 cp.async.cg.shared.global [%r34+1024], [%d6], 16;
LAST:
    cp.async.commit_group;
    cp.async.wait_group 1;
    bar.sync 0;                       // this part has come for all
    add.u32 %r35, %r14, %r31;
    add.u32 %r36, %r16, %r31;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r40, %r41, %r42, %r43}, [%r35];
    ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r44, %r45}, [%r36+1024];
    mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r20, %r21, %r22, %r23}, {%r40, %r41, %r42, %r43}, {%r44, %r45}, {%r20, %r21, %r22, %r23};
    bar.sync 0;                       // all have read it
    mov.u32 %r30, %r33;
    mov.u32 %r31, %r32;
    setp.lt.u32 %p3, %r30, %r1;
    @%p3 bra LOOP;
    shr.u32 %r50, %r11, 2;
    shl.b32 %r51, %r10, 4;
    add.u32 %r50, %r50, %r51;
    shl.b32 %r50, %r50, 5;
    and.b32 %r52, %r11, 3;
    shl.b32 %r52, %r52, 3;
    add.u32 %r50, %r50, %r52;
    cvt.u64.u32 %d7, %r50;
    add.s64 %d7, %d3, %d7;
    st.global.v2.u32 [%d7], {%r20, %r21};
    st.global.v2.u32 [%d7+256], {%r22, %r23};
    ret;
}
";

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
    let (x, w) = (random(32 * K, 1), random(8 * K, 2));
    let bytes = |values: &[i8]| values.iter().map(|&v| v as u8).collect::<Vec<_>>();
    let (x_at, w_at) = (machine.allocate_with(&bytes(&x))?, machine.allocate_with(&bytes(&w))?);
    let out = machine.allocate(32 * 8 * 4)?;
    let arguments = Arguments::new().pointer(x_at).pointer(w_at).pointer(out).u32(PARTS as u32);
    machine.launch(&module, "product", LaunchShape::linear(1, 64), &arguments)?;
    let mut result = vec![0; 32 * 8 * 4];
    machine.read(out, &mut result)?;
    let dot = |m: usize, n: usize| -> i32 {
        let (x, w) = (&x[m * K..][..K], &w[n * K..][..K]);
        x.iter().zip(w).map(|(&x, &w)| i32::from(x) * i32::from(w)).sum()
    };
    let expected: Vec<u8> = (0..256).flat_map(|i| dot(i / 8, i % 8).to_le_bytes()).collect();
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
    let a = "{%r40, %r41, %r42, %r43}, {%r44";
    assert_eq!(mutated(a, "{%r40, %r42, %r41, %r43}, {%r44"), Ok(false));
    assert_eq!(mutated("{%r44, %r45}, {%r20", "{%r45, %r44}, {%r20"), Ok(false));
    assert_eq!(mutated("{%r20, %r21};", "{%r21, %r20};"), Ok(false));
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
fn a_copy_that_some_threads_forget() {
    let kind =
        fault("@%p1 cp.async.cg.shared.global [%r6+1024]", "@!%p1 cp.async.cg.shared.global [%r6+1024]");
    assert!(!matches!(kind, FaultKind::Deadlock { .. }), "{kind}");
    let kind = fault("setp.lt.u32 %p1, %r2, 16;", "setp.lt.u32 %p1, %r2, 15;");
    assert!(matches!(kind, FaultKind::Uninitialised { .. }), "{kind}");
}

#[test]
fn one_part_too_many() {
    let kind = fault("setp.ge.u32 %p2, %r33, %r1;", "setp.gt.u32 %p2, %r33, %r1;");
    let FaultKind::OutOfBounds { access: Access::Read, nearest: Some((_, bytes)), .. } = kind else {
        panic!("{kind}")
    };
    assert!(bytes == 32 * K as u64 || bytes == 8 * K as u64);
}
