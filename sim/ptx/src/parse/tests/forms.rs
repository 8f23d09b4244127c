//! Each form of instruction is read, and what matters of it is kept.

use super::{instructions, op};
use crate::ir::{
    AtomicOp, BarrierKind, BinaryOp, CarryOp, Comparison, FloatMode, Mbarrier, Op, Order, PermuteMode,
    Rounding, Scope, Space, TernaryOp, Type, UnaryOp,
};
use crate::{Arguments, Error, FaultKind, LaunchShape, Machine, Options};

const FORMS: &str = "\
add.u16 %h0, %h1, %h2
add.sat.s32 %r0, %r1, %r2
add.u16x2 %r0, %r1, %r2
add.rn.ftz.sat.f32 %f0, %f1, %f2
add.rn.f16x2 %r0, %r1, %r2
add.rn.bf16 %h0, %h1, %h2
sub.f64 %e0, %e1, %e2
mul.lo.s64 %d0, %d1, %d2
mul.hi.u32 %r0, %r1, 5
mul.rz.f32 %f0, %f1, %f2
mad.hi.sat.s32 %r0, %r1, %r2, %r3
mad.wide.u16 %r0, %h1, %h2, %r3
mad.rn.f32 %f0, %f1, %f2, %f3
mad24.lo.s32 %r0, %r1, %r2, %r3
mul24.lo.u32 %r0, %r1, %r2
madc.hi.cc.u32 %r0, %r1, %r2, %r3
addc.cc.u32 %r0, %r1, %r2
subc.u64 %d0, %d1, %d2
fma.rn.relu.f16 %h0, %h1, %h2, %h3
div.full.ftz.f32 %f0, %f1, %f2
div.s64 %d0, %d1, %d2
rem.u16 %h0, %h1, %h2
min.NaN.f16x2 %r0, %r1, %r2
max.relu.s32 %r0, %r1, %r2
max.ftz.NaN.f32 %f0, %f1, %f2
abs.s16 %h0, %h1
neg.ftz.f32 %f0, %f1
copysign.f64 %e0, %e1, %e2
rcp.approx.ftz.f64 %e0, %e1
sqrt.rn.f32 %f0, %f1
rsqrt.approx.f32 %f0, %f1
sin.approx.ftz.f32 %f0, %f1
lg2.approx.f32 %f0, %f1
ex2.approx.ftz.bf16x2 %r0, %r1
tanh.approx.f16 %h0, %h1
sad.s32 %r0, %r1, %r2, %r3
dp4a.u32.s32 %r0, %r1, %r2, %r3
dp2a.hi.s32.u32 %r0, %r1, %r2, %r3
popc.b64 %r0, %d0
clz.b32 %r0, %r1
bfind.shiftamt.u64 %r0, %d0
brev.b64 %d0, %d1
bfe.s64 %d0, %d1, %r0, %r1
bfi.b32 %r0, %r1, %r2, 4, %r3
szext.clamp.s32 %r0, %r1, %r2
bmsk.clamp.b32 %r0, %r1, %r2
and.b16 %h0, %h1, 255
xor.pred %p0, %p1, %p2
not.b64 %d0, %d1
cnot.b32 %r0, %r1
shl.b16 %h0, %h1, %r0
shr.s64 %d0, %d1, 3
shf.r.clamp.b32 %r0, %r1, %r2, %r3
lop3.b32 %r0, %r1, %r2, %r3, 0x96
prmt.b32.f4e %r0, %r1, %r2, %r3
setp.gtu.ftz.f32 %p0, %f0, 0f00000000
setp.eq.f16x2 %p0|%p1, %r0, %r1
set.le.and.f32.s32 %f0, %r0, %r1, %p0
set.ne.f16x2.f16x2 %r0, %r1, %r2
selp.f32 %f0, %f1, 0f3F800000, %p0
slct.ftz.s32.f32 %r0, %r1, %r2, %f0
testp.subnormal.f64 %p0, %e0
mov.u64 %d0, tile
mov.b64 {%h0, %h1, %h2, %h3}, %d0
cvta.shared.u64 %d0, tile
cvta.to.shared.u64 %d0, %d1
cvta.param.u64 %d0, pointer
isspacep.shared::cta %p0, %d0
cvt.rzi.ftz.s32.f32 %r0, %f0
cvt.rni.f32.f32 %f0, %f1
cvt.sat.f32.f32 %f0, %f1
cvt.f32.bf16 %f0, %h0
cvt.rn.f16.s32 %h0, %r0
cvt.s8.s32 %r0, %r1
cvt.u16.u8 %h0, %h1
cvt.sat.u8.s32 %r0, %r1
cvt.rna.tf32.f32 %r0, %f0
cvt.rn.relu.bf16x2.f32 %r0, %f0, %f1
cvt.rn.f16x2.e5m2x2 %r0, %h0
cvt.rn.satfinite.e4m3x2.f16x2 %h0, %r0
cvt.pack.sat.s8.s32.b32 %r0, %r1, %r2, %r3
cvt.pack.sat.u16.s32 %r0, %r1, %r2
ld.const.f32 %f0, [%d0]
ld.global.L1::no_allocate.L2::cache_hint.v2.u64 {%d0, %d1}, [%d2], %d3
ld.acquire.gpu.global.u32 %r0, [%d0]
ld.relaxed.sys.u32 %r0, [%d0]
ldu.global.f32 %f0, [%d0]
st.release.cta.shared.u32 [tile], %r0
st.global.cs.u8 [%d0], %h0
st.local.b64 [stack+8], %d0
prefetch.global.L2::evict_last [%d0]
prefetchu.L1 [%d0]
discard.global.L2 [%d0], 128
createpolicy.fractional.L2::evict_first.b64 %d0, 1.0
atom.acq_rel.gpu.global.add.noftz.f16x2 %r0, [%d0], %r1
atom.inc.u32 %r0, [%d0], 7
red.relaxed.gpu.global.add.f64 [%d0], %e0
cp.async.ca.shared::cta.global.L2::cache_hint [%r0], [%d0], 4, 2, %d1
cp.async.ca.shared.global [%r0], [%d0], 16, %p0
cp.async.wait_all
cp.async.mbarrier.arrive.noinc.shared.b64 [%r0]
mbarrier.init.shared::cta.b64 [%r0], 128
mbarrier.inval.shared.b64 [%r0]
mbarrier.arrive.release.cta.shared.b64 _, [%r0], 2
mbarrier.arrive_drop.noComplete.shared.b64 %d0, [%r0], 1
mbarrier.test_wait.shared.b64 %p0, [%r0], %d0
mbarrier.pending_count.b64 %r0, %d0
ldmatrix.sync.aligned.m8n8.x1.shared.b16 %r0, [%r1]
ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 {%r0, %r1}, [tile]
stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r0], {%r1, %r2}
movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1
mma.sync.aligned.m8n8k16.row.col.satfinite.s32.u8.s8.s32 {%r0,%r1}, {%r2}, {%r3}, {%r4,%r5}
mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r0,%r1}, {%r2,%r3,%r4,%r5}, {%r6,%r7}, {%r8,%r9}
mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0,%f1,%f2,%f3}, {%r2,%r3,%r4,%r5}, {%r6,%r7}, {%f0,%f1,%f2,%f3}
mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%f0,%f1,%f2,%f3}, {%r2,%r3,%r4,%r5}, {%r6,%r7}, {%f0,%f1,%f2,%f3}
mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%e0,%e1}, {%e2}, {%e3}, {%e4,%e5}
shfl.sync.idx.b32 %r0, %r1, 0, 0x1f, %r2
vote.sync.any.pred %p0, !%p1, -1
vote.sync.ballot.b32 %r0, %p1, %r1
match.any.sync.b64 %r0, %d0, -1
match.all.sync.b32 %r0|%p0, %r1, -1
redux.sync.xor.b32 %r0, %r1, -1
activemask.b32 %r0
elect.sync _|%p0, -1
bar.sync 0
barrier.sync.aligned %r0, 64
barrier.cta.arrive 3, 64
bar.red.or.pred %p0, 1, %p1
bar.warp.sync 0xffffffff
membar.gl
fence.acq_rel.cluster
exit
trap
nanosleep.u32 100
griddepcontrol.wait
setmaxnreg.inc.sync.aligned.u32 232";

