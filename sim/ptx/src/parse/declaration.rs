//! Declarations: variables, parameters, registers.

use super::cursor::Cursor;
use super::error::{Problem, Result};
use super::lexer::{Kind, Token};
use super::number::Number;
use super::syntax::{Declaration, Initial, Name, Registers};
use super::types;
use crate::ir::{Space, Type};

/// Variables after their space's name, to the `;`: `.align 4 .b8 table[64] = {1, 2}, other;`
pub(super) fn variables<'t>(
    cursor: &mut Cursor<'_, 't>,
    space: Space,
    external: bool,
) -> Result<Vec<Declaration<'t>>> {
    let head = head(cursor)?;
    let mut found = Vec::new();
    loop {
        let mut variable = declarator(cursor, &head, space, external)?;
        if cursor.mark(b'=') {
            let at = cursor.peek().at;
            if !matches!(space, Space::Global | Space::Const) {
                return Err(Problem::quoted(at, "no initial value: only global and constant ones have", "="));
            }
            initial(cursor, &mut variable.initial, 0)?;
            let given = (variable.initial.len() as u64).checked_mul(u64::from(variable.element.bytes()));
            if variable.bytes == 0 {
                variable.bytes = given.unwrap_or(u64::MAX);
            }
            if given.is_none_or(|given| given > variable.bytes) {
                let found = format!("{} of them", variable.initial.len());
                return Err(Problem::new(at, "no more values than elements", found));
            }
        }
        found.push(variable);
        if !cursor.mark(b',') {
            cursor.expect_mark(b';')?;
            return Ok(found);
        }
    }
}

/// Parameters in parentheses, which have not begun.
pub(super) fn params<'t>(cursor: &mut Cursor<'_, 't>) -> Result<Vec<Declaration<'t>>> {
    cursor.expect_mark(b'(')?;
    let mut found = Vec::new();
    if cursor.mark(b')') {
        return Ok(found);
    }
    loop {
        if !cursor.dot("param") {
            return Err(cursor.unexpected("`.param`: parameters in registers are not supported"));
        }
        let head = head(cursor)?;
        found.push(declarator(cursor, &head, Space::Param, false)?);
        if !cursor.mark(b',') {
            cursor.expect_mark(b')')?;
            return Ok(found);
        }
    }
}

/// Registers after `.reg`, to the `;`.
pub(super) fn registers<'t>(cursor: &mut Cursor<'_, 't>) -> Result<Vec<Registers<'t>>> {
    let ty = ty(cursor)?;
    let mut found = Vec::new();
    loop {
        let name = cursor.expect_word("a register's name")?;
        let range = if cursor.mark(b'<') {
            let count = cursor.expect_count("how many registers")?;
            cursor.expect_mark(b'>')?;
            Some(count)
        } else {
            None
        };
        found.push(Registers { name: Name { text: name.text, at: name.at }, ty, range });
        if !cursor.mark(b',') {
            cursor.expect_mark(b';')?;
            return Ok(found);
        }
    }
}

/// What several variables have in common.
struct Head {
    align: Option<u64>,
    element: Type,
    /// Elements of a vector type: `.v4`.
    lanes: u64,
}

fn head(cursor: &mut Cursor<'_, '_>) -> Result<Head> {
    let mut align = alignment(cursor)?;
    let lanes = match cursor.peek() {
        Token { kind: Kind::Dot, text: "v2", .. } => 2,
        Token { kind: Kind::Dot, text: "v4", .. } => 4,
        _ => 1,
    };
    if lanes > 1 {
        cursor.take();
    }
    let element = ty(cursor)?;
    if element == Type::Predicate {
        return Err(Problem::quoted(cursor.peek().at, "a type that memory holds", ".pred"));
    }
    // `.ptr .global .align 16`: what a pointer points at, which is advice.
    if cursor.dot("ptr") {
        for space in ["global", "const", "local", "shared"] {
            if cursor.dot(space) {
                break;
            }
        }
        alignment(cursor)?;
    }
    if align.is_none() {
        align = alignment(cursor)?;
    }
    Ok(Head { align, element, lanes })
}

