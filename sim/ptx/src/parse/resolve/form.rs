//! The form of an instruction while it is read: modifiers from left to right.

use super::super::error::{Problem, Result};
use super::super::syntax::Instruction as Written;
use super::super::types;
use super::builder::Builder;
use super::{
    access, arithmetic, asynchronous, atomic, bits, call, compare, control, convert, integer, matrix, moves,
    warp,
};
use crate::ir::{FloatMode, Guard, Op, Rounding, Type};

/// An instruction while its modifiers and operands are taken.
pub(super) struct Form<'b, 'n, 't> {
    builder: &'b mut Builder<'n, 't>,
    pub written: &'n Written<'t>,
    pub guard: Option<Guard>,
    next_modifier: usize,
    pub(super) next_operand: usize,
    /// What could have stood where the next modifier stands.
    tried: Vec<&'static str>,
}

/// Reads an instruction and adds what it does.
pub(super) type Reader = fn(Form<'_, '_, '_>) -> Result<()>;

/// What reads the instructions of a name, if they are known.
pub(super) fn reader(mnemonic: &str) -> Option<Reader> {
    Some(match mnemonic {
        "add" | "sub" | "addc" | "subc" | "mul" | "mad" | "madc" | "fma" | "div" | "min" | "max" | "abs"
        | "neg" | "copysign" | "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh" => {
            arithmetic::read
        }
        "rem" | "mul24" | "mad24" | "sad" | "dp4a" | "dp2a" | "popc" | "clz" | "bfind" | "brev" | "bfe"
        | "bfi" | "szext" | "bmsk" => integer::read,
        "and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" | "shf" | "lop3" | "prmt" => bits::read,
        "setp" | "set" | "selp" | "slct" | "testp" => compare::read,
        "mov" | "cvta" | "isspacep" => moves::read,
        "cvt" => convert::read,
        "ld" | "ldu" | "st" | "prefetch" | "prefetchu" | "applypriority" | "discard" | "createpolicy" => {
            access::read
        }
        "atom" | "red" => atomic::read,
        "cp" | "mbarrier" => asynchronous::read,
        "ldmatrix" | "stmatrix" | "movmatrix" | "mma" => matrix::read,
        "shfl" | "vote" | "match" | "redux" | "activemask" | "elect" => warp::read,
        "call" => call::call,
        "bra" | "brx" | "ret" | "exit" | "trap" | "bar" | "barrier" | "membar" | "fence" | "brkpt"
        | "nanosleep" | "pmevent" | "setmaxnreg" | "griddepcontrol" => control::read,
        _ => return None,
    })
}

impl<'b, 'n, 't> Form<'b, 'n, 't> {
    pub(super) fn new(
        builder: &'b mut Builder<'n, 't>,
        written: &'n Written<'t>,
        guard: Option<Guard>,
    ) -> Form<'b, 'n, 't> {
        Form { builder, written, guard, next_modifier: 0, next_operand: 0, tried: Vec::new() }
    }

    pub(super) fn builder(&mut self) -> &mut Builder<'n, 't> {
        self.builder
    }

    /// Adds what it does.
    pub(super) fn emit(&mut self, op: Op) -> Result<()> {
        let (guard, line, at) = (self.guard, self.written.line, self.written.mnemonic.at);
        self.builder.emit(op, guard, line, at)
    }

    /// Adds what it does, after everything it says has been read.
    pub(super) fn done(mut self, op: Op) -> Result<()> {
        self.no_more_modifiers()?;
        self.no_more_operands()?;
        self.emit(op)
    }

    /// The error that the whole instruction is not known.
    pub(super) fn unknown(&self) -> Problem {
        let mut name = self.written.mnemonic.text.to_owned();
        for modifier in &self.written.modifiers {
            name.push('.');
            name.push_str(modifier.text);
        }
        Problem::quoted(self.written.mnemonic.at, super::KNOWN, name)
    }

    /// Whether the next modifier was this one, which has been taken then.
    pub(super) fn flag(&mut self, name: &'static str) -> bool {
        self.choose(&[(name, ())]).is_some()
    }

    /// The meaning of the next modifier, if it is one of these; it has been taken then.
    pub(super) fn choose<T: Copy>(&mut self, meanings: &[(&'static str, T)]) -> Option<T> {
        let next = self.written.modifiers.get(self.next_modifier).map(|name| name.text);
        match meanings.iter().find(|(name, _)| next == Some(name)) {
            Some(&(_, meaning)) => {
                self.taken();
                Some(meaning)
            }
            None => {
                self.tried.extend(meanings.iter().map(|(name, _)| name));
                None
            }
        }
    }

    /// The same where one of them has to be there.
    pub(super) fn require<T: Copy>(&mut self, meanings: &[(&'static str, T)]) -> Result<T> {
        self.choose(meanings).ok_or_else(|| self.unexpected_modifier(""))
    }

    /// This modifier has to be there.
    pub(super) fn must(&mut self, name: &'static str) -> Result<()> {
        self.require(&[(name, ())])
    }

    /// A type, which must be one of these.
    pub(super) fn ty(&mut self, allowed: &[Type]) -> Result<Type> {
        self.ty_if(allowed).ok_or_else(|| {
            let names: Vec<String> = allowed.iter().map(|&ty| format!(".{}", types::name(ty))).collect();
            self.unexpected_modifier(&names.join(", "))
        })
    }

    /// A type, if the next modifier is one of these.
    pub(super) fn ty_if(&mut self, allowed: &[Type]) -> Option<Type> {
        let next = self.written.modifiers.get(self.next_modifier)?;
        let ty = types::named(next.text).filter(|ty| allowed.contains(ty))?;
        self.taken();
        Some(ty)
    }

    /// The next modifier, taken if `accept` says so.
    pub(super) fn modifier_if(&mut self, accept: impl Fn(&str) -> bool) -> Option<&'t str> {
        let next = self.written.modifiers.get(self.next_modifier)?;
        accept(next.text).then(|| {
            self.taken();
            next.text
        })
    }

    /// Modifiers of floating-point arithmetic, of which `allowed` lists those that the instruction has.
    pub(super) fn mode(&mut self, allowed: &'static [&'static str]) -> FloatMode {
        let mut mode = FloatMode::PLAIN;
        for &name in allowed {
            if !self.flag(name) {
                continue;
            }
            match name {
                "rn" | "rni" => mode.rounding = Some(Rounding::NearestEven),
                "rna" => mode.rounding = Some(Rounding::NearestAway),
                "rz" | "rzi" => mode.rounding = Some(Rounding::Zero),
                "rm" | "rmi" => mode.rounding = Some(Rounding::Down),
                "rp" | "rpi" => mode.rounding = Some(Rounding::Up),
                "ftz" => mode.flush_to_zero = true,
                "sat" | "satfinite" => mode.saturate = true,
                "relu" => mode.relu = true,
                "NaN" => mode.nan = true,
                _ => mode.approximate = true,
            }
        }
        mode
    }

    pub(super) fn no_more_modifiers(&mut self) -> Result<()> {
        if self.next_modifier < self.written.modifiers.len() {
            return Err(self.unexpected_modifier("no further modifier"));
        }
        Ok(())
    }

    /// The error that the last modifier taken does not go with the others.
    pub(super) fn conflict(&self, expected: impl Into<String>) -> Problem {
        let index = self.next_modifier.saturating_sub(1);
        match self.written.modifiers.get(index) {
            Some(name) => Problem::quoted(name.at, expected, format_args!(".{}", name.text)),
            None => Problem::quoted(self.written.mnemonic.at, expected, self.written.mnemonic.text),
        }
    }

    fn taken(&mut self) {
        self.next_modifier += 1;
        self.tried.clear();
    }

    /// The error about the next modifier, which is none of those tried, and not `or`.
    pub(super) fn unexpected_modifier(&mut self, or: &str) -> Problem {
        let mut expected: Vec<String> = self.tried.iter().map(|name| format!(".{name}")).collect();
        expected.dedup();
        if !or.is_empty() {
            expected.push(or.to_owned());
        }
        let expected = format!("{} in `{}`", expected.join(", "), self.written.mnemonic.text);
        match self.written.modifiers.get(self.next_modifier) {
            Some(name) => Problem::quoted(name.at, expected, format_args!(".{}", name.text)),
            None => Problem::new(self.written.mnemonic.at, expected, "no modifier"),
        }
    }
}