#[test]
fn every_form_is_one_instruction() {
    for form in FORMS.lines() {
        let body = format!("{form};\ntrap;");
        assert_eq!(instructions(&body).len(), 2, "{form}");
    }
}

/// Whatever else goes wrong with registers that hold zeros: the machine knows all that the parser reads.
#[test]
fn every_form_is_modelled() {
    let mut machine = Machine::new(Options::default().with_threads(1));
    let memory = machine.allocate_zeroed(4096).unwrap();
    let arguments = Arguments::new().u64(memory).u32(0);
    for form in FORMS.lines() {
        let text = super::text(&format!("ld.param.u64 %d0, [pointer];\n{form};"));
        let module = machine.load(crate::ir::Module::parse(&text).unwrap()).unwrap();
        match machine.launch(&module, "kernel", LaunchShape::linear(1, 64), &arguments) {
            Ok(_) => {}
            Err(Error::Faults(faults)) => {
                for fault in faults.all() {
                    assert!(!matches!(fault.kind, FaultKind::Unsupported(_)), "{form}: {fault}");
                }
            }
            Err(other) => panic!("{form}: {other}"),
        }
    }
}

#[test]
fn arithmetic() {
    let Op::Binary { op: BinaryOp::Add, ty, mode, .. } = op("add.rz.ftz.sat.f32 %f0, %f1, %f2;") else {
        panic!()
    };
    let expected =
        FloatMode { rounding: Some(Rounding::Zero), flush_to_zero: true, saturate: true, ..FloatMode::PLAIN };
    assert_eq!((ty, mode), (Type::F32, expected));
    let Op::Binary { op: BinaryOp::MultiplyWide, ty, .. } = op("mul.wide.s16 %r0, %h1, -3;") else {
        panic!()
    };
    assert_eq!(ty, Type::S16);
    let Op::Carry { op: CarryOp::MultiplyAddLow, reads, writes, c, .. } =
        op("mad.lo.cc.u32 %r0, %r1, %r2, %r3;")
    else {
        panic!()
    };
    assert!(!reads && writes && c.is_some());
    let Op::Carry { op: CarryOp::Subtract, reads, writes, .. } = op("subc.u32 %r0, %r1, %r2;") else {
        panic!()
    };
    assert!(reads && !writes);
    let Op::Unary { op: UnaryOp::Exponential, mode, .. } = op("ex2.approx.ftz.f32 %f0, %f1;") else {
        panic!()
    };
    assert!(mode.approximate && mode.flush_to_zero);
    let Op::Ternary { op, .. } = op("dp4a.u32.s32 %r0, %r1, %r2, %r3;") else { panic!() };
    assert_eq!(op, TernaryOp::Dot4 { a_signed: false, b_signed: true });
}

