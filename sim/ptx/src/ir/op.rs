//! The instructions, by families. Every operand has been resolved: names are indices, labels are positions.

use super::{
    Address, AtomicOp, BarrierKind, BinaryOp, BoolOp, CarryOp, Comparison, FloatMode, FloatTest, Order,
    Predicate, PredicateSource, Register, Scope, ShuffleMode, Source, Space, TernaryOp, Type, UnaryOp,
    VoteMode,
};

/// One operation of a warp.
///
/// Registers that a vector leaves out (`_`) are `None`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are the operands in PTX's order")]
pub enum Op {
    /// `mov` of a register, a constant or a special register.
    Move {
        ty: Type,
        dst: Register,
        src: Source,
    },
    /// `mov` or `cvta` of a variable's address; `generic`: as a generic address.
    AddressOf {
        dst: Register,
        space: Space,
        address: Address,
        generic: bool,
    },
    /// `cvta.space` (`to_generic`) and `cvta.to.space` of an address in a register.
    ConvertAddress {
        space: Space,
        to_generic: bool,
        dst: Register,
        src: Source,
    },
    /// `isspacep`.
    IsSpace {
        space: Space,
        dst: Predicate,
        src: Source,
    },
    /// `mov.b32 d, {a, b}`: parts of `bits` each, the first lowest.
    Pack {
        dst: Register,
        parts: Box<[Source]>,
        bits: u32,
    },
    /// `mov.b32 {a, b}, d`.
    Unpack {
        dst: Box<[Option<Register>]>,
        src: Source,
        bits: u32,
    },
    Unary {
        op: UnaryOp,
        ty: Type,
        mode: FloatMode,
        dst: Register,
        a: Source,
    },
    Binary {
        op: BinaryOp,
        ty: Type,
        mode: FloatMode,
        dst: Register,
        a: Source,
        b: Source,
    },
    Ternary {
        op: TernaryOp,
        ty: Type,
        mode: FloatMode,
        dst: Register,
        a: Source,
        b: Source,
        c: Source,
    },
    /// `bfi`: `a` is put into `b` at `position`, `length` bits.
    BitFieldInsert {
        ty: Type,
        dst: Register,
        a: Source,
        b: Source,
        position: Source,
        length: Source,
    },
    /// `add.cc`, `addc`, `subc`, `mad.lo.cc` and so on: `reads`, `writes` the carry of each lane.
    Carry {
        op: CarryOp,
        ty: Type,
        reads: bool,
        writes: bool,
        dst: Register,
        a: Source,
        b: Source,
        c: Option<Source>,
    },
    /// `cvt`. `b` is the upper element's source where two are packed, `a` the lower's (PTX writes them the other way).
    Convert {
        to: Type,
        from: Type,
        mode: FloatMode,
        /// Bits of the destination register: a signed integer is sign-extended to them.
        dst_bits: u32,
        dst: Register,
        a: Source,
        b: Option<Source>,
    },
    /// `cvt.pack.sat`: `a` and `b`, S32, saturated to `to`, `b` lowest; with `c`, its low bits follow above.
    ConvertPack {
        to: Type,
        dst: Register,
        a: Source,
        b: Source,
        c: Option<Source>,
    },
    /// `setp`. With `combine`, both results are joined with a predicate. For packed types `dst` is the lower element's
    /// result and `second` the upper's; for others `second` is the complement (before `combine`).
    Compare {
        compare: Comparison,
        ty: Type,
        flush_to_zero: bool,
        combine: Option<(BoolOp, PredicateSource)>,
        dst: Option<Predicate>,
        second: Option<Predicate>,
        a: Source,
        b: Source,
    },
    /// `set`: all ones or 1.0 where it holds, by the type.
    CompareInto {
        compare: Comparison,
        to: Type,
        ty: Type,
        flush_to_zero: bool,
        combine: Option<(BoolOp, PredicateSource)>,
        dst: Register,
        a: Source,
        b: Source,
    },
    /// `testp`.
    TestFloat {
        test: FloatTest,
        ty: Type,
        dst: Predicate,
        a: Source,
    },
    /// `selp`: `a` where the predicate holds, `b` else.
    Select {
        ty: Type,
        dst: Register,
        a: Source,
        b: Source,
        predicate: PredicateSource,
    },
    /// `slct`: `a` where `c` is at least 0, `b` else; `ty` is `c`'s.
    SelectBySign {
        ty: Type,
        flush_to_zero: bool,
        dst: Register,
        a: Source,
        b: Source,
        c: Source,
    },
    /// `and.pred`, `or.pred`, `xor.pred`; `mov.pred` and `not.pred` are `or` with false.
    PredicateLogic {
        op: BoolOp,
        dst: Predicate,
        a: PredicateSource,
        b: PredicateSource,
    },
    /// `ld`, `ldu`: one, two, four or eight values that follow each other. Narrow signed types are sign-extended to 32 bits
    /// or to the register's own width `into`.
    Load {
        space: Space,
        ty: Type,
        into: Type,
        order: Order,
        dst: Box<[Option<Register>]>,
        address: Address,
    },
    /// `st`.
    Store {
        space: Space,
        ty: Type,
        order: Order,
        src: Box<[Source]>,
        address: Address,
    },
    /// `prefetch`, `applypriority`, `discard` of a line: changes no value.
    Prefetch {
        space: Space,
        address: Address,
    },
    /// `atom` (with `dst`) and `red` (without). `c` is the new value of compare-and-swap.
    Atomic {
        space: Space,
        op: AtomicOp,
        ty: Type,
        order: Order,
        dst: Option<Register>,
        address: Address,
        b: Source,
        c: Option<Source>,
    },
    /// `cp.async`: `bytes` (4, 8, 16) from global to shared memory; of them `source_bytes` are read, zeros follow.
    CopyAsync {
        bytes: u32,
        dst: Address,
        src: Address,
        source_bytes: Option<Source>,
        ignore_source: Option<PredicateSource>,
    },
    /// `cp.async.commit_group`.
    CopyAsyncCommit,
    /// `cp.async.wait_group N`: at most `pending` of the newest groups may still be under way; `None` is `wait_all`.
    CopyAsyncWait {
        pending: Option<u32>,
    },
    /// `cp.async.mbarrier.arrive`.
    CopyAsyncArrive {
        barrier: Address,
        no_increment: bool,
    },
    /// `ldmatrix.m8n8 .b16`: `dst.len()` matrices (1, 2, 4).
    LoadMatrix {
        transposed: bool,
        dst: Box<[Register]>,
        address: Address,
    },
    /// `stmatrix.m8n8 .b16`.
    StoreMatrix {
        transposed: bool,
        src: Box<[Source]>,
        address: Address,
    },
    /// `movmatrix.m8n8.trans.b16`.
    TransposeMatrix {
        dst: Register,
        a: Source,
    },
    /// `mma.sync` of A (row) and B (column): `d = a · b + c`.
    MatrixMultiply(Box<MatrixMultiply>),
    /// `shfl.sync`.
    Shuffle {
        mode: ShuffleMode,
        dst: Register,
        in_range: Option<Predicate>,
        a: Source,
        lane: Source,
        clamp: Source,
        members: Source,
    },
    /// `vote.sync.all`, `.any`, `.uni`.
    Vote {
        mode: VoteMode,
        dst: Predicate,
        a: PredicateSource,
        members: Source,
    },
    /// `vote.sync.ballot`.
    Ballot {
        dst: Register,
        a: PredicateSource,
        members: Source,
    },
    /// `match.any.sync`, `match.all.sync` (with `all`, and its predicate).
    Match {
        all: bool,
        ty: Type,
        dst: Register,
        predicate: Option<Predicate>,
        a: Source,
        members: Source,
    },
    /// `redux.sync`.
    WarpReduce {
        op: AtomicOp,
        ty: Type,
        dst: Register,
        a: Source,
        members: Source,
    },
    /// `activemask`.
    ActiveMask {
        dst: Register,
    },
    /// `elect.sync`.
    Elect {
        dst: Option<Register>,
        predicate: Predicate,
        members: Source,
    },
    /// `bar`, `barrier`: of the block, by number. `threads` is how many take part, all where it is `None`.
    Barrier {
        kind: BarrierKind,
        barrier: Source,
        threads: Option<Source>,
    },
    /// `bar.warp.sync`.
    WarpBarrier {
        members: Source,
    },
    /// `membar`, `fence`.
    Fence {
        scope: Scope,
    },
    /// `mbarrier.*` and its like, in shared memory (sm_80's and sm_90's forms).
    Mbarrier(Box<Mbarrier>),
    /// `bra`: to a position in [`Kernel::instructions`](super::Kernel). The guard chooses the lanes that go.
    Branch {
        target: usize,
        uniform: bool,
    },
    /// `brx.idx`: by a number in a list of positions.
    BranchIndexed {
        targets: Box<[usize]>,
        index: Source,
    },
    /// `ret` of the kernel, and `exit`.
    Exit,
    /// `trap`: ends the kernel with an error.
    Trap,
    /// `nanosleep`, `pmevent`, `setmaxnreg`, `griddepcontrol`, `brkpt`: nothing that changes a value.
    Nothing,
}

