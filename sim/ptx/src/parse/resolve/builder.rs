//! A kernel while it is built.

use super::super::error::{Problem, Result};
use super::super::syntax::{Declaration, Function, Instruction as Written, Name, Registers, Statement};
use super::Names;
use super::form::{self, Form};
use super::layout::{self, Shared};
use super::scope::{Label, Scope, Symbol, twice};
use crate::ir::{
    Guard, Instruction, MAX_INSTRUCTIONS, Op, Param, Predicate, Register, SourceLine, Space, Type,
};

/// What a kernel needs of each kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub registers: u32,
    pub predicates: u32,
    pub local_bytes: u64,
}

/// A kernel while it is built.
pub(super) struct Builder<'n, 't> {
    pub names: &'n Names<'n, 't>,
    pub shared: &'n Shared,
    pub scopes: Vec<Scope<'t>>,
    /// The functions that are within each other now.
    pub calls: Vec<&'t str>,
    /// Where `ret` goes, for a function that was called.
    pub returns_to: Option<Label>,
    pub counts: Counts,
    pub source: Option<SourceLine>,
    instructions: Vec<Instruction>,
    /// Positions of labels.
    labels: Vec<Option<usize>>,
}

impl<'n, 't> Builder<'n, 't> {
    pub(super) fn new(names: &'n Names<'n, 't>, shared: &'n Shared) -> Builder<'n, 't> {
        Builder {
            names,
            shared,
            scopes: Vec::new(),
            calls: Vec::new(),
            returns_to: None,
            counts: Counts::default(),
            source: None,
            instructions: Vec::new(),
            labels: Vec::new(),
        }
    }

    /// All of a kernel.
    pub(super) fn kernel(&mut self, function: &'n Function<'t>, params: &[Param]) -> Result<()> {
        let mut scope = Scope { function: true, ..Scope::default() };
        for (declared, param) in function.params.iter().zip(params) {
            let place = Symbol::Place { space: Space::Param, offset: param.offset, bytes: param.bytes };
            scope.declare(declared.name, place)?;
        }
        self.calls.push(function.name.text);
        self.body(function, scope)
    }

    /// The statements of a function, whose parameters are declared in `scope`.
    pub(super) fn body(&mut self, function: &'n Function<'t>, scope: Scope<'t>) -> Result<()> {
        let body = function.body.as_deref().unwrap_or_default();
        let outer = self.scopes.len();
        self.scopes.push(scope);
        self.labels_of(body)?;
        for (at, statement) in body.iter().enumerate() {
            match statement {
                Statement::Open => {
                    self.scopes.push(Scope::default());
                    self.labels_of(body.get(at + 1..).unwrap_or_default())?;
                }
                Statement::Close => {
                    self.scopes.pop();
                }
                Statement::Label(name) => {
                    if let Some(&label) = self.scopes.last().and_then(|scope| scope.labels.get(name.text)) {
                        self.put(label);
                    }
                }
                Statement::Targets { .. } => {}
                Statement::Source(source) => self.source = *source,
                Statement::Registers(registers) => self.registers(*registers)?,
                Statement::Variable(declared) => self.variable(declared)?,
                Statement::Instruction(instruction) => self.instruction(instruction)?,
            }
        }
        self.scopes.truncate(outer);
        Ok(())
    }

