//! Looks names up: what a text says becomes a module that can be executed.

mod access;
mod arithmetic;
mod asynchronous;
mod atomic;
mod bits;
mod builder;
mod call;
mod compare;
mod control;
mod convert;
mod form;
mod integer;
mod layout;
mod matrix;
mod moves;
mod operands;
mod place;
mod scope;
mod share;
mod special;
mod warp;

use super::declaration;
use super::error::{Problem, Result};
use super::syntax::{Declaration, Function, Initial, Text};
use crate::ir::{Kernel, Module, Space, Variable};
use builder::Builder;
use std::collections::HashMap;
use std::sync::Arc;

/// What an unknown instruction is not.
pub(super) const KNOWN: &str = "an instruction that this interpreter executes";

/// Whether there are instructions of this name.
pub(super) fn is_known(mnemonic: &str) -> bool {
    form::reader(mnemonic).is_some()
}

/// The module that `text` describes; `share`: whether registers may be shared.
pub(super) fn module(text: &Text<'_>, share: bool) -> Result<Module> {
    let names = Names::of(text)?;
    let mut variables = Vec::new();
    for declared in text.variables.iter().filter(|declared| declared.space != Space::Shared) {
        variables.push(variable(declared, &names)?);
    }
    let mut kernels = Vec::new();
    for function in text.functions.iter().filter(|function| function.entry) {
        kernels.push(Arc::new(kernel(function, &names, share)?));
    }
    Ok(Module {
        version: text.version,
        target: text.target.to_owned(),
        variables,
        kernels,
        files: text.files.clone(),
    })
}

/// The names of a module.
pub(super) struct Names<'n, 't> {
    /// Variables in global and constant memory, with their indices, and shared ones, whose index means nothing.
    variables: HashMap<&'t str, (u32, &'n Declaration<'t>)>,
    functions: HashMap<&'t str, &'n Function<'t>>,
}

impl<'n, 't> Names<'n, 't> {
    fn of(text: &'n Text<'t>) -> Result<Names<'n, 't>> {
        let mut names = Names { variables: HashMap::new(), functions: HashMap::new() };
        let mut index = 0;
        for declared in &text.variables {
            if names.variables.insert(declared.name.text, (index, declared)).is_some() {
                return Err(scope::twice(declared.name));
            }
            index += u32::from(declared.space != Space::Shared);
        }
        for function in &text.functions {
            // A function may be declared before it is defined.
            match names.functions.get(function.name.text) {
                Some(earlier) if earlier.body.is_some() && function.body.is_some() => {
                    return Err(scope::twice(function.name));
                }
                Some(earlier) if earlier.body.is_some() => {}
                _ => {
                    names.functions.insert(function.name.text, function);
                }
            }
            if function.entry && function.body.is_none() {
                return Err(Problem::quoted(function.name.at, "a kernel with a body", function.name.text));
            }
        }
        Ok(names)
    }
}

fn variable(declared: &Declaration<'_>, names: &Names<'_, '_>) -> Result<Variable> {
    let (mut initial, mut relocations) = (Vec::new(), Vec::new());
    for value in &declared.initial {
        match *value {
            Initial::Number { number, at } => {
                declaration::append(number, at, declared.element, &mut initial)?
            }
            Initial::Address { name, addend, generic } => {
                let Some(&(index, target)) = names.variables.get(name.text) else {
                    return Err(Problem::quoted(name.at, "a variable of the module", name.text));
                };
                if declared.element.bits() != 64 {
                    return Err(Problem::quoted(name.at, "addresses in elements of 64 bits", name.text));
                }
                // An address in global memory is the same as a generic one; constant memory has numbers of its own.
                if target.space != Space::Global || (generic && target.space == Space::Const) {
                    return Err(Problem::quoted(name.at, "the address of a global variable", name.text));
                }
                relocations.push((initial.len() as u64, index, addend));
                initial.extend([0; 8]);
            }
        }
    }
    Ok(Variable {
        name: declared.name.text.to_owned(),
        space: declared.space,
        bytes: declared.bytes,
        align: declared.align,
        offset: 0,
        initial,
        relocations,
    })
}

fn kernel(function: &Function<'_>, names: &Names<'_, '_>, share: bool) -> Result<Kernel> {
    let (params, param_bytes) = layout::params(&function.params)?;
    let shared = layout::shared(function, names)?;
    let mut builder = Builder::new(names, &shared);
    builder.kernel(function, &params)?;
    let (mut instructions, counts) = builder.finish(function.name.at)?;
    let registers =
        if share { share::registers(&mut instructions, counts.registers) } else { counts.registers };
    Ok(Kernel {
        name: function.name.text.to_owned(),
        params,
        param_bytes,
        registers,
        predicates: counts.predicates,
        shared: shared.variables,
        shared_bytes: shared.bytes,
        local_bytes: counts.local_bytes,
        max_threads: function.max_threads,
        required_threads: function.required_threads,
        instructions,
    })
}
