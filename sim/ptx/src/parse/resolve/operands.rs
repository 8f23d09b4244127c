//! The operands of an instruction, from left to right.

use super::super::error::{Problem, Result};
use super::super::number::Number;
use super::super::syntax::{Name, Operand, OperandKind};
use super::super::types;
use super::form::Form;
use super::scope::Symbol;
use super::special;
use crate::ir::{Predicate, PredicateSource, Register, Source, Type};

/// How wide a register may be beside its instruction's type.
#[derive(Clone, Copy, PartialEq)]
enum Width {
    Exact,
    AtLeast,
}

/// What an operand says, by the kind that its instruction asks for.
impl<'n, 't> Form<'_, 'n, 't> {
    /// How many operands have not been taken.
    pub(super) fn operands_left(&self) -> usize {
        self.written.operands.len().saturating_sub(self.next_operand)
    }

    pub(super) fn no_more_operands(&self) -> Result<()> {
        match self.written.operands.get(self.next_operand) {
            None => Ok(()),
            Some(operand) => Err(Problem::new(operand.at, "`;`: no further operand", describe(operand))),
        }
    }

    /// The next operand.
    pub(super) fn operand(&mut self, what: &str) -> Result<&'n Operand<'t>> {
        let written = self.written;
        let operand = written.operands.get(self.next_operand);
        self.next_operand += 1;
        operand.ok_or_else(|| Problem::quoted(written.end, what, ";"))
    }

    /// The next operand, which is not taken.
    pub(super) fn peek_operand(&self) -> Option<&'n Operand<'t>> {
        self.written.operands.get(self.next_operand)
    }

    /// What the next operand's name means, if it is the name of a register or a place.
    pub(super) fn peek_symbol(&mut self) -> Result<Option<Symbol>> {
        match self.peek_operand() {
            Some(Operand { at, kind: OperandKind::Name { name, part: None, .. } }) => {
                self.builder().find(Name { text: name, at: *at })
            }
            _ => Ok(None),
        }
    }

    /// A register that is written, as wide as `ty`.
    pub(super) fn dst(&mut self, ty: Type) -> Result<Register> {
        let operand = self.operand("a register")?;
        self.register_of(operand, ty, Width::Exact).map(|(register, _)| register)
    }

    /// A register that is written, as wide as `ty` or wider, and its bits.
    pub(super) fn dst_wide(&mut self, ty: Type) -> Result<(Register, u32)> {
        let operand = self.operand("a register")?;
        self.register_of(operand, ty, Width::AtLeast)
    }

    /// A value that is read.
    pub(super) fn src(&mut self, ty: Type) -> Result<Source> {
        let operand = self.operand("a value")?;
        self.source_of(operand, ty, Width::Exact)
    }

    /// A value that is read from a register as wide as `ty` or wider.
    pub(super) fn src_wide(&mut self, ty: Type) -> Result<Source> {
        let operand = self.operand("a value")?;
        self.source_of(operand, ty, Width::AtLeast)
    }

    /// A register or a vector of registers, with sinks, and the registers' bits.
    pub(super) fn dst_vector(&mut self, ty: Type, count: usize) -> Result<(Box<[Option<Register>]>, u32)> {
        let operand = self.operand("a register")?;
        let mut bits = ty.bits();
        let registers = self.elements(operand, count)?.iter().map(|element| {
            if let OperandKind::Sink = element.kind {
                return Ok(None);
            }
            let (register, wide) = self.register_of(element, ty, Width::AtLeast)?;
            bits = bits.max(wide);
            Ok(Some(register))
        });
        Ok((registers.collect::<Result<_>>()?, bits))
    }

    /// Registers of a fragment: a vector, or one register where `count` is 1.
    pub(super) fn dst_fragment(&mut self, ty: Type, count: usize) -> Result<Box<[Register]>> {
        let operand = self.operand("registers")?;
        let elements = self.elements(operand, count)?;
        elements
            .iter()
            .map(|element| self.register_of(element, ty, Width::Exact).map(|(register, _)| register))
            .collect()
    }

    /// A value or a vector of values.
    pub(super) fn src_vector(&mut self, ty: Type, count: usize) -> Result<Box<[Source]>> {
        let operand = self.operand("a value")?;
        let elements = self.elements(operand, count)?;
        elements.iter().map(|element| self.source_of(element, ty, Width::AtLeast)).collect()
    }

    /// Elements of a vector, of which there must be `count`.
    pub(super) fn elements(&self, operand: &'n Operand<'t>, count: usize) -> Result<&'n [Operand<'t>]> {
        let elements = match &operand.kind {
            OperandKind::Vector(elements) => elements.as_slice(),
            _ => std::slice::from_ref(operand),
        };
        if elements.len() != count {
            let expected =
                if count == 1 { "one value".to_owned() } else { format!("{{ }} with {count} values") };
            return Err(Problem::new(operand.at, expected, describe(operand)));
        }
        Ok(elements)
    }

    /// A predicate that is written.
    pub(super) fn dst_predicate(&mut self) -> Result<Predicate> {
        let operand = self.operand("a predicate")?;
        self.predicate_of(operand)
    }

    /// `p`, `p|q`, `_|q`, `p|_`: predicates that are written.
    pub(super) fn dst_predicates(&mut self) -> Result<(Option<Predicate>, Option<Predicate>)> {
        let operand = self.operand("a predicate")?;
        match &operand.kind {
            OperandKind::Pair(first, second) => {
                Ok((self.predicate_or_sink(first)?, self.predicate_or_sink(second)?))
            }
            _ => Ok((self.predicate_or_sink(operand)?, None)),
        }
    }

    /// `d` or `d|p`: a register, and a predicate beside it.
    pub(super) fn dst_and_predicate(&mut self, ty: Type) -> Result<(Option<Register>, Option<Predicate>)> {
        let operand = self.operand("a register")?;
        let (first, second) = match &operand.kind {
            OperandKind::Pair(first, second) => (first.as_ref(), self.predicate_or_sink(second)?),
            _ => (operand, None),
        };
        if let OperandKind::Sink = first.kind {
            return Ok((None, second));
        }
        let (register, _) = self.register_of(first, ty, Width::Exact)?;
        Ok((Some(register), second))
    }

    /// A predicate that is read: `p`, `!p`, or a number.
    pub(super) fn src_predicate(&mut self) -> Result<PredicateSource> {
        let operand = self.operand("a predicate")?;
        match operand.kind {
            OperandKind::Number(Number::Integer(value)) => Ok(PredicateSource::Constant(value != 0)),
            OperandKind::Name { name, part: None, addend: 0, negated } => {
                match self.builder().find(Name { text: name, at: operand.at })? {
                    Some(Symbol::Predicate(predicate)) => {
                        Ok(PredicateSource::Register { predicate, negated })
                    }
                    _ => Err(Problem::new(operand.at, "a predicate", describe(operand))),
                }
            }
            _ => Err(Problem::new(operand.at, "a predicate", describe(operand))),
        }
    }

    /// A whole number that the instruction itself holds.
    pub(super) fn constant(&mut self, what: &str, limit: u64) -> Result<u64> {
        let operand = self.operand(what)?;
        match operand.kind {
            OperandKind::Number(Number::Integer(value)) if value <= limit => Ok(value),
            _ => Err(Problem::new(operand.at, format!("{what}, at most {limit}"), describe(operand))),
        }
    }

    /// A label's name.
    pub(super) fn name(&mut self, what: &str) -> Result<Name<'t>> {
        let operand = self.operand(what)?;
        match operand.kind {
            OperandKind::Name { name, part: None, addend: 0, negated: false } => {
                Ok(Name { text: name, at: operand.at })
            }
            _ => Err(Problem::new(operand.at, what, describe(operand))),
        }
    }

    fn predicate_or_sink(&mut self, operand: &'n Operand<'t>) -> Result<Option<Predicate>> {
        match operand.kind {
            OperandKind::Sink => Ok(None),
            _ => self.predicate_of(operand).map(Some),
        }
    }

    fn predicate_of(&mut self, operand: &'n Operand<'t>) -> Result<Predicate> {
        if let OperandKind::Name { name, part: None, addend: 0, negated: false } = operand.kind
            && let Some(Symbol::Predicate(predicate)) =
                self.builder().find(Name { text: name, at: operand.at })?
        {
            return Ok(predicate);
        }
        Err(Problem::new(operand.at, "a predicate", describe(operand)))
    }

    fn register_of(&mut self, operand: &'n Operand<'t>, ty: Type, width: Width) -> Result<(Register, u32)> {
        if let OperandKind::Name { name, part: None, addend: 0, negated: false } = operand.kind
            && let Some(Symbol::Register { register, bits }) =
                self.builder().find(Name { text: name, at: operand.at })?
        {
            self.check_width(operand, bits, ty, width)?;
            return Ok((register, bits));
        }
        Err(Problem::new(operand.at, "a register", describe(operand)))
    }

    fn source_of(&mut self, operand: &'n Operand<'t>, ty: Type, width: Width) -> Result<Source> {
        match operand.kind {
            OperandKind::Number(number) => number.bits(ty).map(Source::Immediate).ok_or_else(|| {
                let expected = format!("a number that .{} can be", types::name(ty));
                Problem::new(operand.at, expected, describe(operand))
            }),
            OperandKind::Name { name, part, addend: 0, negated: false } => {
                if let Some((source, bits)) = special::named(name, part) {
                    self.check_width(operand, bits, ty, Width::AtLeast)?;
                    return Ok(source);
                }
                if name.starts_with('%') && part.is_some() {
                    return Err(Problem::new(
                        operand.at,
                        "a special register that is supported",
                        describe(operand),
                    ));
                }
                self.register_of(operand, ty, width).map(|(register, _)| Source::Register(register))
            }
            _ => Err(Problem::new(operand.at, "a register or a number", describe(operand))),
        }
    }

    fn check_width(&self, operand: &Operand<'t>, bits: u32, ty: Type, width: Width) -> Result<()> {
        // A register of 8 bits does not exist: narrow values lie in wider ones.
        let needed = ty.bits().max(if width == Width::Exact { 1 } else { 8 });
        if bits == needed || (width == Width::AtLeast && bits > needed) {
            return Ok(());
        }
        let or_wider = if width == Width::AtLeast { " or wider" } else { "" };
        let expected = format!("a register of {needed} bits{or_wider} for .{}", types::name(ty));
        Err(Problem::new(operand.at, expected, format!("{} of {bits} bits", describe(operand))))
    }
}

/// An operand in an error's words.
pub(super) fn describe(operand: &Operand<'_>) -> String {
    match &operand.kind {
        OperandKind::Name { name, part, negated, .. } => {
            let not = if *negated { "!" } else { "" };
            let part = part.map(|part| format!(".{part}")).unwrap_or_default();
            format!("`{not}{name}{part}`")
        }
        OperandKind::Number(Number::Integer(value)) => format!("the number {}", *value as i64),
        OperandKind::Number(_) => "a floating-point number".to_owned(),
        OperandKind::Sink => "`_`".to_owned(),
        OperandKind::Vector(elements) => format!("{{ }} with {} values", elements.len()),
        OperandKind::Address { .. } => "an address in brackets".to_owned(),
        OperandKind::Pair(..) => "two results with `|`".to_owned(),
        OperandKind::List(_) => "a list in parentheses".to_owned(),
    }
}
