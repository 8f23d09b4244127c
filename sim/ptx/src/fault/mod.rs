//! What a kernel did wrong, and where.

mod text;

use crate::ir::Space;

/// A mistake of a kernel, found while it ran.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// Where.
    pub place: Place,
}

/// Where a fault was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The kernel's name.
    pub kernel: String,
    /// The line of the PTX text, from 1.
    pub line: u32,
    /// File and line that it was compiled from, where the PTX says so.
    pub source: Option<(String, u32)>,
    /// The block in the grid: x, y, z.
    pub block: [u32; 3],
    /// The first thread that it happened to: x, y, z in the block.
    pub thread: [u32; 3],
    /// The thread's warp in the block.
    pub warp: u32,
    /// The thread's lane in the warp.
    pub lane: u32,
}

/// What an instruction does with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum Access {
    Read,
    Write,
    Atomic,
}

/// The other side of a race.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Other {
    /// What it did.
    pub access: Access,
    /// Its warp in the block.
    pub warp: u32,
    /// Its lane; `None` where several lanes of the warp did.
    pub lane: Option<u32>,
    /// The line of the PTX text.
    pub line: u32,
}

/// Lanes that wait, in a [`FaultKind::Deadlock`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// Their warp in the block.
    pub warp: u32,
    /// A bit a lane.
    pub lanes: u32,
    /// The line of the PTX text where they wait.
    pub line: u32,
    /// For what.
    pub what: WaitingFor,
}

/// What lanes wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitingFor {
    /// The block's barrier of this number.
    Barrier(u32),
    /// Lanes of their own warp (a bit a lane), to execute the same instruction.
    Lanes(u32),
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// Bytes that belong to no variable or allocation.
    OutOfBounds {
        /// The memory.
        space: Space,
        /// What was done.
        access: Access,
        /// The first byte's address.
        address: u64,
        /// How many bytes.
        bytes: u32,
        /// What lies nearest: its first address and its size in bytes.
        nearest: Option<(u64, u64)>,
    },
    /// An allocation that was freed.
    Freed {
        /// What was done.
        access: Access,
        /// The address.
        address: u64,
        /// The allocation's first address and its size in bytes.
        allocation: (u64, u64),
    },
    /// An address that is no multiple of what the access demands.
    Misaligned {
        /// The memory.
        space: Space,
        /// What was done.
        access: Access,
        /// The address.
        address: u64,
        /// What it should be a multiple of.
        align: u32,
    },
    /// A write to constants or parameters.
    ReadOnly {
        /// The address.
        address: u64,
    },
    /// Bytes are read that nobody has written.
    Uninitialised {
        /// The memory.
        space: Space,
        /// The first such byte.
        address: u64,
    },
    /// Shared bytes are touched that a `cp.async`, for which nobody has waited, is yet to write.
    CopyUnderWay {
        /// What was done.
        access: Access,
        /// The first such byte.
        address: u64,
    },
    /// Two threads touch the same byte of shared memory, one of them writes, and nothing orders them.
    Race {
        /// The byte's address.
        address: u64,
        /// What this thread did.
        access: Access,
        /// Who touched it before.
        other: Other,
    },
    /// Nobody in the block can go on.
    Deadlock {
        /// Where each waits.
        waiting: Vec<Waiting>,
    },
    /// Lanes of one warp came to the same barrier at two instructions.
    DivergentBarrier {
        /// The barrier's number.
        barrier: u32,
        /// The line of the PTX text where the others wait.
        other_line: u32,
    },
    /// A barrier's number or its count of threads is none that it can have.
    Barrier(String),
    /// A member mask names lanes that skip the instruction, or an instruction of the whole warp lacks lanes.
    MissingLanes {
        /// The lanes that execute it.
        lanes: u32,
        /// Those that should and do not.
        missing: u32,
    },
    /// A lane executes an instruction whose member mask does not name it.
    NotAMember {
        /// The mask.
        members: u32,
    },
    /// A shuffle reads a lane that does not take part.
    InactiveSource {
        /// That lane.
        source_lane: u32,
    },
    /// An mbarrier is used wrongly.
    Mbarrier {
        /// Its address in shared memory.
        address: u64,
        /// How.
        problem: &'static str,
    },
    /// `brx.idx` with a number that its list does not have.
    BranchIndex {
        /// The number.
        index: u64,
        /// The list's length.
        targets: usize,
    },
    /// The kernel executed `trap`: an assertion of its own failed.
    Trap,
    /// A warp executed more instructions than [`Options::max_steps`](crate::Options) allows.
    Endless {
        /// The limit.
        steps: u64,
    },
    /// The interpreter does not model this form of an instruction.
    Unsupported(String),
}

/// A fault before its place is known: which lane, and what.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) lane: u32,
    pub(crate) kind: FaultKind,
}

impl Problem {
    /// Boxed, since results that carry it are returned by every access.
    pub(crate) fn at(lane: usize, kind: FaultKind) -> Box<Problem> {
        Box::new(Problem { lane: lane as u32, kind })
    }
}
