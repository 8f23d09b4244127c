//! What a text says before its names are looked up.

use super::number::Number;
use crate::ir::{SourceLine, Space, Type};

/// A whole text.
#[derive(Debug, Default)]
pub(super) struct Text<'t> {
    pub version: (u32, u32),
    pub target: &'t str,
    pub variables: Vec<Declaration<'t>>,
    pub functions: Vec<Function<'t>>,
    pub files: Vec<(u32, String)>,
}

/// A name and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name<'t> {
    pub text: &'t str,
    pub at: usize,
}

/// A variable or a parameter.
#[derive(Clone, Debug)]
pub(super) struct Declaration<'t> {
    pub name: Name<'t>,
    pub space: Space,
    /// Defined elsewhere: for shared memory, by the launch.
    pub external: bool,
    pub element: Type,
    pub align: u64,
    pub bytes: u64,
    pub initial: Vec<Initial<'t>>,
}

/// One element of an initial value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Initial<'t> {
    Number {
        number: Number,
        at: usize,
    },
    /// The address of a variable; `generic`: as a generic address.
    Address {
        name: Name<'t>,
        addend: i64,
        generic: bool,
    },
}

/// `.entry` or `.func`.
#[derive(Debug)]
pub(super) struct Function<'t> {
    pub name: Name<'t>,
    pub entry: bool,
    pub results: Vec<Declaration<'t>>,
    pub params: Vec<Declaration<'t>>,
    pub max_threads: Option<[u32; 3]>,
    pub required_threads: Option<[u32; 3]>,
    /// `None`: only declared.
    pub body: Option<Vec<Statement<'t>>>,
}

/// What stands in a body.
#[derive(Debug)]
pub(super) enum Statement<'t> {
    Label(Name<'t>),
    /// `{`
    Open,
    /// `}`
    Close,
    Registers(Registers<'t>),
    Variable(Declaration<'t>),
    /// `name: .branchtargets a, b;`
    Targets {
        name: Name<'t>,
        labels: Vec<Name<'t>>,
    },
    /// `.loc`
    Source(Option<SourceLine>),
    Instruction(Instruction<'t>),
}

/// `.reg`: one register, or a range of them: `%r<5>` are `%r0` to `%r4`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registers<'t> {
    pub name: Name<'t>,
    pub ty: Type,
    pub range: Option<u32>,
}

/// An instruction.
#[derive(Debug)]
pub(super) struct Instruction<'t> {
    pub guard: Option<(Name<'t>, bool)>,
    pub line: u32,
    pub mnemonic: Name<'t>,
    pub modifiers: Vec<Name<'t>>,
    pub operands: Vec<Operand<'t>>,
    /// Where its `;` stands.
    pub end: usize,
}

/// An operand, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Operand<'t> {
    pub at: usize,
    pub kind: OperandKind<'t>,
}

#[derive(Clone, Debug)]
pub(super) enum OperandKind<'t> {
    /// `%r1`, `%tid.x`, `variable+4`, `!%p1`.
    Name {
        name: &'t str,
        part: Option<&'t str>,
        addend: i64,
        negated: bool,
    },
    Number(Number),
    /// `_`
    Sink,
    /// `{a, b}`
    Vector(Vec<Operand<'t>>),
    /// `[base+offset]`; the base is a name or a number.
    Address {
        name: Option<&'t str>,
        offset: i64,
    },
    /// `p|q`
    Pair(Box<Operand<'t>>, Box<Operand<'t>>),
    /// `(a, b)`: what is passed to a function.
    List(Vec<Operand<'t>>),
}