fn alignment(cursor: &mut Cursor<'_, '_>) -> Result<Option<u64>> {
    if !cursor.dot("align") {
        return Ok(None);
    }
    let token = cursor.peek();
    let align: u64 = cursor.expect_count("an alignment in bytes")?;
    if !align.is_power_of_two() || align > 1 << 16 {
        return Err(Problem::quoted(token.at, "an alignment: a power of two, up to 65536", token.text));
    }
    Ok(Some(align))
}

fn ty(cursor: &mut Cursor<'_, '_>) -> Result<Type> {
    let token = cursor.peek();
    let named = if token.kind == Kind::Dot { types::named(token.text) } else { None };
    let ty = named.ok_or_else(|| cursor.unexpected("a type"))?;
    cursor.take();
    Ok(ty)
}

/// `name`, `name[4][2]`, `name[]`.
fn declarator<'t>(
    cursor: &mut Cursor<'_, 't>,
    head: &Head,
    space: Space,
    external: bool,
) -> Result<Declaration<'t>> {
    let name = cursor.expect_word("a name")?;
    let unit = u64::from(head.element.bytes()) * head.lanes;
    let (mut bytes, mut first) = (unit, true);
    while cursor.mark(b'[') {
        if first && cursor.mark(b']') {
            bytes = 0;
        } else {
            let token = cursor.peek();
            let count: u64 = cursor.expect_count("how many elements")?;
            cursor.expect_mark(b']')?;
            bytes = bytes
                .checked_mul(count)
                .filter(|&bytes| bytes <= 1 << 40)
                .ok_or_else(|| Problem::quoted(token.at, "at most 2^40 bytes", token.text))?;
        }
        first = false;
    }
    Ok(Declaration {
        name: Name { text: name.text, at: name.at },
        space,
        external,
        element: head.element,
        align: head.align.unwrap_or(unit),
        bytes,
        initial: Vec::new(),
    })
}

/// Nested lists are written one element after another, as they lie in memory.
fn initial<'t>(cursor: &mut Cursor<'_, 't>, values: &mut Vec<Initial<'t>>, depth: u32) -> Result<()> {
    if cursor.mark(b'{') {
        if depth > 8 {
            return Err(cursor.unexpected("at most eight lists within each other"));
        }
        while !cursor.mark(b'}') {
            initial(cursor, values, depth + 1)?;
            if !cursor.mark(b',') {
                cursor.expect_mark(b'}')?;
                break;
            }
        }
        return Ok(());
    }
    let token = cursor.peek();
    if token.kind != Kind::Word {
        values.push(Initial::Number { number: super::operand::number(cursor)?, at: token.at });
        return Ok(());
    }
    let generic = token.text == "generic" && cursor.peek_after(1).kind == Kind::Mark(b'(');
    if generic {
        cursor.take();
        cursor.take();
    }
    let name = cursor.expect_word("a variable")?;
    if generic {
        cursor.expect_mark(b')')?;
    }
    let at = cursor.peek().at;
    let addend = super::operand::addend(cursor)?;
    if cursor.peek().kind == Kind::Mark(b'(') {
        return Err(Problem::quoted(at, "a variable's address", "("));
    }
    values.push(Initial::Address { name: Name { text: name.text, at: name.at }, addend, generic });
    Ok(())
}

/// The bytes of numbers as they lie in memory.
pub(super) fn append(number: Number, at: usize, element: Type, bytes: &mut Vec<u8>) -> Result<()> {
    let bits = number.bits(element).ok_or_else(|| {
        Problem::new(at, format!("a value of .{}", types::name(element)), "a number of another kind")
    })?;
    bytes.extend(bits.to_le_bytes().iter().take(element.bytes() as usize));
    Ok(())
}
