//! What instructions of one form do: which sum, which comparison, which exchange.

use super::{Predicate, PredicateSource, Register};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names are PTX's own, written out")]
pub enum UnaryOp {
    Absolute,
    Negate,
    Not,
    /// `cnot`: 1 where it is 0, else 0.
    LogicalNot,
    PopulationCount,
    CountLeadingZeros,
    BitReverse,
    /// `bfind`; `shift`: `.shiftamt`.
    FindLeadingBit {
        shift: bool,
    },
    Reciprocal,
    SquareRoot,
    ReciprocalSquareRoot,
    Sine,
    Cosine,
    /// Base 2.
    Logarithm,
    /// Base 2.
    Exponential,
    HyperbolicTangent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names are PTX's own, written out")]
pub enum BinaryOp {
    Add,
    Subtract,
    /// Floats, and the low half of integers.
    Multiply,
    /// `mul.hi`.
    MultiplyHigh,
    /// `mul.wide`: the type is the operands'.
    MultiplyWide,
    /// `mul24.lo`.
    Multiply24,
    Divide,
    Remainder,
    Minimum,
    Maximum,
    And,
    Or,
    Xor,
    ShiftLeft,
    /// Arithmetic where the type is signed.
    ShiftRight,
    CopySign,
    /// `bmsk.clamp`: position, width.
    BitMask,
    /// `szext.clamp`.
    SignOrZeroExtend,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names are PTX's own, written out")]
pub enum TernaryOp {
    /// `mad.lo`: the low half of the product, plus c.
    MultiplyAdd,
    /// `mad.hi`.
    MultiplyAddHigh,
    /// `mad.wide`: c is twice as wide.
    MultiplyAddWide,
    /// `mad24.lo`.
    MultiplyAdd24,
    /// `fma`, `mad.f32`: rounded once.
    FusedMultiplyAdd,
    /// `sad`: c + |a - b|.
    SumOfAbsoluteDifferences,
    /// `min`/`max` of three.
    Minimum3,
    Maximum3,
    /// `lop3` with its table.
    Logic(u8),
    /// `shf.l`, `shf.r`; `wrap`: the amount modulo 32, else clamped to 32.
    FunnelShift {
        left: bool,
        wrap: bool,
    },
    /// `prmt`.
    Permute(PermuteMode),
    /// `bfe`: position b, length c.
    BitFieldExtract,
    /// `dp4a`.
    Dot4 {
        a_signed: bool,
        b_signed: bool,
    },
    /// `dp2a`; `high`: the upper two bytes of b.
    Dot2 {
        a_signed: bool,
        b_signed: bool,
        high: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names are PTX's own, written out")]
pub enum PermuteMode {
    Index,
    Forward4,
    Backward4,
    Replicate8,
    EdgeClampLeft,
    EdgeClampRight,
    Replicate16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum CarryOp {
    Add,
    Subtract,
    MultiplyAddLow,
    MultiplyAddHigh,
}

/// How two values are compared. Those of `Unordered…` hold where either is NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names are PTX's own, written out")]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    UnorderedEqual,
    UnorderedNotEqual,
    UnorderedLess,
    UnorderedLessOrEqual,
    UnorderedGreater,
    UnorderedGreaterOrEqual,
    /// `num`: neither is NaN.
    Numbers,
    /// `nan`: one is.
    NotNumbers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum BoolOp {
    And,
    Or,
    Xor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names are PTX's own")]
pub enum FloatTest {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}

/// The memory order of an access, as far as races are concerned: an ordered access races with no other ordered one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// `.weak`, or nothing.
    Weak,
    /// `.volatile`, `.relaxed`; an atomic operation that names no order.
    Relaxed,
    /// `.acquire`.
    Acquire,
    /// `.release`.
    Release,
    /// `.acq_rel`.
    AcquireRelease,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names are PTX's own")]
pub enum AtomicOp {
    Add,
    Minimum,
    Maximum,
    And,
    Or,
    Xor,
    Exchange,
    CompareAndSwap,
    Increment,
    Decrement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names are PTX's own")]
pub enum ShuffleMode {
    Up,
    Down,
    Butterfly,
    Index,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names are PTX's own")]
pub enum VoteMode {
    All,
    Any,
    Uniform,
}

/// What a block's barrier does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names are PTX's own")]
pub enum BarrierKind {
    Synchronize,
    Arrive,
    /// `bar.red.popc`.
    Count {
        dst: Register,
        a: PredicateSource,
    },
    /// `bar.red.and`, `.or`.
    Reduce {
        op: BoolOp,
        dst: Predicate,
        a: PredicateSource,
    },
}

/// Among whom a fence orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum Scope {
    Block,
    Cluster,
    Device,
    System,
}