#[test]
fn bits() {
    let ternary = |body| match op(body) {
        Op::Ternary { op, .. } => op,
        other => panic!("{other:?}"),
    };
    assert_eq!(ternary("lop3.b32 %r0, %r1, %r2, %r3, 0x96;"), TernaryOp::Logic(0x96));
    assert_eq!(ternary("prmt.b32 %r0, %r1, %r2, 0x5410;"), TernaryOp::Permute(PermuteMode::Index));
    assert_eq!(ternary("prmt.b32.rc16 %r0, %r1, %r2, 1;"), TernaryOp::Permute(PermuteMode::Replicate16));
    let left = TernaryOp::FunnelShift { left: true, wrap: true };
    assert_eq!(ternary("shf.l.wrap.b32 %r0, %r1, %r2, %r3;"), left);
}

#[test]
fn comparisons() {
    let compare = |body| match op(body) {
        Op::Compare { compare, ty, .. } => (compare, ty),
        other => panic!("{other:?}"),
    };
    assert_eq!(compare("setp.hs.u64 %p0, %d0, 1;"), (Comparison::GreaterOrEqual, Type::U64));
    assert_eq!(compare("setp.neu.f64 %p0, %e0, %e1;"), (Comparison::UnorderedNotEqual, Type::F64));
    assert_eq!(compare("setp.nan.f32 %p0, %f0, %f0;"), (Comparison::NotNumbers, Type::F32));
}

