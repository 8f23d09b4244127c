//! Where parameters and shared variables lie.

use super::super::error::{Problem, Result};
use super::super::syntax::{Declaration, Function, Operand, OperandKind, Statement};
use super::Names;
use crate::ir::{Param, Space, Variable};
use std::collections::{HashMap, HashSet};

/// The next place of `bytes` bytes, behind `end`, which moves behind it.
pub(super) fn place(declared: &Declaration<'_>, end: &mut u64) -> Result<u64> {
    let offset = end.checked_next_multiple_of(declared.align);
    let behind =
        offset.and_then(|offset| offset.checked_add(declared.bytes)).filter(|&behind| behind < 1 << 40);
    match (offset, behind) {
        (Some(offset), Some(behind)) => {
            *end = behind;
            Ok(offset)
        }
        _ => Err(Problem::quoted(declared.name.at, "less than 2^40 bytes in all", declared.name.text)),
    }
}

/// A kernel's parameters, one behind another, and the bytes of all.
pub(super) fn params(declared: &[Declaration<'_>]) -> Result<(Vec<Param>, u64)> {
    let (mut params, mut end) = (Vec::new(), 0);
    for param in declared {
        let offset = place(param, &mut end)?;
        let (bytes, align) = (param.bytes, param.align);
        params.push(Param { name: param.name.text.to_owned(), offset, bytes, align });
    }
    Ok((params, end))
}

/// A kernel's shared memory.
pub(super) struct Shared {
    pub variables: Vec<Variable>,
    /// Static bytes: where dynamic memory begins.
    pub bytes: u64,
    /// Places by the place of the name in the text, which tells apart variables of the same name.
    pub offsets: HashMap<usize, u64>,
}

/// The shared variables that a kernel and the functions it calls declare, and those of the module that they name.
pub(super) fn shared<'n>(kernel: &'n Function<'_>, names: &Names<'n, '_>) -> Result<Shared> {
    let mut found: Vec<&Declaration<'_>> = Vec::new();
    let (mut seen, mut seen_functions) = (HashSet::new(), HashSet::from([kernel.name.text]));
    let mut functions = vec![kernel];
    while let Some(function) = functions.pop() {
        for statement in function.body.iter().flatten() {
            match statement {
                Statement::Variable(declared) if declared.space == Space::Shared => {
                    if declared.bytes == 0 {
                        return Err(Problem::quoted(
                            declared.name.at,
                            "a size, or `.extern`",
                            declared.name.text,
                        ));
                    }
                    found.push(declared);
                }
                Statement::Instruction(instruction) => each_name(&instruction.operands, &mut |name| {
                    if let Some(&(_, declared)) = names.variables.get(name)
                        && declared.space == Space::Shared
                        && seen.insert(name)
                    {
                        found.push(declared);
                    }
                    if let Some(&called) = names.functions.get(name)
                        && seen_functions.insert(called.name.text)
                    {
                        functions.push(called);
                    }
                }),
                _ => {}
            }
        }
    }
    let mut shared = Shared { variables: Vec::new(), bytes: 0, offsets: HashMap::new() };
    let dynamic = |declared: &Declaration<'_>| declared.external && declared.bytes == 0;
    for declared in found.iter().filter(|declared| !dynamic(declared)) {
        let offset = place(declared, &mut shared.bytes)?;
        shared.add(declared, offset);
    }
    // Dynamic memory begins where the strictest of its variables may.
    for declared in found.iter().filter(|declared| dynamic(declared)) {
        place(declared, &mut shared.bytes)?;
    }
    for declared in found.iter().filter(|declared| dynamic(declared)) {
        let offset = shared.bytes;
        shared.add(declared, offset);
    }
    Ok(shared)
}

impl Shared {
    fn add(&mut self, declared: &Declaration<'_>, offset: u64) {
        self.offsets.insert(declared.name.at, offset);
        self.variables.push(Variable {
            name: declared.name.text.to_owned(),
            space: Space::Shared,
            bytes: declared.bytes,
            align: declared.align,
            offset,
            initial: Vec::new(),
            relocations: Vec::new(),
        });
    }
}

fn each_name<'t>(operands: &[Operand<'t>], visit: &mut impl FnMut(&'t str)) {
    for operand in operands {
        match &operand.kind {
            OperandKind::Name { name, .. } | OperandKind::Address { name: Some(name), .. } => visit(name),
            OperandKind::Vector(inner) | OperandKind::List(inner) => each_name(inner, visit),
            OperandKind::Pair(a, b) => {
                each_name(std::slice::from_ref(a), visit);
                each_name(std::slice::from_ref(b), visit);
            }
            _ => {}
        }
    }
}
