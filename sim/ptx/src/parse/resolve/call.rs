//! `call`: the function is put in its place.

use super::super::error::{Problem, Result};
use super::super::syntax::{Declaration, Name, Operand, OperandKind};
use super::form::Form;
use super::scope::{Scope, Symbol};
use crate::ir::{Guard, Op, Space};

/// `call.uni (result), function, (arguments);`
pub(super) fn call<'t>(mut form: Form<'_, '_, 't>) -> Result<()> {
    form.flag("uni");
    form.no_more_modifiers()?;
    let operands = &form.written.operands;
    let (results, rest) = match operands.split_first() {
        Some((Operand { kind: OperandKind::List(results), .. }, rest)) => (results.as_slice(), rest),
        _ => (&[] as &[Operand<'t>], operands.as_slice()),
    };
    let (called, arguments) = match rest {
        [called] => (called, &[] as &[Operand<'t>]),
        [called, Operand { kind: OperandKind::List(arguments), .. }] => (called, arguments.as_slice()),
        [called, ..] => (called, &[] as &[Operand<'t>]),
        [] => return Err(Problem::new(form.written.end, "a function's name", "`;`")),
    };
    let OperandKind::Name { name, part: None, addend: 0, negated: false } = called.kind else {
        return Err(Problem::new(called.at, "a function's name", "something else"));
    };
    let builder = form.builder();
    if name.starts_with('%') {
        let expected = "a function by its name: calls through pointers are not supported";
        return Err(Problem::quoted(called.at, expected, name));
    }
    // A failed assertion ends the kernel.
    if name == "__assertfail" {
        return form.emit(Op::Trap);
    }
    let Some(&function) = builder.names.functions.get(name).filter(|function| function.body.is_some()) else {
        let expected = "a function that the module defines (printf, malloc and libraries are not supported)";
        return Err(Problem::quoted(called.at, expected, name));
    };
    if builder.calls.contains(&name) || function.entry {
        let expected = "a function that does not call itself: recursion is not supported";
        return Err(Problem::quoted(called.at, expected, name));
    }
    let mut scope = Scope { function: true, ..Scope::default() };
    bind(&mut form, &mut scope, &function.results, results, called.at)?;
    bind(&mut form, &mut scope, &function.params, arguments, called.at)?;

    let (guard, line, at) = (form.guard, form.written.line, called.at);
    let builder = form.builder();
    let end = builder.label();
    if let Some(Guard { predicate, negated }) = guard {
        let skip = Some(Guard { predicate, negated: !negated });
        builder.emit(Op::Branch { target: end.0, uniform: false }, skip, line, at)?;
    }
    let outer = (builder.returns_to.replace(end), builder.source);
    builder.calls.push(function.name.text);
    builder.body(function, scope)?;
    builder.calls.pop();
    (builder.returns_to, builder.source) = outer;
    builder.put(end);
    Ok(())
}

/// Gives a function's parameters the places of what is passed.
fn bind<'t>(
    form: &mut Form<'_, '_, 't>,
    scope: &mut Scope<'t>,
    declared: &[Declaration<'t>],
    passed: &[Operand<'t>],
    at: usize,
) -> Result<()> {
    if declared.len() != passed.len() {
        let expected = format!("{} values, as the function has them", declared.len());
        return Err(Problem::new(at, expected, passed.len().to_string()));
    }
    for (declared, passed) in declared.iter().zip(passed) {
        let OperandKind::Name { name, part: None, addend: 0, negated: false } = passed.kind else {
            return Err(Problem::new(passed.at, "a variable of `.param`", "something else"));
        };
        match form.builder().find(Name { text: name, at: passed.at })? {
            Some(place @ Symbol::Place { space: Space::Local, bytes, offset }) => {
                if bytes != declared.bytes || offset % declared.align != 0 {
                    let expected = format!("{} bytes at a multiple of {}", declared.bytes, declared.align);
                    return Err(Problem::new(passed.at, expected, format!("{bytes} bytes at {offset}")));
                }
                scope.declare(declared.name, place)?;
            }
            _ => return Err(Problem::quoted(passed.at, "a variable of `.param`", name)),
        }
    }
    Ok(())
}
