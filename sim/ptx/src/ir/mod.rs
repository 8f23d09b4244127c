//! A module as it is executed: kernels, their memory, their instructions with all names resolved.

mod check;
mod op;
mod operand;
mod operation;
mod predicates;
mod registers;
mod types;

pub(crate) use check::MAX_INSTRUCTIONS;
pub use op::{MatrixMultiply, Mbarrier, Op};
pub use operand::{Address, Base, LaneMask, Predicate, PredicateSource, Register, Source, Special};
pub use operation::{
    AtomicOp, BarrierKind, BinaryOp, BoolOp, CarryOp, Comparison, FloatTest, Order, PermuteMode, Scope,
    ShuffleMode, TernaryOp, UnaryOp, VoteMode,
};
pub(crate) use registers::Role;
pub use types::{FloatMode, Rounding, Space, Type};

use std::sync::Arc;

/// What a PTX text says.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Module {
    /// `.version`: major, minor.
    pub version: (u32, u32),
    /// `.target`'s architecture: `sm_80`.
    pub target: String,
    /// Variables in global and constant memory.
    pub variables: Vec<Variable>,
    /// Its entry points.
    pub kernels: Vec<Arc<Kernel>>,
    /// The source files that `.loc` numbers, by their numbers.
    pub files: Vec<(u32, String)>,
}

/// A variable with a place in memory.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Global or constant for a module's variables, shared or local for a kernel's.
    pub space: Space,
    /// Bytes. 0 for `extern .shared`, whose size a launch gives.
    pub bytes: u64,
    /// Bytes that its address is a multiple of.
    pub align: u64,
    /// Its place in its space, for a kernel's variables; the machine places a module's.
    pub offset: u64,
    /// Its first bytes; the rest are zero. Shared and local variables have none, and are uninitialised.
    pub initial: Vec<u8>,
    /// Addresses of other variables in it: (offset, index in [`Module::variables`], addend).
    pub relocations: Vec<(u64, u32, i64)>,
}

/// An entry point.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Its parameters, in order.
    pub params: Vec<Param>,
    /// Bytes of all parameters.
    pub param_bytes: u64,
    /// How many registers a warp needs.
    pub registers: u32,
    /// How many predicates.
    pub predicates: u32,
    /// Static shared variables, and `extern` ones, which all begin where the static ones end.
    pub shared: Vec<Variable>,
    /// Bytes of the static ones: where dynamic shared memory begins.
    pub shared_bytes: u64,
    /// Bytes of local memory a thread.
    pub local_bytes: u64,
    /// `.maxntid`: most threads by axis.
    pub max_threads: Option<[u32; 3]>,
    /// `.reqntid`.
    pub required_threads: Option<[u32; 3]>,
    /// What it does.
    pub instructions: Vec<Instruction>,
}

impl Kernel {
    /// The line of an instruction in the PTX text; 0 behind the last one.
    pub(crate) fn line(&self, pc: usize) -> u32 {
        self.instructions.get(pc).map_or(0, |instruction| instruction.line)
    }
}

/// A kernel's parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its place among the parameters' bytes.
    pub offset: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Bytes that its offset is a multiple of.
    pub align: u64,
}

/// One instruction, with its guard and where it stands.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Instruction {
    /// `@p`, `@!p`: the lanes that execute it.
    pub guard: Option<Guard>,
    /// What they do.
    pub op: Op,
    /// Its line in the PTX text, from 1.
    pub line: u32,
    /// The line of the source that it was compiled from, where the compiler said so.
    pub source: Option<SourceLine>,
}

/// Which lanes execute an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Guard {
    /// The predicate that is asked.
    pub predicate: Predicate,
    /// Whether lanes go where it does not hold.
    pub negated: bool,
}

/// A line of a source file, as `.loc` tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SourceLine {
    /// The file's number in [`Module::files`].
    pub file: u32,
    /// From 1.
    pub line: u32,
}
