//! Which registers an operation reads and which it writes.

use super::{Address, Base, MatrixMultiply, Mbarrier, Op, Register, Source};

/// What an operation does with a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Read,
    Write,
}

/// Shows registers to a visitor.
struct Visit<'v, F: FnMut(&mut Register, Role)>(&'v mut F);

impl<F: FnMut(&mut Register, Role)> Visit<'_, F> {
    fn write(&mut self, register: &mut Register) {
        (self.0)(register, Role::Write);
    }

    fn writes(&mut self, registers: &mut [Register]) {
        registers.iter_mut().for_each(|register| self.write(register));
    }

    fn some(&mut self, registers: &mut [Option<Register>]) {
        registers.iter_mut().flatten().for_each(|register| self.write(register));
    }

    fn reads<const N: usize>(&mut self, sources: [&mut Source; N]) {
        sources.into_iter().for_each(|source| self.all(std::slice::from_mut(source)));
    }

    fn all(&mut self, sources: &mut [Source]) {
        for source in sources {
            match source {
                Source::Register(register) => (self.0)(register, Role::Read),
                Source::Immediate(_) | Source::Special(_) => {}
            }
        }
    }

    fn maybe(&mut self, source: &mut Option<Source>) {
        self.all(source.as_mut_slice());
    }

    fn address(&mut self, address: &mut Address) {
        match &mut address.base {
            Base::Register(register) => (self.0)(register, Role::Read),
            Base::Space | Base::Variable(_) => {}
        }
    }
}

impl Op {
    /// Shows each register that it names, in no particular order.
    pub(crate) fn registers(&mut self, mut visitor: impl FnMut(&mut Register, Role)) {
        let mut visit = Visit(&mut visitor);
        match self {
            Op::Move { dst, src: a, .. }
            | Op::ConvertAddress { dst, src: a, .. }
            | Op::Unary { dst, a, .. }
            | Op::TransposeMatrix { dst, a } => {
                visit.write(dst);
                visit.reads([a]);
            }
            Op::AddressOf { dst, address, .. } => {
                visit.write(dst);
                visit.address(address);
            }
            Op::IsSpace { src: a, .. } | Op::TestFloat { a, .. } => visit.reads([a]),
            Op::Pack { dst, parts, .. } => {
                visit.write(dst);
                visit.all(parts);
            }
            Op::Unpack { dst, src, .. } => {
                visit.some(dst);
                visit.reads([src]);
            }
            Op::Binary { dst, a, b, .. }
            | Op::Select { dst, a, b, .. }
            | Op::CompareInto { dst, a, b, .. } => {
                visit.write(dst);
                visit.reads([a, b]);
            }
            Op::Ternary { dst, a, b, c, .. } | Op::SelectBySign { dst, a, b, c, .. } => {
                visit.write(dst);
                visit.reads([a, b, c]);
            }
            Op::BitFieldInsert { dst, a, b, position, length, .. } => {
                visit.write(dst);
                visit.reads([a, b, position, length]);
            }
            Op::Carry { dst, a, b, c, .. } | Op::ConvertPack { dst, a, b, c, .. } => {
                visit.write(dst);
                visit.reads([a, b]);
                visit.maybe(c);
            }
            Op::Convert { dst, a, b, .. } => {
                visit.write(dst);
                visit.reads([a]);
                visit.maybe(b);
            }
            Op::Compare { a, b, .. } => visit.reads([a, b]),
            Op::Load { dst, address, .. } => {
                visit.some(dst);
                visit.address(address);
            }
            Op::Store { src, address, .. } | Op::StoreMatrix { src, address, .. } => {
                visit.all(src);
                visit.address(address);
            }
            Op::Prefetch { address, .. } | Op::CopyAsyncArrive { barrier: address, .. } => {
                visit.address(address)
            }
            Op::Atomic { dst, address, b, c, .. } => {
                visit.some(std::slice::from_mut(dst));
                visit.address(address);
                visit.reads([b]);
                visit.maybe(c);
            }
            Op::CopyAsync { dst, src, source_bytes, .. } => {
                visit.address(dst);
                visit.address(src);
                visit.maybe(source_bytes);
            }
            Op::LoadMatrix { dst, address, .. } => {
                visit.writes(dst);
                visit.address(address);
            }
            Op::MatrixMultiply(multiply) => {
                let MatrixMultiply { d, a, b, c, .. } = multiply.as_mut();
                visit.writes(d);
                [a, b, c].into_iter().for_each(|fragment| visit.all(fragment));
            }
            Op::Shuffle { dst, a, lane, clamp, members, .. } => {
                visit.write(dst);
                visit.reads([a, lane, clamp, members]);
            }
            Op::Vote { members, .. } | Op::WarpBarrier { members } => visit.reads([members]),
            Op::Ballot { dst, members, .. } => {
                visit.write(dst);
                visit.reads([members]);
            }
            Op::Match { dst, a, members, .. } | Op::WarpReduce { dst, a, members, .. } => {
                visit.write(dst);
                visit.reads([a, members]);
            }
            Op::ActiveMask { dst } => visit.write(dst),
            Op::Elect { dst, members, .. } => {
                visit.some(std::slice::from_mut(dst));
                visit.reads([members]);
            }
            Op::Barrier { kind, barrier, threads } => {
                if let super::BarrierKind::Count { dst, .. } = kind {
                    visit.write(dst);
                }
                visit.reads([barrier]);
                visit.maybe(threads);
            }
            Op::Mbarrier(operation) => visit.mbarrier(operation),
            Op::BranchIndexed { index, .. } => visit.reads([index]),
            Op::PredicateLogic { .. }
            | Op::CopyAsyncCommit
            | Op::CopyAsyncWait { .. }
            | Op::Fence { .. }
            | Op::Branch { .. }
            | Op::Exit
            | Op::Trap
            | Op::Nothing => {}
        }
    }
}

impl<F: FnMut(&mut Register, Role)> Visit<'_, F> {
    fn mbarrier(&mut self, operation: &mut Mbarrier) {
        match operation {
            Mbarrier::Initialize { barrier, count: source }
            | Mbarrier::Test { barrier, state: source, .. }
            | Mbarrier::TestParity { barrier, parity: source, .. } => {
                self.address(barrier);
                self.reads([source]);
            }
            Mbarrier::Invalidate { barrier } => self.address(barrier),
            Mbarrier::Arrive { barrier, state, count, .. } => {
                self.address(barrier);
                self.some(std::slice::from_mut(state));
                self.maybe(count);
            }
            Mbarrier::PendingCount { dst, state } => {
                self.write(dst);
                self.reads([state]);
            }
        }
    }
}