#[test]
fn conversions() {
    let Op::Convert { to, from, mode, dst_bits, b, .. } = op("cvt.s8.s32 %r0, %r1;") else { panic!() };
    assert_eq!((to, from, mode, dst_bits, b), (Type::S8, Type::S32, FloatMode::PLAIN, 32, None));
    let Op::Convert { mode, .. } = op("cvt.rpi.ftz.sat.f32.f32 %f0, %f1;") else { panic!() };
    assert_eq!((mode.rounding, mode.flush_to_zero, mode.saturate), (Some(Rounding::Up), true, true));
    // The upper element is named first.
    let found = instructions("mov.f32 %f0, %f0;\ncvt.rn.f16x2.f32 %r0, %f0, 0f3F800000;");
    let Op::Convert { to: Type::F16x2, a, b, .. } = found[1].op else { panic!() };
    assert_eq!(a, crate::ir::Source::Immediate(0x3F80_0000));
    assert!(matches!(b, Some(crate::ir::Source::Register(_))));
}

#[test]
fn accesses() {
    let Op::Load { order, space, .. } = op("ld.acquire.gpu.global.u32 %r0, [%d0];") else { panic!() };
    assert_eq!((order, space), (Order::Acquire, Space::Global));
    let Op::Store { order, ty, .. } = op("st.volatile.shared.u8 [tile], %r0;") else { panic!() };
    assert_eq!((order, ty), (Order::Relaxed, Type::U8));
    let Op::Atomic { op: kind, dst, c, order, .. } = op("atom.global.cas.b32 _, [%d0], %r0, %r1;") else {
        panic!()
    };
    assert_eq!((kind, dst, order), (AtomicOp::CompareAndSwap, None, Order::Relaxed));
    assert!(c.is_some());
    let copy = |body| match op(body) {
        Op::CopyAsync { bytes, source_bytes, ignore_source, .. } => {
            (bytes, source_bytes.is_some(), ignore_source.is_some())
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(copy("cp.async.cg.shared.global [%r0], [%d0], 16;"), (16, false, false));
    assert_eq!(copy("cp.async.ca.shared.global [%r0], [%d0], 8, %r1;"), (8, true, false));
    assert_eq!(copy("cp.async.ca.shared.global [%r0], [%d0], 4, %p1;"), (4, false, true));
    assert_eq!(copy("cp.async.cg.shared.global.L2::cache_hint [%r0], [%d0], 16, %d1;"), (16, false, false));
}

#[test]
fn barriers() {
    let barrier = |body| match op(body) {
        Op::Barrier { kind, threads, .. } => (kind, threads.is_some()),
        other => panic!("{other:?}"),
    };
    assert_eq!(barrier("bar.sync 1;"), (BarrierKind::Synchronize, false));
    assert_eq!(barrier("barrier.sync 1, %r0;"), (BarrierKind::Synchronize, true));
    assert_eq!(barrier("bar.arrive 1, 64;"), (BarrierKind::Arrive, true));
    assert!(matches!(barrier("bar.red.popc.u32 %r0, 1, %p0;"), (BarrierKind::Count { .. }, false)));
    assert!(matches!(
        barrier("barrier.red.and.aligned.pred %p0, 1, 64, !%p1;"),
        (BarrierKind::Reduce { .. }, true)
    ));
    assert_eq!(op("fence.sc.sys;"), Op::Fence { scope: Scope::System });
    let Op::Mbarrier(barrier) = op("mbarrier.try_wait.parity.acquire.cta.shared.b64 %p0, [tile+8], 1, 99;")
    else {
        panic!()
    };
    assert!(matches!(*barrier, Mbarrier::TestParity { may_wait: true, .. }));
}

#[test]
fn matrices() {
    let Op::MatrixMultiply(found) = op(
        "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%r0,%r1,%r2,%r3}, {%r4,%r5,%r6,%r7}, {%r8,%r9}, {0, 0, 0, 0};",
    ) else {
        panic!()
    };
    assert_eq!((found.m, found.n, found.k, found.saturate), (16, 8, 32, true));
    assert_eq!((found.a_type, found.b_type), (Type::S8, Type::U8));
    let Op::LoadMatrix { transposed, dst, .. } =
        op("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r0,%r1,%r2,%r3}, [%r4];")
    else {
        panic!()
    };
    assert_eq!((transposed, dst.len()), (true, 4));
}