/// `mma.sync.aligned.mMnNkK.row.col`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names are PTX's own")]
pub struct MatrixMultiply {
    pub m: u32,
    pub n: u32,
    pub k: u32,
    pub d_type: Type,
    pub a_type: Type,
    pub b_type: Type,
    pub c_type: Type,
    /// `.satfinite` of integer sums.
    pub saturate: bool,
    pub d: Box<[Register]>,
    pub a: Box<[Source]>,
    pub b: Box<[Source]>,
    pub c: Box<[Source]>,
}

/// An operation on an mbarrier object in shared memory.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are the operands in PTX's order")]
pub enum Mbarrier {
    Initialize {
        barrier: Address,
        count: Source,
    },
    Invalidate {
        barrier: Address,
    },
    /// `drop`: the thread takes no part in later phases.
    Arrive {
        barrier: Address,
        state: Option<Register>,
        count: Option<Source>,
        drop: bool,
    },
    /// `test_wait`, `try_wait` by the state that an arrival gave.
    Test {
        dst: Predicate,
        barrier: Address,
        state: Source,
        may_wait: bool,
    },
    /// The same by the phase's parity.
    TestParity {
        dst: Predicate,
        barrier: Address,
        parity: Source,
        may_wait: bool,
    },
    PendingCount {
        dst: Register,
        state: Source,
    },
}
