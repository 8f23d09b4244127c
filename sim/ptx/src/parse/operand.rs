//! Operands.

use super::cursor::Cursor;
use super::error::{Problem, Result};
use super::lexer::Kind;
use super::number::Number;
use super::syntax::{Operand, OperandKind};

/// Lists within lists, at most.
const DEPTH: u32 = 4;

/// Operands up to `;`, which is taken too; the result's second part is its place.
pub(super) fn list<'t>(cursor: &mut Cursor<'_, 't>) -> Result<(Vec<Operand<'t>>, usize)> {
    let mut operands = Vec::new();
    let end = cursor.peek().at;
    if cursor.mark(b';') {
        return Ok((operands, end));
    }
    loop {
        operands.push(operand(cursor, 0)?);
        let end = cursor.peek().at;
        if cursor.mark(b';') {
            return Ok((operands, end));
        }
        if !cursor.mark(b',') {
            return Err(cursor.unexpected("`,` or `;`"));
        }
    }
}

fn operand<'t>(cursor: &mut Cursor<'_, 't>, depth: u32) -> Result<Operand<'t>> {
    let at = cursor.peek().at;
    if depth > DEPTH {
        return Err(cursor.unexpected("fewer operands within each other"));
    }
    let kind = match cursor.peek().kind {
        Kind::Mark(b'{') => OperandKind::Vector(enclosed(cursor, b'}', depth)?),
        Kind::Mark(b'(') => OperandKind::List(enclosed(cursor, b')', depth)?),
        Kind::Mark(b'[') => address(cursor)?,
        Kind::Mark(b'!') => {
            cursor.take();
            // `!1` is a number's complement as a truth value.
            if cursor.peek().kind == Kind::Number {
                OperandKind::Number(Number::Integer(u64::from(number(cursor)? == Number::Integer(0))))
            } else {
                name(cursor, true)?
            }
        }
        Kind::Mark(b'-' | b'~') | Kind::Number => OperandKind::Number(number(cursor)?),
        Kind::Word if cursor.peek().text == "_" => {
            cursor.take();
            OperandKind::Sink
        }
        Kind::Word => name(cursor, false)?,
        _ => return Err(cursor.unexpected("an operand")),
    };
    let first = Operand { at, kind };
    if cursor.mark(b'|') {
        let second = operand(cursor, depth + 1)?;
        return Ok(Operand { at, kind: OperandKind::Pair(Box::new(first), Box::new(second)) });
    }
    Ok(first)
}

/// Operands between brackets, whose first one has not been taken.
fn enclosed<'t>(cursor: &mut Cursor<'_, 't>, end: u8, depth: u32) -> Result<Vec<Operand<'t>>> {
    cursor.take();
    let mut operands = Vec::new();
    if cursor.mark(end) {
        return Ok(operands);
    }
    loop {
        operands.push(operand(cursor, depth + 1)?);
        if !cursor.mark(b',') {
            cursor.expect_mark(end)?;
            return Ok(operands);
        }
    }
}

fn name<'t>(cursor: &mut Cursor<'_, 't>, negated: bool) -> Result<OperandKind<'t>> {
    let name = cursor.expect_word("a name")?.text;
    let part = cursor.take_if(Kind::Dot).map(|part| part.text);
    let addend = addend(cursor)?;
    Ok(OperandKind::Name { name, part, addend, negated })
}

/// `[%rd1]`, `[%rd1+-8]`, `[variable+4]`, `[64]`.
fn address<'t>(cursor: &mut Cursor<'_, 't>) -> Result<OperandKind<'t>> {
    cursor.take();
    let name = cursor.take_if(Kind::Word).map(|name| name.text);
    let offset = match name {
        Some(_) => addend(cursor)?,
        None => {
            let at = cursor.peek().at;
            let Number::Integer(offset) = number(cursor)? else {
                return Err(Problem::new(at, "a whole number of bytes", "a floating-point number"));
            };
            (offset as i64).wrapping_add(addend(cursor)?)
        }
    };
    if !cursor.mark(b']') {
        return Err(cursor.unexpected("`]`: an address is a register, a variable or a number, plus a number (coordinates are not supported)"));
    }
    Ok(OperandKind::Address { name, offset })
}

/// A number with its sign.
pub(super) fn number(cursor: &mut Cursor<'_, '_>) -> Result<Number> {
    let at = cursor.peek().at;
    let (mut negative, mut complement) = (false, false);
    loop {
        if cursor.mark(b'-') {
            negative = !negative;
        } else if !complement && !negative && cursor.mark(b'~') {
            complement = true;
        } else {
            break;
        }
    }
    let token = cursor.take_if(Kind::Number).ok_or_else(|| cursor.unexpected("a number"))?;
    let number = Number::read(token.text).ok_or_else(|| Problem::quoted(token.at, "a number", token.text))?;
    let number = if negative { number.negated() } else { number };
    if complement {
        return number
            .complemented()
            .ok_or_else(|| Problem::new(at, "an integer after `~`", "a floating-point number"));
    }
    Ok(number)
}

/// `+4`, `-4`, `+-4`, or nothing.
pub(super) fn addend(cursor: &mut Cursor<'_, '_>) -> Result<i64> {
    let mut sum = 0i64;
    while matches!(cursor.peek().kind, Kind::Mark(b'+' | b'-')) {
        // A minus belongs to the number.
        cursor.mark(b'+');
        let at = cursor.peek().at;
        let Number::Integer(value) = number(cursor)? else {
            return Err(Problem::new(at, "a whole number", "a floating-point number"));
        };
        sum = sum.wrapping_add(value as i64);
    }
    Ok(sum)
}
