//! What an instruction reads and writes.

/// A register of a warp: 32 lanes of 64 bits, by its index in the kernel's register file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Register(pub u32);

/// A predicate register of a warp: a bit a lane, by its index among the kernel's predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Predicate(pub u32);

/// A value that is read, the same way by every lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// A register's lane.
    Register(Register),
    /// A constant: its bits in the instruction's type, zeros above.
    Immediate(u64),
    /// A special register.
    Special(Special),
}

/// A predicate that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PredicateSource {
    /// A predicate, or its complement.
    Register {
        /// Which.
        predicate: Predicate,
        /// Whether its complement is meant.
        negated: bool,
    },
    /// The same for all lanes.
    Constant(bool),
}

/// Registers that the machine sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Special {
    /// `%tid.x`, `.y`, `.z`: the thread in its block, by axis 0, 1, 2.
    Thread(u8),
    /// `%ntid`: the block's shape.
    BlockShape(u8),
    /// `%ctaid`: the block in the grid.
    Block(u8),
    /// `%nctaid`: the grid's shape.
    GridShape(u8),
    /// `%laneid`.
    Lane,
    /// `%warpid`.
    Warp,
    /// `%nwarpid`.
    Warps,
    /// `%smid`.
    Multiprocessor,
    /// `%nsmid`.
    Multiprocessors,
    /// `%gridid`.
    Grid,
    /// `%lanemask_eq`, `_lt`, `_le`, `_gt`, `_ge`.
    LaneMask(LaneMask),
    /// `%clock`.
    Clock,
    /// `%clock64`.
    Clock64,
    /// `%globaltimer`.
    GlobalTimer,
    /// `%dynamic_smem_size`: bytes.
    DynamicSharedBytes,
    /// `%total_smem_size`: bytes.
    TotalSharedBytes,
    /// `%cluster_ctaid`.
    BlockInCluster(u8),
    /// `%cluster_nctaid`.
    ClusterShape(u8),
    /// `%cluster_ctarank`.
    RankInCluster,
    /// `%cluster_nctarank`.
    BlocksInCluster,
    /// `WARP_SZ`.
    WarpSize,
}

/// Which lanes a lane mask names, compared with the lane that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum LaneMask {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// An address: `[base + offset]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Address {
    /// Where it counts from.
    pub base: Base,
    /// Bytes that are added.
    pub offset: i64,
}

/// What an address counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Base {
    /// A register's lane: an address in the instruction's space.
    Register(Register),
    /// The start of the instruction's own space: shared variables, local ones and parameters have been given their
    /// offsets when the kernel was read, and a plain number is an offset too.
    Space,
    /// A variable of the module in global or constant memory, by its index in [`Module::variables`](crate::ir::Module).
    Variable(u32),
}
