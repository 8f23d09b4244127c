//! Which predicates an operation names.

use super::{BarrierKind, Mbarrier, Op, Predicate, PredicateSource};

impl Op {
    /// Shows each predicate that it reads or writes, in no particular order.
    pub(crate) fn predicates(&self, mut visit: impl FnMut(Predicate)) {
        let (written, read): ([Option<Predicate>; 2], [Option<PredicateSource>; 2]) = match self {
            Op::IsSpace { dst, .. } | Op::TestFloat { dst, .. } => ([Some(*dst), None], [None; 2]),
            Op::Compare { combine, dst, second, .. } => {
                ([*dst, *second], [combine.map(|(_, predicate)| predicate), None])
            }
            Op::CompareInto { combine, .. } => ([None; 2], [combine.map(|(_, predicate)| predicate), None]),
            Op::Select { predicate, .. } => ([None; 2], [Some(*predicate), None]),
            Op::PredicateLogic { dst, a, b, .. } => ([Some(*dst), None], [Some(*a), Some(*b)]),
            Op::CopyAsync { ignore_source, .. } => ([None; 2], [*ignore_source, None]),
            Op::Shuffle { in_range, .. } => ([*in_range, None], [None; 2]),
            Op::Vote { dst, a, .. } => ([Some(*dst), None], [Some(*a), None]),
            Op::Ballot { a, .. } => ([None; 2], [Some(*a), None]),
            Op::Match { predicate, .. } => ([*predicate, None], [None; 2]),
            Op::Elect { predicate, .. } => ([Some(*predicate), None], [None; 2]),
            Op::Barrier { kind, .. } => match kind {
                BarrierKind::Count { a, .. } => ([None; 2], [Some(*a), None]),
                BarrierKind::Reduce { dst, a, .. } => ([Some(*dst), None], [Some(*a), None]),
                BarrierKind::Synchronize | BarrierKind::Arrive => return,
            },
            Op::Mbarrier(operation) => match operation.as_ref() {
                Mbarrier::Test { dst, .. } | Mbarrier::TestParity { dst, .. } => {
                    ([Some(*dst), None], [None; 2])
                }
                Mbarrier::Initialize { .. }
                | Mbarrier::Invalidate { .. }
                | Mbarrier::Arrive { .. }
                | Mbarrier::PendingCount { .. } => return,
            },
            Op::Move { .. }
            | Op::AddressOf { .. }
            | Op::ConvertAddress { .. }
            | Op::Pack { .. }
            | Op::Unpack { .. }
            | Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Ternary { .. }
            | Op::BitFieldInsert { .. }
            | Op::Carry { .. }
            | Op::Convert { .. }
            | Op::ConvertPack { .. }
            | Op::SelectBySign { .. }
            | Op::Load { .. }
            | Op::Store { .. }
            | Op::Prefetch { .. }
            | Op::Atomic { .. }
            | Op::CopyAsyncCommit
            | Op::CopyAsyncWait { .. }
            | Op::CopyAsyncArrive { .. }
            | Op::LoadMatrix { .. }
            | Op::StoreMatrix { .. }
            | Op::TransposeMatrix { .. }
            | Op::MatrixMultiply(_)
            | Op::WarpReduce { .. }
            | Op::ActiveMask { .. }
            | Op::WarpBarrier { .. }
            | Op::Fence { .. }
            | Op::Branch { .. }
            | Op::BranchIndexed { .. }
            | Op::Exit
            | Op::Trap
            | Op::Nothing => return,
        };
        let named = read.into_iter().flatten().filter_map(|source| match source {
            PredicateSource::Register { predicate, .. } => Some(predicate),
            PredicateSource::Constant(_) => None,
        });
        written.into_iter().flatten().chain(named).for_each(&mut visit);
    }
}