    /// Declares the labels of the scope that `statements` begin with, since branches go forward too.
    fn labels_of(&mut self, statements: &'n [Statement<'t>]) -> Result<()> {
        let mut tables = Vec::new();
        let mut depth = 0u32;
        for statement in statements {
            match statement {
                Statement::Open => depth += 1,
                Statement::Close if depth == 0 => break,
                Statement::Close => depth -= 1,
                Statement::Label(name) if depth == 0 => {
                    let label = self.label();
                    let scope = self.scopes.last_mut();
                    if scope.and_then(|scope| scope.labels.insert(name.text, label)).is_some() {
                        return Err(twice(*name));
                    }
                }
                Statement::Targets { name, labels } if depth == 0 => tables.push((*name, labels)),
                _ => {}
            }
        }
        for (name, labels) in tables {
            let targets =
                labels.iter().map(|label| self.find_label(*label)).collect::<Result<Box<[Label]>>>()?;
            let scope = self.scopes.last_mut();
            if scope.and_then(|scope| scope.tables.insert(name.text, targets)).is_some() {
                return Err(twice(name));
            }
        }
        Ok(())
    }

    fn registers(&mut self, registers: Registers<'t>) -> Result<()> {
        if registers.range.is_none() {
            let symbol = self.new_symbol(registers)?;
            return match self.scopes.last_mut() {
                Some(scope) => scope.declare(registers.name, symbol),
                None => Ok(()),
            };
        }
        if let Some(scope) = self.scopes.last_mut() {
            if scope.ranges.iter().any(|range| range.name.text == registers.name.text) {
                return Err(twice(registers.name));
            }
            scope.ranges.push(registers);
        }
        Ok(())
    }

    /// A new register of a declaration.
    pub(super) fn new_symbol(&mut self, registers: Registers<'t>) -> Result<Symbol> {
        Ok(match registers.ty {
            Type::Predicate => {
                self.counts.predicates += 1;
                Symbol::Predicate(Predicate(self.counts.predicates - 1))
            }
            Type::B128 => {
                let expected = "registers of at most 64 bits";
                return Err(Problem::quoted(registers.name.at, expected, registers.name.text));
            }
            ty => Symbol::Register { register: self.new_register(), bits: ty.bits() },
        })
    }

    pub(super) fn new_register(&mut self) -> Register {
        self.counts.registers += 1;
        Register(self.counts.registers - 1)
    }

    fn variable(&mut self, declared: &Declaration<'t>) -> Result<()> {
        let bytes = declared.bytes;
        if bytes == 0 {
            return Err(Problem::quoted(declared.name.at, "a size", declared.name.text));
        }
        let symbol = match declared.space {
            Space::Shared => {
                let offset = self.shared.offsets.get(&declared.name.at).copied().unwrap_or(0);
                Symbol::Place { space: Space::Shared, offset, bytes }
            }
            // What is passed to a function lies in the thread's own memory too.
            _ => {
                let offset = layout::place(declared, &mut self.counts.local_bytes)?;
                Symbol::Place { space: Space::Local, offset, bytes }
            }
        };
        match self.scopes.last_mut() {
            Some(scope) => scope.declare(declared.name, symbol),
            None => Ok(()),
        }
    }

    fn instruction(&mut self, written: &'n Written<'t>) -> Result<()> {
        let guard = match written.guard {
            None => None,
            Some((name, negated)) => match self.find(name)? {
                Some(Symbol::Predicate(predicate)) => Some(Guard { predicate, negated }),
                _ => return Err(Problem::quoted(name.at, "a predicate", name.text)),
            },
        };
        let form = Form::new(self, written, guard);
        match form::reader(written.mnemonic.text) {
            Some(read) => read(form),
            None => Err(form.unknown()),
        }
    }

    /// What a name means in the scopes that are open.
    pub(super) fn find(&mut self, name: Name<'t>) -> Result<Option<Symbol>> {
        for index in (0..self.scopes.len()).rev() {
            let Some(scope) = self.scopes.get(index) else { break };
            if let Some(&symbol) = scope.symbols.get(name.text) {
                return Ok(Some(symbol));
            }
            if let Some(range) = scope.range_of(name.text) {
                let symbol = self.new_symbol(range)?;
                if let Some(scope) = self.scopes.get_mut(index) {
                    scope.symbols.insert(name.text, symbol);
                }
                return Ok(Some(symbol));
            }
            if scope.function {
                break;
            }
        }
        Ok(None)
    }

    /// A label in the scopes that are open.
    pub(super) fn find_label(&self, name: Name<'t>) -> Result<Label> {
        self.within_function()
            .find_map(|scope| scope.labels.get(name.text).copied())
            .ok_or_else(|| Problem::quoted(name.at, "a label of this function", name.text))
    }

    /// A list of labels in the scopes that are open.
    pub(super) fn find_table(&self, name: Name<'t>) -> Result<Box<[Label]>> {
        self.within_function()
            .find_map(|scope| scope.tables.get(name.text).cloned())
            .ok_or_else(|| Problem::quoted(name.at, "a list of `.branchtargets`", name.text))
    }

    fn within_function(&self) -> impl Iterator<Item = &Scope<'t>> {
        let start = self.scopes.iter().rposition(|scope| scope.function).unwrap_or(0);
        self.scopes.get(start..).unwrap_or_default().iter().rev()
    }

    /// A new label.
    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Puts a label before the next instruction.
    pub(super) fn put(&mut self, label: Label) {
        let position = self.instructions.len();
        if let Some(place) = self.labels.get_mut(label.0) {
            *place = Some(position);
        }
    }

    /// Adds an instruction; targets of branches are numbers of labels until the end.
    pub(super) fn emit(&mut self, op: Op, guard: Option<Guard>, line: u32, at: usize) -> Result<()> {
        // Functions that call functions may grow without measure.
        if self.instructions.len() >= MAX_INSTRUCTIONS {
            let expected = format!("at most {MAX_INSTRUCTIONS} instructions a kernel");
            return Err(Problem::new(at, expected, "more"));
        }
        self.instructions.push(Instruction { guard, op, line, source: self.source });
        Ok(())
    }

    /// The instructions, with the positions that branches go to.
    pub(super) fn finish(mut self, at: usize) -> Result<(Vec<Instruction>, Counts)> {
        // A kernel ends behind its last instruction too, and labels may stand there.
        let ended = matches!(self.instructions.last(), Some(Instruction { op: Op::Exit, guard: None, .. }));
        if !ended || self.labels.iter().flatten().any(|&position| position == self.instructions.len()) {
            let line = self.instructions.last().map_or(1, |last| last.line);
            self.emit(Op::Exit, None, line, at)?;
        }
        let position =
            |label: &mut usize| -> Result<()> {
                *label =
                    self.labels.get(*label).copied().flatten().ok_or_else(|| {
                        Problem::new(at, "labels that stand somewhere", "one that does not")
                    })?;
                Ok(())
            };
        for instruction in &mut self.instructions {
            match &mut instruction.op {
                Op::Branch { target, .. } => position(target)?,
                Op::BranchIndexed { targets, .. } => targets.iter_mut().try_for_each(position)?,
                _ => {}
            }
        }
        Ok((self.instructions, self.counts))
    }
}
