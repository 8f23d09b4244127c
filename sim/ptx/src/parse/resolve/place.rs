//! Operands that are places in memory.

use super::super::error::{Problem, Result};
use super::super::syntax::{Name, OperandKind};
use super::form::Form;
use super::operands::describe;
use super::scope::Symbol;
use crate::ir::{Address, Base, Space};

impl<'t> Form<'_, '_, 't> {
    /// An address in `space`; a variable's own space where that is [`Space::Generic`].
    pub(super) fn address(&mut self, space: Space) -> Result<(Space, Address)> {
        let operand = self.operand("an address in brackets")?;
        let OperandKind::Address { name, offset } = operand.kind else {
            return Err(Problem::new(operand.at, "an address in brackets", describe(operand)));
        };
        // The parameters of a function that has been put in are in the thread's own memory.
        let space = match space {
            Space::Param if self.builder().returns_to.is_some() => Space::Local,
            other => other,
        };
        let Some(name) = name else { return Ok((space, Address { base: Base::Space, offset })) };
        match self.builder().find(Name { text: name, at: operand.at })? {
            Some(Symbol::Register { register, bits: 32 | 64 }) => {
                Ok((space, Address { base: Base::Register(register), offset }))
            }
            Some(Symbol::Register { .. } | Symbol::Predicate(_)) => {
                Err(Problem::quoted(operand.at, "an address in a register of 32 or 64 bits", name))
            }
            _ => {
                let (found, address) = self.place(name, operand.at, offset)?;
                let fits = match space {
                    Space::Generic => true,
                    // What is passed to a function is named as a parameter.
                    Space::Param => matches!(found, Space::Param | Space::Local),
                    other => found == other,
                };
                if fits {
                    return Ok((found, address));
                }
                let expected = format!("a variable in {space:?} memory").to_lowercase();
                Err(Problem::quoted(operand.at, expected, name))
            }
        }
    }

    /// The place of a variable.
    pub(super) fn place(&mut self, name: &'t str, at: usize, addend: i64) -> Result<(Space, Address)> {
        if let Some(Symbol::Place { space, offset, .. }) = self.builder().find(Name { text: name, at })? {
            return Ok((space, Address { base: Base::Space, offset: addend.wrapping_add(offset as i64) }));
        }
        let builder = self.builder();
        let Some(&(index, declared)) = builder.names.variables.get(name) else {
            return Err(Problem::quoted(at, "a register, a variable or a parameter that is declared", name));
        };
        if declared.space == Space::Shared {
            let offset = builder.shared.offsets.get(&declared.name.at).copied().unwrap_or(0);
            return Ok((
                Space::Shared,
                Address { base: Base::Space, offset: addend.wrapping_add(offset as i64) },
            ));
        }
        Ok((declared.space, Address { base: Base::Variable(index), offset: addend }))
    }
}
