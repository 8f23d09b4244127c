//! Names within `{ }`.

use super::super::error::{Problem, Result};
use super::super::syntax::{Name, Registers};
use crate::ir::{Predicate, Register, Space};
use std::collections::HashMap;

/// What a name within a function means.
#[derive(Clone, Copy, Debug)]
pub(super) enum Symbol {
    /// A register of so many bits.
    Register {
        register: Register,
        bits: u32,
    },
    Predicate(Predicate),
    /// A place in shared, local or parameter memory, of so many bytes.
    Place {
        space: Space,
        offset: u64,
        bytes: u64,
    },
}

/// A label, by its number in the kernel; its position is known at the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Label(pub usize);

/// The names of one scope.
#[derive(Debug, Default)]
pub(super) struct Scope<'t> {
    pub symbols: HashMap<&'t str, Symbol>,
    pub ranges: Vec<Registers<'t>>,
    pub labels: HashMap<&'t str, Label>,
    pub tables: HashMap<&'t str, Box<[Label]>>,
    /// A function's outermost scope, beyond which only the module's names are seen.
    pub function: bool,
}

impl<'t> Scope<'t> {
    pub(super) fn declare(&mut self, name: Name<'t>, symbol: Symbol) -> Result<()> {
        match self.symbols.insert(name.text, symbol) {
            None => Ok(()),
            Some(_) => Err(twice(name)),
        }
    }

    /// The range that a register is of: `%r12` is of `%r<20>`.
    pub(super) fn range_of(&self, name: &str) -> Option<Registers<'t>> {
        self.ranges.iter().copied().find(|range| {
            name.strip_prefix(range.name.text).is_some_and(|digits| {
                let canonical = digits == "0" || !digits.starts_with('0');
                let number = digits.parse::<u32>().ok().filter(|_| canonical && !digits.starts_with('+'));
                number.zip(range.range).is_some_and(|(number, count)| number < count)
            })
        })
    }
}

/// The error that a name has a meaning already.
pub(super) fn twice(name: Name<'_>) -> Problem {
    Problem::new(name.at, "a name that is new", format!("`{}` a second time", name.text))
}
